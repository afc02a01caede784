"""Import of Hugging Face directories, whole and damaged."""

import json
import shutil

import numpy as np
import pytest

from compiler.model.checkpoint import load
from compiler.model.hf_config import parse_config
from compiler.model.weights import random_weights
from tests.compiler.model.checkpoints import CONFIG, tensors_of, write, write_tensors


@pytest.fixture
def weights(seed):
    return random_weights(parse_config(CONFIG), seed)


@pytest.fixture
def directory(tmp_path, weights):
    write(tmp_path / "model", weights)
    return tmp_path / "model"


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_tensors_come_back_exactly(tmp_path, weights, dtype):
    write(tmp_path, weights, dtype=dtype)
    loaded = load(tmp_path).weights
    assert loaded.layers[1].v is None
    expected, found = tensors_of(weights), tensors_of(loaded)
    assert list(expected) == list(found)
    for name, values in expected.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_config_is_read():
    config = parse_config(CONFIG)
    sliding, full = config.layers
    assert (config.vocab, config.hidden, config.ffn, config.max_position) == (40, 24, 20, 16)
    assert (config.eps, config.softcap) == (1e-6, 30.0)
    assert (config.pad, config.eos, config.bos) == (0, 1, 2)
    assert (sliding.heads, sliding.kv_heads, sliding.head_dim, sliding.window) == (4, 2, 6, 5)
    assert (sliding.k_eq_v, sliding.rope_theta, sliding.rope_pairs) == (False, 1e4, 3)
    assert (full.heads, full.kv_heads, full.head_dim, full.window) == (4, 1, 16, None)
    assert (full.k_eq_v, full.rope_theta, full.rope_pairs) == (True, 1e6, 2)


def test_values_for_all_full_layers_are_read_like_values_per_layer():
    data = {key: value for key, value in CONFIG.items() if key != "per_layer_config"}
    data |= {"global_head_dim": 16, "num_global_key_value_heads": 1}
    assert parse_config(data) == parse_config(CONFIG)
    data["num_global_key_value_heads"] = None
    assert parse_config(data).layers[1].kv_heads == CONFIG["num_key_value_heads"]


def test_full_layers_may_have_a_v_projection(tmp_path):
    data = CONFIG | {"attention_k_eq_v": False}
    weights = random_weights(parse_config(data))
    write(tmp_path, weights, data)
    np.testing.assert_array_equal(load(tmp_path).weights.layers[1].v, weights.layers[1].v)


def test_parameters_are_counted(weights):
    count = sum(values.size for values in tensors_of(weights).values())
    assert weights.config.parameters == count


def test_shards_are_read(directory, weights, failure):
    tensors = tensors_of(weights)
    (directory / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for file, part in shards.items():
        write_tensors(directory / file, {name: tensors[name] for name in part})
    weight_map = {name: file for file, part in shards.items() for name in part}
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    np.testing.assert_array_equal(load(directory).weights.norm, weights.norm)
    (directory / "two.safetensors").unlink()
    assert "two.safetensors: no such file" in failure(load, directory)
    index.write_text(json.dumps({"weight_map": {"a": "../one.safetensors"}}))
    assert "files of the same directory" in failure(load, directory)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["MistralForCausalLM"]}, "LlamaForCausalLM, not MistralForCausalLM"),
        ({"architectures": ["Llama\nForCausalLM" * 99]}, "not Llama?ForCausalLM"),
        ({"quantization_config": {"bits": 4}}, "quantization_config must be None"),
        ({"architectures": None}, "must be Gemma4ForCausalLM or LlamaForCausalLM, not none"),
        ({"hidden_activation": "silu"}, "hidden_activation must be 'gelu_pytorch_tanh'"),
        ({"enable_moe_block": True}, "enable_moe_block must be False"),
        ({"num_kv_shared_layers": 1}, "num_kv_shared_layers must be 0"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings must be True"),
        ({"hidden_size_per_layer_input": 8}, "per-layer input embeddings are not supported"),
        ({"num_hidden_layers": 3}, "layer_types has 2 entries"),
        ({"layer_types": ["sliding_attention", "linear_attention"]}, "'linear_attention'"),
        ({"hidden_size": "24"}, "hidden_size must be of type int"),
        ({"hidden_size": True}, "hidden_size must be of type int"),
        ({"hidden_size": 0}, "hidden must be a positive whole number, not 0"),
        ({"num_key_value_heads": 3}, "layer 0: 4 query heads cannot share 3 KV heads"),
        ({"head_dim": 7}, "layer 0: head_dim must be even"),
        ({"sliding_window": -1}, "window must be a positive whole number"),
        ({"rms_norm_eps": 0}, "eps must be positive"),
        ({"final_logit_softcapping": -30}, "softcap must be positive"),
        ({"final_logit_softcapping": float("inf")}, "final_logit_softcapping must be a finite"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps must be a finite number, not nan"),
        ({"bos_token_id": 40}, "bos token 40 is outside the vocabulary of 40"),
        ({"rope_parameters": {}}, "sliding_attention is missing"),
        ({"per_layer_config": {"1": {"sliding_window": 3}}}, "head_dim and num_key_value_heads"),
        ({"per_layer_config": []}, "per_layer_config must be of type dict"),
    ],
)
def test_config_that_cannot_be_compiled(directory, change, message, failure):
    (directory / "config.json").write_text(json.dumps(CONFIG | change))
    found = failure(load, directory)
    assert message in found and "config.json" in found


