"""The constants of one layer: which factor is folded where."""

from math import sqrt

import numpy as np

from compiler.quantise.graph import GELU_LAMBDA, LIMB_MAX, SILU_LAMBDA, QuantisedLayer
from compiler.quantise.heads import head_places, spread_heads
from compiler.quantise.matrix import quantise_matrix
from compiler.quantise.scales import (
    StreamRangeError,
    activation_unit,
    channel_units,
    input_eps,
    int8_step,
    normed_gain,
    stream_gain,
    to_float32,
)

#: A norm of one head drops its eps where every mean square on the calibration text is at least
#: this many times eps: the factor changes by less than 2**-15, half a unit of 16 bits.
EPS_NEGLIGIBLE = 2.0**14

#: lambda of t = lambda * gate, by `ModelConfig.activation`.
_LAMBDA = {"gelu_tanh": GELU_LAMBDA, "silu": SILU_LAMBDA}
#: Constants per output of Q, of K or of V.
_PER_HEAD = ("q", "q_scale", "q_gain", "k", "k_scale", "k_gain", "v", "v_scale", "v_gain",
             "attended_gain")


def pair_step(config, ranges, index):
    """int8 steps of K, [kv_heads, head_dim]: one for each pair, as rotation mixes its halves."""
    largest = ranges[f"{index}.k"]
    half = config.head_dim // 2
    pair = np.maximum(largest[:, :half], largest[:, half:])
    return int8_step(np.concatenate([pair, pair], axis=1))


