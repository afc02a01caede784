"""The quantised network in NumPy: what the machine must compute, bit for bit.

It knows nothing of instructions, tiles or cycles. One token at a time (`PlainModel.step`) with
int8 rings of keys and values, or whole sequences at once (`PlainModel.forward`) for perplexity;
both give the same bits. `docs/numerics.md` states every operation.
"""

import numpy as np

from compiler.model.config import ModelError
from compiler.quantise.graph import GELU_BETA, QuantisedModel
from compiler.reference.arithmetic import ordered_sum, to_activation, to_float, to_int8
from compiler.reference.attention import (
    attend_sequence,
    attend_slots,
    limits,
    rotary,
    rotate,
)
from compiler.reference.special import exp2, recip, rsqrt

_ONE = np.float32(1)

#: exp2 may overflow to infinity and 0 * infinity may turn up, both with a defined result (a gate
#: of 0, a rounded 0); the machine has no such warnings.
_quiet = np.errstate(over="ignore", invalid="ignore")


def product(activations, weight):
    """Exact sums: whole numbers [..., inputs] times int8 [inputs, outputs], as float64."""
    return activations @ weight.astype(np.float64)


def norm_factor(x, eps, lanes):
    """Factor of an RMSNorm of the residual stream [..., hidden], [..., 1]."""
    return rsqrt(ordered_sum(x * x, lanes, eps))


def normed_input(x, gain, factor):
    """Residual stream [..., hidden] to 16-bit activations; `factor` None: without it."""
    return to_activation(x * gain if factor is None else x * gain * factor)


def inverse_rms(sums, scale, eps, heads, lanes):
    """Factor of an RMSNorm over each head of a matrix's output, [..., heads, 1].

    Parameters
    ----------
    sums : np.ndarray, float32, [..., heads * size]
        Rounded sums of the matrix.
    scale : np.ndarray, float32, [heads * size]
    eps : np.float32
    heads, lanes : int
    """
    value = (sums * scale).reshape(*sums.shape[:-1], heads, -1)
    return rsqrt(ordered_sum(value * value, lanes, eps))


def attention_inputs(model, layer, x, cos, sin):
    """16-bit Q and int8 K and V of a layer.

    Parameters
    ----------
    model : QuantisedModel
    layer : compiler.quantise.graph.QuantisedLayer
    x : np.ndarray, float32, [n, hidden]
        The residual stream.
    cos, sin : np.ndarray, float32, [n, head_dim]

    Returns
    -------
    q, k, v : np.ndarray, whole numbers, [n, heads or kv_heads, head_dim]
    """
    lanes = model.lanes
    own = layer.qk_norm and layer.v_norm
    factor = None if model.late_norms and own else norm_factor(x, layer.attention_eps, lanes)
    a = normed_input(x, layer.attention_gain, None if model.late_norms else factor)
    late = factor[..., None] if model.late_norms and not own else None
    q, k = to_float(product(a, layer.q)), to_float(product(a, layer.k))
    v = k if layer.v is None else to_float(product(a, layer.v))
    q_factor = k_factor = v_factor = late
    if layer.qk_norm:
        q_factor = inverse_rms(q, layer.q_scale, layer.q_eps, layer.heads, lanes)
        k_factor = inverse_rms(k, layer.k_scale, layer.k_eps, layer.kv_heads, lanes)
    if layer.v_norm:
        v_factor = k_factor if layer.v_scale is None else \
            inverse_rms(v, layer.v_scale, layer.v_eps, layer.kv_heads, lanes)

    def heads(value, gain):
        return (value * gain).reshape(*value.shape[:-1], -1, layer.head_dim)

    return (
        to_activation(_times(rotate(heads(q, layer.q_gain), cos, sin), q_factor)),
        to_int8(_times(rotate(heads(k, layer.k_gain), cos, sin), k_factor)),
        to_int8(_times(heads(v, layer.v_gain), v_factor)),
    )


def _times(value, factor):
    """A value times a factor, if there is one."""
    return value if factor is None else value * factor


def added_output(x, sums, scale, gain, eps, lanes):
    """Residual stream plus a matrix's sums, [..., hidden], normalised where ``scale`` is not
    None."""
    sums = to_float(sums)
    if scale is None:
        return sums * gain + x
    value = sums * scale
    return sums * gain * rsqrt(ordered_sum(value * value, lanes, eps)) + x


def gated_network(model, layer, x):
    """Exact sums of `down`, [..., hidden], from the residual stream."""
    factor = norm_factor(x, layer.ffn_eps, model.lanes)
    a = normed_input(x, layer.ffn_gain, None if model.late_norms else factor)
    t = to_float(product(a, layer.gate)) * layer.gate_scale
    up = to_float(product(a, layer.up)) * layer.up_gain
    if model.late_norms:
        t, up = t * factor, up * factor
    exponent = (t * t + GELU_BETA) * t if model.activation == "gelu_tanh" else t
    sigmoid = recip(exp2(exponent) + _ONE)
    return product(to_activation(t * up * sigmoid), layer.down)


def finish_layer(model, layer, x, attended):
    """Residual stream after a layer.

    Parameters
    ----------
    model, layer
        As in :func:`attention_inputs`.
    x : np.ndarray, float32, [n, hidden]
        The residual stream that entered the layer.
    attended : np.ndarray, float32, [n, heads * head_dim]
        Sums over probabilities and V.
    """
    a = to_activation(attended * layer.attended_gain)
    x = added_output(x, product(a, layer.o), layer.o_scale, layer.o_gain, layer.o_eps, model.lanes)
    return added_output(
        x, gated_network(model, layer, x),
        layer.down_scale, layer.down_gain, layer.down_eps, model.lanes)