@pytest.mark.parametrize(
    ("rope", "message"),
    [
        ({"rope_type": "yarn"}, "rope_type must be default or proportional, not 'yarn'"),
        ({"factor": 2.0}, "factor must be 1, not 2.0"),
        ({"rope_theta": 0}, "rope_theta must be positive"),
        ({"partial_rotary_factor": 1.5}, "rope_pairs must be in 0..8, not 12"),
        ({"partial_rotary_factor": 1e999}, "partial_rotary_factor must be a finite number"),
    ],
)
def test_rope_that_cannot_be_compiled(directory, rope, message, failure):
    full = CONFIG["rope_parameters"]["full_attention"] | rope
    parameters = CONFIG["rope_parameters"] | {"full_attention": full}
    (directory / "config.json").write_text(json.dumps(CONFIG | {"rope_parameters": parameters}))
    assert message in failure(load, directory)


@pytest.mark.parametrize("key", [
    "architectures", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
    "layer_types", "num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window",
    "attention_k_eq_v", "rms_norm_eps", "rope_parameters", "max_position_embeddings",
    "hidden_size_per_layer_input",
])
def test_missing_key_is_named(key, failure):
    data = {name: value for name, value in CONFIG.items() if name != key}
    assert {"architectures": "none"}.get(key, f"{key} is missing") in failure(parse_config, data)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN', "[" * 100_000])
def test_config_that_is_not_json(directory, text, failure):
    (directory / "config.json").write_text(text)
    assert "config.json" in failure(load, directory)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_file_is_named(directory, file, failure):
    (directory / file).unlink()
    assert failure(load, directory) == f"{directory / file}: no such file"


def test_missing_directory_is_named(tmp_path, failure):
    assert failure(load, tmp_path / "none") == f"{tmp_path / 'none'}: no such directory"


def test_every_missing_tensor_is_named(directory, weights, failure):
    tensors = tensors_of(weights)
    for name in tensors:
        rest = {other: values for other, values in tensors.items() if other != name}
        write_tensors(directory / "model.safetensors", rest)
        assert f"tensor {name} is missing" in failure(load, directory)


def test_every_wrong_shape_is_named(directory, weights, failure):
    tensors = tensors_of(weights)
    for name, values in tensors.items():
        for wrong in (values[:-1], values[None]):
            write_tensors(directory / "model.safetensors", tensors | {name: wrong})
            assert f"tensor {name} has shape {list(wrong.shape)}, must be {list(values.shape)}" in (
                failure(load, directory)
            )


def test_other_tensors_are_refused(directory, weights, failure):
    tensors, path = tensors_of(weights), directory / "model.safetensors"
    write_tensors(path, tensors | {"model.layers.1.self_attn.v_proj.weight": weights.norm})
    assert "unknown tensor model.layers.1.self_attn.v_proj.weight" in failure(load, directory)


def test_a_tied_head_may_be_there_but_must_be_the_embedding(directory, weights, failure):
    tensors, path = tensors_of(weights), directory / "model.safetensors"
    write_tensors(path, tensors | {"lm_head.weight": weights.embedding})
    assert load(directory).weights.untied is None
    write_tensors(path, tensors | {"lm_head.weight": weights.embedding + np.float32(1)})
    assert failure(load, directory) == (
        f"{directory}: tensor lm_head.weight differs from the embedding, but "
        "tie_word_embeddings is true")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(directory, weights, bad, failure):
    tensors = tensors_of(weights)
    tensors["model.norm.weight"] = np.append(weights.norm[:-1], np.float32(bad))
    write_tensors(directory / "model.safetensors", tensors)
    assert "tensor model.norm.weight holds values that are not finite" in (
        failure(load, directory)
    )


def test_other_number_formats_are_refused(directory, failure):
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"I32"'))
    assert "must be F32, F16 or BF16, not I32" in failure(load, directory)


def test_every_truncation_is_refused(directory, failure):
    path = directory / "model.safetensors"
    data = path.read_bytes()
    header = int.from_bytes(data[:8], "little")
    cuts = (0, 1, 7, 8, 9, 8 + header // 2, 8 + header - 1, 8 + header, len(data) // 2,
            len(data) - 1)
    for cut in cuts:
        path.write_bytes(data[:cut])
        assert "truncated or not a safetensors file" in failure(load, directory)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_flipped_bits_are_refused_or_do_not_matter(directory, file, flip):
    path = directory / file
    end = 8 + int.from_bytes(path.read_bytes()[:8], "little") if file.endswith("s") else None
    assert flip(path, 300, directory, end) > 30


def test_file_larger_than_the_model_is_refused_unread(directory, failure):
    with (directory / "model.safetensors").open("r+b") as file:
        file.truncate(1 << 40)
    assert "bytes, but a model of this config.json has" in failure(load, directory)


@pytest.mark.parametrize("text", ["", "{}", "not JSON", '{"model": {"type": "BPE"}}'])
def test_damaged_tokenizer_is_refused(directory, text, failure):
    (directory / "tokenizer.json").write_text(text)
    assert "tokenizer.json: not a tokenizer" in failure(load, directory)


def test_tokenizer_of_another_model_is_refused(directory, failure):
    small = CONFIG | {"vocab_size": 30}
    write(directory, random_weights(parse_config(small)), small)
    assert "33 tokens do not fit the model's vocabulary of 30" in failure(load, directory)


def test_nothing_is_unpickled(directory, failure):
    shutil.move(directory / "model.safetensors", directory / "pytorch_model.bin")
    assert "model.safetensors: no such file" in failure(load, directory)