def query_factor(config, ranges, index):
    """Factor on Q [heads, head_dim] that makes sums over int8 K into log2 of weights."""
    step = pair_step(config, ranges, index) * config.scale
    return np.repeat(step, config.heads // config.kv_heads, axis=0) / np.log(2)


class LayerBuilder:
    """Folds the constants of one layer.

    Parameters
    ----------
    weights, index, ranges, lanes, late_norms
        Model, layer, calibrated ranges, order of sums, place of the norms' factors.
    factor : float
        Product of the scalars of the layers before.
    """

    def __init__(self, weights, index, ranges, lanes, late_norms, factor):
        self._config = weights.config.layers[index]
        self._weights = weights.layers[index]
        self._stream_eps = input_eps(weights, factor, lanes)
        self._late = late_norms
        self._eps = weights.config.eps
        self._lambda = _LAMBDA[weights.config.activation]
        self._ranges = {
            name.partition(".")[2]: value
            for name, value in ranges.items() if name.startswith(f"{index}.")
        }
        self._all_ranges, self._index = ranges, index
        self._lanes, self._factor = lanes, factor

    def build(self, rope, score_scale):
        """The layer; `rope` is the index of its tables, `score_scale` the model's."""
        config = self._config
        return QuantisedLayer(
            heads=config.heads,
            kv_heads=config.kv_heads,
            head_dim=head_places(config.head_dim, self._lanes)[0],
            head_size=config.head_dim,
            window=config.window,
            rope=rope,
            qk_norm=config.qk_norm,
            v_norm=config.v_norm,
            **self._attention(score_scale),
            **self._network(),
        )

    def _stream(self, name):
        """Range, least and largest mean square of the stream "in" or "middle" of the layer."""
        if name == "in":
            name = "embedding" if self._index == 0 else f"{self._index - 1}.out"
        else:
            name = f"{self._index}.{name}"
        return (self._all_ranges[name], float(self._all_ranges[f"{name}.least"]),
                float(self._all_ranges[f"{name}.most"]))

    def _input(self, norm, largest, stream):
        """Gain in front of a matrix and unit of its inputs (over the norm's factor if late)."""
        if self._late:
            at, least, _ = self._stream(stream)
            try:
                return stream_gain(norm, at, least, self._factor)
            except StreamRangeError as error:
                raise StreamRangeError(f"layer {self._index}: {error}") from None
        return normed_gain(norm, largest, self._factor)

    def _norm(self, name, normed, scale):
        """Constants of the norm on each head of Q, K or V, all None if there is none; ``scale``:
        of its sums."""
        if not normed:
            return {f"{name}_scale": None, f"{name}_eps": None}
        eps = np.float32(0)
        if self._ranges[f"{name}_raw.least"] < EPS_NEGLIGIBLE * self._eps:
            eps = to_float32(self._head_eps())[()]
        return {f"{name}_scale": to_float32(scale), f"{name}_eps": eps}

    def _head_eps(self):
        """What the sum of squares of one head begins with, where that counts."""
        eps = self._config.head_dim * self._eps / self._lanes
        if self._late:
            # the head is not divided by the root mean square of the stream: take a middle one,
            # and hidden, which is in the unit of the inputs
            _, least, most = self._stream("in")
            eps *= sqrt(least * most) / self._factor**2
            eps *= self._weights.input_norm.size
        return eps

    def _attention(self, score_scale):
        config, w, ranges = self._config, self._weights, self._ranges
        root = sqrt(config.head_dim)
        q_norm, k_norm = (norm.astype(np.float64) * root if config.qk_norm else 1.0
                          for norm in (w.q_norm, w.k_norm))
        gain, unit = self._input(w.input_norm, ranges["attention_in"], "in")
        q, q_step = quantise_matrix(w.q)
        k, k_step = quantise_matrix(w.k)
        q_factor = query_factor(config, self._all_ranges, self._index) / score_scale
        k_factor = 1 / pair_step(config, self._all_ranges, self._index)
        v, v_step = (None, k_step) if w.v is None else quantise_matrix(w.v)
        v_value = int8_step(ranges["v"])
        o_unit = activation_unit(ranges["attention_out"])
        o, o_step = quantise_matrix(w.o)
        group = config.heads // config.kv_heads
        # where V is made from a K that is normalised, one sum of squares serves both
        own_v_norm = config.v_norm and not (w.v is None and config.qk_norm)
        found = {
            "q": q,
            "q_gain": to_float32(q_step * unit * (q_norm * q_factor).ravel()),
            **self._norm("q", config.qk_norm, q_step * unit),
            "k": k,
            "k_gain": to_float32(k_step * unit * (k_norm * k_factor).ravel()),
            **self._norm("k", config.qk_norm, k_step * unit),
            "v": v,
            "v_gain": to_float32(
                v_step * unit * ((root if config.v_norm else 1.0) / v_value).ravel()),
            **self._norm("v", own_v_norm, v_step * unit),
            "attended_gain": to_float32(
                np.repeat(v_value, group, axis=0).ravel() / LIMB_MAX / o_unit),
        }
        found |= {name: spread_heads(found[name], config.head_dim, self._lanes)
                  for name in _PER_HEAD if found[name] is not None}
        return {
            "attention_gain": gain,
            "attention_eps": self._stream_eps,
            **found,
            "o": spread_heads(o, config.head_dim, self._lanes, axis=0),
            **self._output("o", o_step * o_unit, w.post_attention_norm),
        }

    def _network(self):
        w, ranges = self._weights, self._ranges
        gain, unit = self._input(w.pre_ffn_norm, ranges["ffn_in"], "middle")
        gate, gate_step = quantise_matrix(w.gate)
        up, up_step = quantise_matrix(w.up)
        product_unit, factor = channel_units(ranges["ffn_product"])
        down, down_step = quantise_matrix(w.down * factor)
        return {
            "ffn_gain": gain,
            "ffn_eps": self._stream_eps,
            "gate": gate,
            "gate_scale": to_float32(gate_step * unit * self._lambda),
            "up": up,
            "up_gain": to_float32(up_step * unit / (self._lambda * product_unit * factor)),
            "down": down,
            **self._output("down", down_step * product_unit, w.post_ffn_norm),
        }

    def _output(self, name, scale, norm):
        """Constants of a matrix whose output is added to the residual stream, normalised if it has
        a norm."""
        if norm is None:
            return {f"{name}_scale": None, f"{name}_eps": None,
                    f"{name}_gain": to_float32(scale / self._factor)}
        count = norm.size
        return {
            f"{name}_scale": to_float32(scale),
            f"{name}_gain": to_float32(
                scale * norm.astype(np.float64) * sqrt(count) / self._factor),
            f"{name}_eps": np.float32(count * self._eps / self._lanes),
        }
