"""llama2.c's format: what is written, read and run again, against the compiler's reference."""

import numpy as np
import pytest

from compiler.model import fp32
from compiler.model.config import LayerConfig, ModelConfig
from compiler.model.weights import Weights, layer_weights
from models import llama2c
from models.llama_mini import CONFIG, DIRECTORY
from tests.models import llama2c_numpy

#: Names of the compiler's weights by those of the network that is trained.
NAMES = {
    "self_attn.q_proj": "q", "self_attn.k_proj": "k", "self_attn.v_proj": "v",
    "self_attn.o_proj": "o", "mlp.gate_proj": "gate", "mlp.up_proj": "up",
    "mlp.down_proj": "down", "input_layernorm": "input_norm",
    "pre_feedforward_layernorm": "pre_ffn_norm",
}


def llama(head_dim, heads, kv_heads):
    layer = LayerConfig(heads=heads, kv_heads=kv_heads, head_dim=head_dim, window=None,
                        k_eq_v=False, rope_theta=1e4, rope_pairs=head_dim // 2, qk_norm=False,
                        v_norm=False, scale=head_dim**-0.5)
    return ModelConfig(vocab=37, hidden=heads * head_dim, ffn=29, layers=(layer,) * 3, eps=1e-5,
                       softcap=None, max_position=24, activation="silu", post_norms=False,
                       layer_scalars=False, scaled_embedding=False)


def random_tensors(config, rng):
    """Tensors by the names of the network, and the same as the compiler's weights."""
    layer = config.layers[0]
    kv = layer.kv_heads * layer.head_dim
    shapes = {
        "q": (config.hidden, config.hidden), "k": (kv, config.hidden), "v": (kv, config.hidden),
        "o": (config.hidden, config.hidden), "gate": (config.ffn, config.hidden),
        "up": (config.ffn, config.hidden), "down": (config.hidden, config.ffn),
        "input_norm": (config.hidden,), "pre_ffn_norm": (config.hidden,),
    }

    def draw(shape):
        values = rng.standard_normal(shape) if len(shape) == 2 else rng.uniform(0.3, 1.5, shape)
        return values.astype(np.float32) * shape[-1] ** (-0.5 if len(shape) == 2 else 0)

    layers = [{name: draw(shape) for name, shape in shapes.items()} for _ in config.layers]
    embedding, norm = draw((config.vocab, config.hidden)), draw((config.hidden,))
    tensors = {"model.embed_tokens.weight": embedding, "model.norm.weight": norm}
    for index, values in enumerate(layers):
        for name, ours in NAMES.items():
            tensors[f"model.layers.{index}.{name}.weight"] = values[ours]
    weights = Weights(config=config, embedding=embedding, norm=norm,
                      layers=tuple(layer_weights(values) for values in layers))
    return tensors, weights


@pytest.mark.parametrize("head_dim, heads, kv_heads", [(8, 4, 2), (6, 5, 5), (2, 6, 1)])
def test_written_read_and_run_is_what_the_reference_gives(rng, head_dim, heads, kv_heads):
    config = llama(head_dim, heads, kv_heads)
    tensors, weights = random_tensors(config, rng)
    read = llama2c_numpy.read_model(llama2c.model_bytes(tensors, config))
    tokens = rng.integers(0, config.vocab, config.max_position)
    expected = fp32.forward(weights, tokens)
    assert expected.std() > 0.3
    found = llama2c_numpy.Decoder(read).steps(tokens)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-5)


def test_written_tokenizer_is_read():
    pieces = ["th", "the", " ", "t", "h", "e", "\u00e9"]
    content = llama2c.tokenizer_bytes(pieces)
    tokenizer = llama2c_numpy.Tokenizer(content, 266)
    assert tokenizer.pieces[259:] == [piece.encode() for piece in pieces]
    assert tokenizer.encode("the\u00e9") == [1, 261, 260, 265]
    assert tokenizer.decode([1, 261, 260, 265]) == "the\u00e9"


def test_files_of_a_wrong_size_are_refused():
    content = (DIRECTORY / "model.bin").read_bytes()
    for damaged in (content[:-4], content + bytes(4)):
        with pytest.raises(ValueError, match="model.bin must have 1045276 bytes"):
            llama2c_numpy.read_model(damaged)
    content = (DIRECTORY / "tokenizer.bin").read_bytes()
    with pytest.raises(ValueError, match="has 5 bytes behind 500 tokens"):
        llama2c_numpy.Tokenizer(content + bytes(5), CONFIG.vocab)


def test_untied_heads_are_refused():
    content = bytearray((DIRECTORY / "model.bin").read_bytes())
    content[20:24] = (-500).to_bytes(4, "little", signed=True)
    with pytest.raises(ValueError, match="head of its own"):
        llama2c_numpy.read_model(bytes(content))


@pytest.mark.slow
def test_the_network_that_is_trained(rng):
    torch = pytest.importorskip(
        "torch", reason="torch is not installed (developer extra dev-models)"
    )
    from models.network import Network
    from models.train import arrays

    torch.set_num_threads(1)
    content = (DIRECTORY / "model.bin").read_bytes()
    read = llama2c_numpy.read_model(content)
    net = Network(CONFIG)
    tensors = {"model.embed_tokens.weight": read.tensors.embedding,
               "model.norm.weight": read.tensors.rms_final}
    stored = {"q": "wq", "k": "wk", "v": "wv", "o": "wo", "gate": "w1", "down": "w2", "up": "w3",
              "input_norm": "rms_att", "pre_ffn_norm": "rms_ffn"}
    # Row 2 i of a head came from row i, row 2 i + 1 from row i + 4.
    halves = [0, 2, 4, 6, 1, 3, 5, 7]
    for name, ours in NAMES.items():
        for index, value in enumerate(getattr(read.tensors, stored[ours])):
            if ours in "qk":
                value = value.reshape(-1, 8, 64)[:, halves].reshape(value.shape)
            tensors[f"model.layers.{index}.{name}.weight"] = value
    net.load_state_dict({name: torch.tensor(value) for name, value in tensors.items()})
    assert llama2c.model_bytes(arrays(net), CONFIG) == content
    tokens = rng.integers(259, 500, 256)
    with torch.no_grad():
        expected = net(torch.tensor(tokens)[None])[0].numpy()
        text = [1]
        while len(text) < 200:
            text.append(int(net(torch.tensor([text]))[0, -1].argmax()))
    found = llama2c_numpy.Decoder(read).steps(tokens)
    assert np.abs(expected).max() > 5
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    decoder, same = llama2c_numpy.Decoder(read), [1]
    while len(same) < 200:
        same.append(int(decoder.step(same[-1]).argmax()))
    assert same == text
