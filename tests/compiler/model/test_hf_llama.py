"""Hugging Face directories of Llama models: configuration, names, tied and untied heads."""

import json

import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.checkpoint import load
from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model import naive_llama
from tests.compiler.model.checkpoints import write_tensors
from tests.compiler.model.llama_files import LLAMA, hf_tensors, named, write_hf


def change(directory, **changes):
    """Change keys of config.json; None: take it away."""
    data = {key: value for key, value in (LLAMA | changes).items() if value is not None}
    (directory / "config.json").write_text(json.dumps(data))


@pytest.fixture
def weights(seed):
    return random_weights(parse_config(LLAMA), seed)


@pytest.fixture
def directory(tmp_path, weights):
    write_hf(tmp_path / "model", weights)
    return tmp_path / "model"


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_the_network_is_llamas(tmp_path, seed, rng, tied, dtype):
    data = LLAMA | {"tie_word_embeddings": tied}
    weights = random_weights(parse_config(data), seed)
    write_hf(tmp_path, weights, data, dtype)
    found = load(tmp_path)
    assert (found.weights.untied is None) == tied
    tokens = rng.integers(0, 288, 24)
    expected = naive_llama.logits(lambda path: named(weights, path), found.config, tokens)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(fp32.forward(found.weights, tokens), expected, rtol=0, atol=5e-5)


def test_config_is_read():
    config = parse_config(LLAMA)
    assert (config.vocab, config.hidden, config.ffn, config.max_position) == (288, 64, 96, 24)
    assert (config.eps, config.softcap, config.bos, config.eos) == (1e-5, None, 1, 2)
    assert (config.activation, config.tied, config.embed_scale) == ("silu", False, 1.0)
    assert not config.post_norms and not config.layer_scalars
    layer, other = config.layers
    assert layer == other
    assert (layer.heads, layer.kv_heads, layer.head_dim, layer.window) == (4, 2, 16, None)
    assert (layer.rope_theta, layer.rope_pairs, layer.scale) == (1e4, 8, 0.25)
    assert not (layer.k_eq_v or layer.qk_norm or layer.v_norm)


@pytest.mark.parametrize(("changes", "expected"), [
    ({"num_key_value_heads": None}, {"kv_heads": 4}),
    ({"head_dim": 24}, {"head_dim": 24, "scale": 24**-0.5}),
    ({"rope_theta": 5e5}, {"rope_theta": 5e5}),
    ({"rope_theta": None}, {"rope_theta": 1e4}),
    ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 3e4}},
     {"rope_theta": 3e4}),
    ({"rope_theta": 3e4, "rope_parameters": {"rope_theta": 3e4}}, {"rope_theta": 3e4}),
    ({"rope_scaling": {"type": "default"}}, {"rope_theta": 1e4}),
])
def test_what_may_be_said_otherwise(changes, expected):
    data = {key: value for key, value in (LLAMA | changes).items() if value is not None}
    layer = parse_config(data).layers[0]
    assert {name: getattr(layer, name) for name in expected} == expected


def test_several_end_tokens():
    assert parse_config(LLAMA | {"eos_token_id": [7, 2]}).eos == 7


@pytest.mark.parametrize(("changes", "message"), [
    ({"hidden_act": "gelu"}, "hidden_act must be 'silu', not 'gelu'"),
    ({"attention_bias": True}, "attention_bias must be False, not True"),
    ({"mlp_bias": True}, "mlp_bias must be False, not True"),
    ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
     "rope_scaling: rope_type must be default, not 'llama3'"),
    ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "type must be default, not 'linear'"),
    ({"rope_parameters": {"rope_type": "yarn"}},
     "rope_parameters: rope_type must be default, not 'yarn'"),
    ({"rope_parameters": {"factor": 2.0}}, "factor must be 1.0, not 2.0"),
    ({"rope_parameters": {"rope_theta": 5.0}}, "rope_theta has two values, 5.0 and 10000.0"),
    ({"rope_parameters": "default"}, "rope_parameters must be of type dict"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor must be 1.0, not 0.5"),
    ({"num_attention_heads": 5}, "a width of 64 cannot be split over 5 heads evenly"),
    ({"num_attention_heads": 0}, "a width of 64 cannot be split over 0 heads evenly"),
    ({"num_key_value_heads": 3}, "4 query heads cannot share 3 KV heads evenly"),
    ({"num_key_value_heads": 0}, "kv_heads must be a positive whole number, not 0"),
    ({"head_dim": 7}, "head_dim must be even"),
    ({"head_dim": -2}, "head_dim must be in 1..65536, not -2"),
    ({"hidden_size": 10**400}, "head_dim must be in 1..65536"),
    ({"num_hidden_layers": 10**12}, "at most 1024 layers, not 1000000000000"),
    ({"num_hidden_layers": 0}, "a model needs at least one layer"),
    ({"rope_theta": float("inf")}, "rope_theta must be a finite number"),
    ({"pad_token_id": 288}, "pad token 288 is outside the vocabulary of 288"),
    ({"architectures": ["LlamaForCausalLM", "X"]}, "not LlamaForCausalLM, X"),
])
def test_what_cannot_be_run_is_named(directory, changes, message, failure):
    change(directory, **changes)
    found = failure(load, directory)
    assert message in found and "config.json" in found


@pytest.mark.parametrize("key", [
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "rms_norm_eps", "max_position_embeddings",
])
def test_a_missing_key_is_named(key, failure):
    data = {name: value for name, value in LLAMA.items() if name != key}
    assert f"{key} is missing" in failure(parse_config, data)


def test_every_missing_tensor_is_named(directory, weights, failure):
    tensors = hf_tensors(weights)
    for name in tensors:
        rest = {other: values for other, values in tensors.items() if other != name}
        write_tensors(directory / "model.safetensors", rest)
        assert f"tensor {name} is missing" in failure(load, directory)


def test_tensors_of_another_architecture_are_named(directory, weights, failure):
    name = "model.layers.0.pre_feedforward_layernorm.weight"
    write_tensors(directory / "model.safetensors", hf_tensors(weights) | {name: weights.norm})
    assert f"unknown tensor {name}" in failure(load, directory)


def test_an_untied_head_that_config_json_denies(directory, failure):
    change(directory, tie_word_embeddings=True)
    assert "lm_head.weight differs from the embedding" in failure(load, directory)


def test_a_head_that_is_missing(tmp_path, seed, failure):
    tied = random_weights(parse_config(LLAMA | {"tie_word_embeddings": True}), seed)
    write_hf(tmp_path, tied)
    assert "tensor lm_head.weight is missing: tie_word_embeddings is false" in failure(
        load, tmp_path)


def test_another_begin_token_than_the_tokenizers(directory, failure):
    change(directory, bos_token_id=2)
    assert "texts begin with token 1, but the model's begin token is 2" in failure(
        load, directory)


def test_texts_begin_with_the_begin_token_only_where_the_tokenizer_says_so(directory):
    path = directory / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"post_processor": None}))
    found = load(directory)
    assert (found.config.bos, found.weights.config.bos) == (None, None)
    assert found.tokenizer.encode("the") == [271]


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_flipped_bits_are_refused_or_do_not_matter(directory, file, flip):
    path = directory / file
    end = 8 + int.from_bytes(path.read_bytes()[:8], "little") if file.endswith("s") else None
    assert flip(path, 300, directory, end) > 20
