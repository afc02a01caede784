"""The published implementations of Gemma 4 and Llama against ours (needs the developer extra)."""

from pathlib import Path

import numpy as np
import pytest

from compiler.model import checkpoint as checkpoints
from compiler.model import fp32, hf
from compiler.model.hf_config import parse_config
from models.evaluate import generate, prompts
from models.gemma4_mini import CONFIG, DIRECTORY

pytestmark = pytest.mark.slow


@pytest.fixture
def torch():
    torch = pytest.importorskip(
        "torch", reason="torch is not installed (developer extra dev-models)"
    )
    torch.set_num_threads(1)
    return torch


@pytest.fixture
def transformers(torch):
    return pytest.importorskip(
        "transformers", reason="transformers is not installed (developer extra dev-models)"
    )


@pytest.fixture
def published(torch, transformers):
    """The committed model as transformers loads it, in float32."""
    model, info = transformers.Gemma4ForCausalLM.from_pretrained(
        DIRECTORY, dtype=torch.float32, output_loading_info=True
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    return model.eval()


def heldout_tokens(checkpoint, count):
    text = (DIRECTORY / "heldout.txt").read_text()
    return np.array(checkpoint.tokenizer.encode(text[:8000])[:count])


def logits_of(torch, model, tokens):
    with torch.no_grad():
        return model(input_ids=torch.tensor(np.atleast_2d(tokens))).logits.numpy()


def test_logits_of_the_committed_model(torch, published):
    checkpoint = checkpoints.load(DIRECTORY)
    tokens = heldout_tokens(checkpoint, checkpoint.config.max_position)
    expected = logits_of(torch, published, tokens)[0]
    found = fp32.forward(checkpoint.weights, tokens)
    assert np.abs(expected).max() > 5
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4)
    decoder = fp32.Decoder(checkpoint.weights)
    stepped = np.array([decoder.step(int(token)) for token in tokens])
    np.testing.assert_allclose(stepped, expected, rtol=0, atol=2e-4)


def test_what_the_committed_model_writes(torch, published, transformers):
    checkpoint = checkpoints.load(DIRECTORY)
    tokenizer = transformers.AutoTokenizer.from_pretrained(DIRECTORY)
    for prompt in prompts((DIRECTORY / "heldout.txt").read_text())[::8]:
        inputs = tokenizer(prompt, return_tensors="pt")
        assert inputs.input_ids[0].tolist() == checkpoint.tokenizer.encode(prompt)
        written = published.generate(**inputs, max_new_tokens=60, do_sample=False)[0]
        text = tokenizer.decode(written, skip_special_tokens=True)
        assert text == prompt + generate(checkpoint, prompt, 60)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_random_models_of_other_shapes(torch, transformers, tmp_path, dtype, seed, rng):
    config = transformers.Gemma4TextConfig(
        vocab_size=70, hidden_size=36, intermediate_size=50, num_hidden_layers=4,
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        num_attention_heads=6, num_key_value_heads=3, head_dim=10, global_head_dim=24,
        num_global_key_value_heads=2, attention_k_eq_v=True, hidden_size_per_layer_input=0,
        max_position_embeddings=40, sliding_window=7, final_logit_softcapping=3.0,
        rms_norm_eps=1e-5,
    )
    compare(torch, transformers.Gemma4ForCausalLM, config, tmp_path, dtype, seed, rng)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("changes", [
    {},
    {"tie_word_embeddings": True, "num_key_value_heads": 6, "head_dim": 14},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 1e5}, "num_key_value_heads": 1},
], ids=["untied", "tied", "theta"])
def test_random_llamas(torch, transformers, tmp_path, changes, dtype, seed, rng):
    config = transformers.LlamaConfig(**dict(
        vocab_size=70, hidden_size=36, intermediate_size=50, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=40,
        rms_norm_eps=1e-5) | changes)
    compare(torch, transformers.LlamaForCausalLM, config, tmp_path, dtype, seed, rng)


def compare(torch, kind, config, directory, dtype, seed, rng):
    """Save a model of random weights, and compare ours of it with the one read back."""
    torch.manual_seed(seed)
    model = kind(config)
    state = model.state_dict()
    with torch.no_grad():
        for values in state.values():
            if values.dim() == 2:
                values.normal_(std=values.shape[1] ** -0.5)
            else:
                values.uniform_(0.3, 1.5)
    model.to(getattr(torch, dtype)).save_pretrained(directory)
    model = kind.from_pretrained(directory, dtype=torch.float32).eval()
    weights = hf.load_weights(directory, hf.load_config(directory))
    tokens = rng.integers(0, 70, (2, 40))
    expected = logits_of(torch, model, tokens)
    assert expected.std() > 0.3
    np.testing.assert_allclose(fp32.forward(weights, tokens), expected, rtol=0, atol=5e-5)


def test_the_network_that_is_trained(torch):
    safetensors = pytest.importorskip("safetensors.torch", reason="torch is not installed")
    from models.network import Network

    checkpoint = checkpoints.load(DIRECTORY)
    assert parse_config(CONFIG) == checkpoint.config
    net = Network(checkpoint.config)
    state = safetensors.load_file(Path(DIRECTORY) / "model.safetensors")
    net.load_state_dict({name: values.float() for name, values in state.items()})
    tokens = heldout_tokens(checkpoint, 192)
    found = logits_of_network(torch, net, tokens)
    np.testing.assert_allclose(
        found, fp32.forward(checkpoint.weights, tokens), rtol=0, atol=2e-4
    )


def logits_of_network(torch, net, tokens):
    with torch.no_grad():
        return net(torch.tensor(tokens)[None])[0].numpy()
