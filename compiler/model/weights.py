"""The float32 weights of a model, and the shape each of them must have.

Matrices are stored as Hugging Face stores them, [outputs, inputs]: y = W @ x.
"""

from dataclasses import dataclass

import numpy as np

from compiler.model.config import LayerConfig, ModelConfig

#: Fields of LayerWeights that a layer may lack.
OPTIONAL = ("v", "q_norm", "k_norm", "post_attention_norm", "post_ffn_norm", "scalar")


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """Weights of one decoder layer, float32.

    Parameters
    ----------
    q, k, o : np.ndarray
        [heads * head_dim, hidden], [kv_heads * head_dim, hidden], [hidden, heads * head_dim].
    v : np.ndarray or None
        Like `k`; None where ``k_eq_v``.
    q_norm, k_norm : np.ndarray or None
        [head_dim], the same for every head; None without ``qk_norm``.
    gate, up, down : np.ndarray
        [ffn, hidden], [ffn, hidden], [hidden, ffn].
    input_norm, pre_ffn_norm : np.ndarray
        [hidden].
    post_attention_norm, post_ffn_norm : np.ndarray or None
        [hidden]; None without ``post_norms``.
    scalar : np.ndarray or None
        [1], factor on the output of the layer (residual included); None without
        ``layer_scalars``.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray | None
    o: np.ndarray
    q_norm: np.ndarray | None
    k_norm: np.ndarray | None
    gate: np.ndarray
    up: np.ndarray
    down: np.ndarray
    input_norm: np.ndarray
    post_attention_norm: np.ndarray | None
    pre_ffn_norm: np.ndarray
    post_ffn_norm: np.ndarray | None
    scalar: np.ndarray | None


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of a model, float32.

    Parameters
    ----------
    config : ModelConfig
    embedding : np.ndarray
        [vocab, hidden].
    layers : tuple of LayerWeights
    norm : np.ndarray
        [hidden], the RMSNorm before the head.
    untied : np.ndarray or None
        [vocab, hidden], the output head; None where it is the embedding.
    """

    config: ModelConfig
    embedding: np.ndarray
    layers: tuple[LayerWeights, ...]
    norm: np.ndarray
    untied: np.ndarray | None = None

    @property
    def head(self):
        """np.ndarray: the output head, [vocab, hidden]."""
        return self.embedding if self.untied is None else self.untied


def layer_shapes(config: ModelConfig, layer: LayerConfig):
    """dict of str to tuple: shape of each field of LayerWeights that the layer has."""
    hidden, q, kv = config.hidden, layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim
    shapes = {
        "q": (q, hidden),
        "k": (kv, hidden),
        "v": (kv, hidden),
        "o": (hidden, q),
        "q_norm": (layer.head_dim,),
        "k_norm": (layer.head_dim,),
        "gate": (config.ffn, hidden),
        "up": (config.ffn, hidden),
        "down": (hidden, config.ffn),
        "input_norm": (hidden,),
        "post_attention_norm": (hidden,),
        "pre_ffn_norm": (hidden,),
        "post_ffn_norm": (hidden,),
        "scalar": (1,),
    }
    absent = {"v": layer.k_eq_v, "q_norm": not layer.qk_norm, "k_norm": not layer.qk_norm,
              "post_attention_norm": not config.post_norms, "post_ffn_norm": not config.post_norms,
              "scalar": not config.layer_scalars}
    return {name: shape for name, shape in shapes.items() if not absent.get(name)}


def layer_weights(tensors):
    """LayerWeights of a dict of the fields that `layer_shapes` names; the others are None."""
    return LayerWeights(**dict.fromkeys(OPTIONAL) | tensors)


def model_shapes(config: ModelConfig):
    """dict of str to tuple: shape of every tensor of a model.

    Keys are "embedding", "norm", "untied" (where the head is) and, with the layer's number in
    front, fields of LayerWeights: "3.q".
    """
    shapes = {"embedding": (config.vocab, config.hidden), "norm": (config.hidden,)}
    if not config.tied:
        shapes["untied"] = (config.vocab, config.hidden)
    for index, layer in enumerate(config.layers):
        for field, shape in layer_shapes(config, layer).items():
            shapes[f"{index}.{field}"] = shape
    return shapes


def model_weights(config: ModelConfig, tensors):
    """Weights of a dict with the keys and shapes of `model_shapes`."""
    layers = tuple(
        layer_weights({field: tensors[f"{index}.{field}"]
                       for field in layer_shapes(config, layer)})
        for index, layer in enumerate(config.layers)
    )
    return Weights(config=config, embedding=tensors["embedding"], layers=layers,
                   norm=tensors["norm"], untied=tensors.get("untied"))


def random_weights(config: ModelConfig, seed=0):
    """Random weights of the right shapes and of the size a trained model's have; for tests.

    Parameters
    ----------
    config : ModelConfig
    seed : int

    Returns
    -------
    Weights
        Float32 values that float16 and bfloat16 hold exactly, so that they survive being saved
        in either.
    """
    rng = np.random.default_rng(seed)

    def draw(name, shape):
        if name in ("q_norm", "k_norm"):
            values = shape[0] ** -0.25 * rng.uniform(0.7, 1.4, shape)
        elif len(shape) == 1:
            values = rng.uniform(0.5, 1.5, shape)
        else:
            values = rng.normal(0, shape[1] ** -0.5, shape)
        return _round_to_8_bits(values.astype(np.float32))

    layers = tuple(
        layer_weights({name: draw(name, shape)
                       for name, shape in layer_shapes(config, layer).items()})
        for layer in config.layers
    )
    return Weights(
        config=config,
        embedding=draw("embedding", (config.vocab, config.hidden)),
        layers=layers,
        norm=draw("norm", (config.hidden,)),
        untied=None if config.tied else draw("untied", (config.vocab, config.hidden)),
    )


def _round_to_8_bits(values):
    """Keep 8 significant bits (bfloat16's), and nothing below float16's smallest normal number."""
    mantissa, exponent = np.frexp(values)
    rounded = np.ldexp(np.round(mantissa * 256) / 256, exponent).astype(np.float32)
    return np.where(np.abs(rounded) < 2.0**-14, np.float32(0), rounded)
