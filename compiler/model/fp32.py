"""The float32 reference of a model in NumPy: what the quantised network is measured against.

Two ways through the same layers: :func:`forward` takes whole sequences, :class:`Decoder` one
token at a time with a KV cache. Both call the functions of one step below; they differ only in
which keys a query sees.
"""

import numpy as np

from compiler.model.config import LayerConfig, ModelError
from compiler.model.weights import Weights

#: sqrt(2 / pi) and the cubic term of the tanh approximation of GELU (Hendrycks and Gimpel 2016).
GELU_SCALE = np.float32(np.sqrt(2 / np.pi))
GELU_CUBIC = np.float32(0.044715)


def rms_norm(x, eps, weight=None):
    """x / sqrt(mean(x ** 2) + eps) over the last axis, times `weight` if there is one."""
    normed = x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(eps))
    return normed if weight is None else normed * weight


def gelu_tanh(x):
    """GELU in its tanh approximation, element by element."""
    return np.float32(0.5) * x * (1 + np.tanh(GELU_SCALE * (x + GELU_CUBIC * x * x * x)))


def silu(x):
    """x times its sigmoid, element by element."""
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


#: By `ModelConfig.activation`.
ACTIVATION = {"gelu_tanh": gelu_tanh, "silu": silu}


def softmax(scores):
    """exp(x - max) / sum over the last axis; a score of -inf gets probability 0."""
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def rope_table(layer: LayerConfig, positions):
    """Cosine and sine of the rotary angles of one layer.

    Parameters
    ----------
    layer : LayerConfig
    positions : array of int, [n]

    Returns
    -------
    cos, sin : np.ndarray, float32, [n, head_dim / 2]
        Pairs from ``rope_pairs`` on have angle 0.
    """
    pairs = np.arange(layer.rope_pairs, dtype=np.float32)
    frequency = np.zeros(layer.head_dim // 2, np.float32)
    frequency[: layer.rope_pairs] = 1 / np.float32(layer.rope_theta) ** (
        2 * pairs / np.float32(layer.head_dim)
    )
    angle = np.asarray(positions, np.float32)[:, None] * frequency
    return np.cos(angle), np.sin(angle)


def rotate(x, cos, sin):
    """Turn each pair (i, i + half) of heads [..., n, heads, head_dim] by its angle at n."""
    low, high = np.split(x, 2, axis=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return np.concatenate((low * cos - high * sin, high * cos + low * sin), axis=-1)


def visible(layer: LayerConfig, queries, keys):
    """bool [queries, keys]: may the query at one position see the key at another?"""
    distance = np.asarray(queries)[:, None] - np.asarray(keys)[None, :]
    seen = distance >= 0
    return seen if layer.window is None else seen & (distance < layer.window)


def _no_tap(name, value):
    """Default `tap`: look at nothing."""


def project_qkv(weights: Weights, index, x, positions, tap=_no_tap):
    """Q, K and V of one layer, normalised and rotated.

    Parameters
    ----------
    weights : Weights
    index : int
        Layer.
    x : np.ndarray, float32, [..., n, hidden]
        The residual stream.
    positions : array of int, [n]
    tap : callable(str, np.ndarray)
        Called with the name and value of every intermediate tensor.

    Returns
    -------
    q, k, v : np.ndarray, float32, [..., n, heads or kv_heads, head_dim]
    """
    config, layer, w = weights.config, weights.config.layers[index], weights.layers[index]
    x = rms_norm(x, config.eps, w.input_norm)
    tap(f"{index}.attention_in", x)
    q, k = x @ w.q.T, x @ w.k.T
    v = k if w.v is None else x @ w.v.T
    q, k, v = (t.reshape(*t.shape[:-1], -1, layer.head_dim) for t in (q, k, v))
    for name, value in (("q_raw", q), ("k_raw", k), ("v_raw", v)):
        tap(f"{index}.{name}", value)
    cos, sin = rope_table(layer, positions)
    if layer.qk_norm:
        q, k = rms_norm(q, config.eps, w.q_norm), rms_norm(k, config.eps, w.k_norm)
    if layer.v_norm:
        v = rms_norm(v, config.eps)
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    for name, value in (("q", q), ("k", k), ("v", v)):
        tap(f"{index}.{name}", value)
    return q, k, v


def attend(layer: LayerConfig, q, k, v, seen, tap=_no_tap, name=""):
    """Softmax attention.

    Parameters
    ----------
    layer : LayerConfig
    q : np.ndarray, [..., n, heads, head_dim]
    k, v : np.ndarray, [..., m, kv_heads, head_dim]
    seen : np.ndarray of bool, [n, m]
    tap, name
        As in :func:`project_qkv`; `name` goes in front of the tensors' names.

    Returns
    -------
    np.ndarray, [..., n, heads * head_dim]
        Heads in order.
    """
    group = layer.heads // layer.kv_heads
    q = q.reshape(*q.shape[:-2], layer.kv_heads, group, layer.head_dim)
    q = np.moveaxis(q, -4, -2)                              # [..., kv_heads, group, n, head_dim]
    k = np.moveaxis(k, -3, -2)[..., None, :, :]             # [..., kv_heads, 1, m, head_dim]
    v = np.moveaxis(v, -3, -2)[..., None, :, :]
    scores = q @ np.swapaxes(k, -1, -2) * np.float32(layer.scale)
    scores = np.where(seen, scores, np.float32(-np.inf))
    tap(f"{name}largest_scores", scores.max(axis=-1))
    p = softmax(scores)
    tap(f"{name}probabilities", p)
    out = np.moveaxis(p @ v, -2, -4)                        # [..., n, kv_heads, group, head_dim]
    return out.reshape(*out.shape[:-3], layer.heads * layer.head_dim)


def finish_layer(weights: Weights, index, x, attention, tap=_no_tap):
    """The rest of a layer after its attention: output projection, gated network, layer scalar.

    Parameters
    ----------
    weights, index, tap
        As in :func:`project_qkv`.
    x : np.ndarray, [..., n, hidden]
        The residual stream that entered the layer.
    attention : np.ndarray, [..., n, heads * head_dim]

    Returns
    -------
    np.ndarray, [..., n, hidden]
    """
    eps, w = weights.config.eps, weights.layers[index]
    tap(f"{index}.attention_out", attention)
    out = attention @ w.o.T
    tap(f"{index}.o_raw", out)
    x = x + (out if w.post_attention_norm is None else rms_norm(out, eps, w.post_attention_norm))
    tap(f"{index}.middle", x)
    h = rms_norm(x, eps, w.pre_ffn_norm)
    tap(f"{index}.ffn_in", h)
    gate, up = h @ w.gate.T, h @ w.up.T
    tap(f"{index}.gate_raw", gate)
    tap(f"{index}.up_raw", up)
    product = ACTIVATION[weights.config.activation](gate) * up
    tap(f"{index}.ffn_product", product)
    out = product @ w.down.T
    tap(f"{index}.down_raw", out)
    x = x + (out if w.post_ffn_norm is None else rms_norm(out, eps, w.post_ffn_norm))
    if w.scalar is not None:
        x = x * w.scalar
    tap(f"{index}.out", x)
    return x


def embed(weights: Weights, tokens):
    """Scaled embeddings, float32, [..., hidden]."""
    return weights.embedding[tokens] * np.float32(weights.config.embed_scale)


def logits_of(weights: Weights, x, tap=_no_tap):
    """Logits, float32, [..., vocab], of the residual stream after the last layer."""
    config = weights.config
    x = rms_norm(x, config.eps, weights.norm)
    tap("head_in", x)
    logits = x @ weights.head.T
    tap("logits_raw", logits)
    if config.softcap is None:
        return logits
    cap = np.float32(config.softcap)
    return np.tanh(logits / cap) * cap


def forward(weights: Weights, tokens, tap=_no_tap):
    """Logits of whole sequences that begin at position 0.

    Parameters
    ----------
    weights : Weights
    tokens : array of int, [n] or [batch, n]
    tap : callable(str, np.ndarray)
        Called with the name (layer number first) and value of every intermediate tensor, in
        order; for calibration and statistics.

    Returns
    -------
    np.ndarray, float32, [n, vocab] or [batch, n, vocab]

    Raises
    ------
    ModelError
        A token outside the vocabulary, or more tokens than the model has positions.
    """
    config = weights.config
    tokens = np.asarray(tokens)
    _check_tokens(config, tokens)
    if not 1 <= tokens.shape[-1] <= config.max_position:
        raise ModelError(
            f"a sequence must have 1 to {config.max_position} tokens, not {tokens.shape[-1]}"
        )
    positions = np.arange(tokens.shape[-1])
    x = embed(weights, tokens)
    tap("embedding", x)
    for index, layer in enumerate(config.layers):
        q, k, v = project_qkv(weights, index, x, positions, tap)
        seen = visible(layer, positions, positions)
        attention = attend(layer, q, k, v, seen, tap, f"{index}.")
        x = finish_layer(weights, index, x, attention, tap)
    return logits_of(weights, x, tap)


class Decoder:
    """One token at a time, with the keys and values of the earlier ones kept.

    Parameters
    ----------
    weights : Weights

    Attributes
    ----------
    position : int
        Of the next token.
    """

    def __init__(self, weights: Weights):
        self._weights = weights
        self._caches = [
            tuple(
                np.zeros((weights.config.max_position, c.kv_heads, c.head_dim), np.float32)
                for _ in "kv"
            )
            for c in weights.config.layers
        ]
        self.position = 0

    def step(self, token, tap=_no_tap):
        """Feed one token.

        Parameters
        ----------
        token : int
        tap
            As in :func:`forward`.

        Returns
        -------
        np.ndarray, float32, [vocab]
            Logits of the token after it.

        Raises
        ------
        ModelError
            A token outside the vocabulary, or no position left.
        """
        weights, config, here = self._weights, self._weights.config, self.position
        _check_tokens(config, np.asarray(token))
        if here >= config.max_position:
            raise ModelError(f"the model has {config.max_position} positions, all of them used")
        x = embed(weights, np.asarray([token]))
        tap("embedding", x)
        for index, layer in enumerate(config.layers):
            q, k, v = project_qkv(weights, index, x, [here], tap)
            keys, values = self._caches[index]
            keys[here], values[here] = k[0], v[0]
            first = 0 if layer.window is None else max(0, here + 1 - layer.window)
            span = slice(first, here + 1)
            seen = np.ones((1, here + 1 - first), bool)
            attention = attend(layer, q, keys[span], values[span], seen, tap, f"{index}.")
            x = finish_layer(weights, index, x, attention, tap)
        self.position = here + 1
        return logits_of(weights, x, tap)[0]


def _check_tokens(config, tokens):
    if not np.issubdtype(tokens.dtype, np.integer):
        raise ModelError(f"tokens must be whole numbers, not {tokens.dtype}")
    if tokens.size and not 0 <= tokens.min() <= tokens.max() < config.vocab:
        outside = tokens[(tokens < 0) | (tokens >= config.vocab)].flat[0]
        raise ModelError(f"token {outside} is outside the vocabulary of {config.vocab}")