class PlainModel:
    """The quantised network.

    Parameters
    ----------
    model : QuantisedModel
    positions : int or None
        Capacity in positions of the caches of layers without a window; the model's if None.
    shards : sequence of int or None
        By layer, in how many parts the softmax over its slots is computed; 1 if None.

    Attributes
    ----------
    scores : np.ndarray, float32, [vocab]
        Of the last step: what argmax compares, the logits before the softcap.
    token : int
        Of the last step: the next token by argmax of `scores`, the lowest one of equals.
    """

    def __init__(self, model: QuantisedModel, positions=None, shards=None):
        self.model = model
        self._shards = shards or (1,) * len(model.layers)
        self.positions = model.max_position if positions is None else positions
        if not 1 <= self.positions <= model.max_position:
            raise ModelError(
                f"a context of {self.positions} positions is outside 1..{model.max_position}")
        self._caches = []
        for layer in model.layers:
            slots = self.positions if layer.window is None else layer.window
            shape = (slots, layer.kv_heads, layer.head_dim)
            self._caches.append((np.zeros(shape, np.int8), np.zeros(shape, np.int8)))
        self.scores, self.token = None, None

    @_quiet
    def step(self, token, position):
        """Feed one token; positions of one text come in order, from 0.

        Parameters
        ----------
        token : int
        position : int

        Returns
        -------
        np.ndarray, float32, [vocab]
            Logits of the token after it.

        Raises
        ------
        ModelError
            A token outside the vocabulary or a position outside the context.
        """
        model = self.model
        if not 0 <= position < self.positions:
            raise ModelError(f"position {position} is outside the context of {self.positions}")
        x = self._embed(np.asarray([token]))
        angles = [rotary(rope, np.asarray([position])) for rope in model.ropes]
        for layer, (keys, values), shards in zip(model.layers, self._caches, self._shards,
                                                 strict=True):
            q, k, v = attention_inputs(model, layer, x, *angles[layer.rope])
            slot = position % len(keys)
            keys[slot], values[slot] = k[0], v[0]
            limit = limits(np.arange(len(keys)) <= position)
            attended = attend_slots(
                layer, q[0], keys, values, limit, model.score_scale, model.lanes, shards)
            x = finish_layer(model, layer, x, attended[None])
        self.scores = self._scores(x)[0]
        self.token = int(np.argmax(self.scores))
        return self.logits(self.scores)

    @_quiet
    def forward(self, tokens):
        """Scores of a whole sequence from position 0; `step` gives the same bits.

        Parameters
        ----------
        tokens : array of int, [n]

        Returns
        -------
        np.ndarray, float32, [n, vocab]
            See `scores`; :meth:`logits` makes logits of them.

        Raises
        ------
        ModelError
            As in :meth:`step`.
        """
        return self._scores(self._layers(self._sequence(tokens))[0])

    @_quiet
    def keys_and_values(self, tokens):
        """K and V of a whole sequence from position 0; `step` puts the same into its rings.

        Parameters
        ----------
        tokens : array of int, [n]

        Returns
        -------
        list of (np.ndarray, np.ndarray)
            By layer, int8, [n, kv_heads, head_dim].

        Raises
        ------
        ModelError
            As in :meth:`step`.
        """
        return self._layers(self._sequence(tokens))[1]

    @_quiet
    def layers(self, x):
        """The layers alone, on a whole sequence from position 0.

        Parameters
        ----------
        x : np.ndarray, float32, [n, hidden]
            Residual stream that enters the first layer.

        Returns
        -------
        np.ndarray, float32, [n, hidden]
            Behind the last.
        """
        return self._layers(x)[0]

    def _sequence(self, tokens):
        """Residual stream of a sequence, [n, hidden]."""
        tokens = np.asarray(tokens)
        if not 1 <= tokens.size <= self.positions:
            raise ModelError(f"a sequence must have 1 to {self.positions} tokens, "
                             f"not {tokens.size}")
        return self._embed(tokens)

    def _layers(self, x):
        """Residual stream [n, hidden] behind the last layer, and K and V by layer."""
        model, found = self.model, []
        angles = [rotary(rope, np.arange(len(x))) for rope in model.ropes]
        for layer, shards in zip(model.layers, self._shards, strict=True):
            q, k, v = attention_inputs(model, layer, x, *angles[layer.rope])
            found.append((k.astype(np.int8), v.astype(np.int8)))
            attended = attend_sequence(layer, q, k, v, model.score_scale, model.lanes, shards)
            x = finish_layer(model, layer, x, attended)
        return x, found

    @_quiet
    def logits(self, scores):
        """Logits of scores: softcap * tanh(logit / softcap), which keeps their order."""
        cap = self.model.softcap
        if cap is None:
            return scores
        return recip(exp2(scores) + _ONE) * np.float32(-2 * cap) + cap

    def _embed(self, tokens):
        """Residual stream [n, hidden] of tokens [n]."""
        model = self.model
        outside = tokens[(tokens < 0) | (tokens >= model.vocab)]
        if outside.size:
            raise ModelError(
                f"token {outside.flat[0]} is outside the vocabulary of {model.vocab}")
        return model.embedding[tokens].astype(np.float32) * model.embedding_scale[tokens, None]

    def _scores(self, x):
        """Scores [n, vocab] of the residual stream after the last layer."""
        model = self.model
        factor = norm_factor(x, model.head_eps, model.lanes)
        a = normed_input(x, model.head_gain, factor)
        return to_float(product(a, model.head.T)) * model.logit_gain
