"""The network once more, from docs/numerics.md alone: loops over single numbers.

Python integers for the exact sums, one NumPy float32 operation at a time, rings of slots as lists.
Only the special functions are shared with the plain model; they have their own tests.
"""

from fractions import Fraction

import numpy as np

from compiler.quantise import graph
from compiler.reference.special import exp2, recip, rsqrt

F = np.float32


def nearest_float(integer):
    """An integer rounded once: compared as fractions with its two neighbours."""
    guess = F(integer)
    if abs(integer) < 1 << 24:
        return guess
    around = [np.nextafter(guess, F(-np.inf)), guess, np.nextafter(guess, F(np.inf))]

    def order(value):
        mantissa_is_odd = int(np.abs(value).view(np.uint32)) & 1
        return abs(Fraction(float(value)) - integer), mantissa_is_odd

    return min(around, key=order)


def to_int(x, low, high):
    return 0 if np.isnan(x) else int(min(max(np.rint(x), F(low)), F(high)))


def limbs(x):
    return to_int(x, -32639, 32639)


def matvec(vector, weight):
    return [nearest_float(sum(a * int(w) for a, w in zip(vector, column, strict=True)))
            for column in weight.T]


def ordered(values, lanes, start):
    """Chunks into 4 entries, fold, lane tree; entry 0 begins with `start` in every lane."""
    entries = [[start if e == 0 else F(0)] * lanes for e in range(4)]
    for n, value in enumerate(values):
        chunk, lane = divmod(n, lanes)
        entries[chunk % 4][lane] = entries[chunk % 4][lane] + value
    line = [(a + b) + (c + d) for a, b, c, d in zip(*entries, strict=True)]
    while len(line) > 1:
        line = [line[i] + line[i + 1] for i in range(0, len(line), 2)]
    return line[0]


def rms_factor(values, lanes, eps):
    return rsqrt(ordered([v * v for v in values], lanes, eps))[()]


class Scalar:
    """One token at a time."""

    def __init__(self, model, shards=1):
        self.model = model
        self.shards = shards
        self.caches = [{} for _ in model.layers]

    def step(self, token, position):
        model = self.model
        x = [F(int(e)) * model.embedding_scale[token] for e in model.embedding[token]]
        for layer, cache in zip(model.layers, self.caches, strict=True):
            x = self.layer(layer, cache, x, position)
        a = self.normed(x, model.head_gain, rms_factor(x, model.lanes, model.head_eps))
        return [s * g for s, g in zip(matvec(a, model.head.T), model.logit_gain, strict=True)]

    def normed(self, x, gain, factor):
        return [limbs((value * g) * factor) for value, g in zip(x, gain, strict=True)]

    def layer(self, layer, cache, x, position):
        lanes, size = self.model.lanes, layer.head_dim
        rope = self.model.ropes[layer.rope]
        late = self.model.late_norms
        r = rms_factor(x, lanes, layer.attention_eps)
        a = self.normed(x, layer.attention_gain, F(1) if late else r)
        after = r if late else F(1)
        q, k = matvec(a, layer.q), matvec(a, layer.k)
        v = k if layer.v is None else matvec(a, layer.v)
        v_scale, v_eps = ((layer.k_scale, layer.k_eps) if layer.v is None and layer.qk_norm
                          else (layer.v_scale, layer.v_eps))

        def head(values, index):
            return values[index * size : (index + 1) * size]

        def factor(normed, sums, scale, index, eps):
            if not normed:
                return after
            pairs = zip(head(sums, index), head(scale, index), strict=True)
            return rms_factor([s * c for s, c in pairs], lanes, eps)

        def gained(sums, gain, index):
            return [s * g for s, g in zip(head(sums, index), head(gain, index), strict=True)]

        slot = position if layer.window is None else position % layer.window
        for h in range(layer.kv_heads):
            r = factor(layer.qk_norm, k, layer.k_scale, h, layer.k_eps)
            turned = self.turn(rope, gained(k, layer.k_gain, h), position)
            keys = [to_int(value * r, -128, 127) for value in turned]
            r = factor(layer.v_norm, v, v_scale, h, v_eps)
            values = [to_int(value * r, -128, 127) for value in gained(v, layer.v_gain, h)]
            cache.setdefault(h, {})[slot] = keys, values
        attended = []
        for h in range(layer.heads):
            r = factor(layer.qk_norm, q, layer.q_scale, h, layer.q_eps)
            turned = self.turn(rope, gained(q, layer.q_gain, h), position)
            query = [limbs(value * r) for value in turned]
            attended += self.attend(query, cache[h * layer.kv_heads // layer.heads])
        a = [limbs(s * g) for s, g in zip(attended, layer.attended_gain, strict=True)]
        x = self.added(x, matvec(a, layer.o), layer.o_scale, layer.o_gain, layer.o_eps)
        r = rms_factor(x, lanes, layer.ffn_eps)
        a = self.normed(x, layer.ffn_gain, F(1) if late else r)
        after = r if late else F(1)
        gate = [s * c for s, c in zip(matvec(a, layer.gate), layer.gate_scale, strict=True)]
        up = [s * c for s, c in zip(matvec(a, layer.up), layer.up_gain, strict=True)]
        a = [self.gated(g * after, u * after) for g, u in zip(gate, up, strict=True)]
        return self.added(
            x, matvec(a, layer.down), layer.down_scale, layer.down_gain, layer.down_eps)

    @staticmethod
    def turn(rope, y, position):
        high, low = position // 16, position % 16
        out = []
        for i, value in enumerate(y):
            ch, sh, cl, sl = (table[row][i] for table, row in (
                (rope.cos_high, high), (rope.sin_high, high),
                (rope.cos_low, low), (rope.sin_low, low)))
            cos, sin = ch * cl - sh * sl, sh * cl + ch * sl
            out.append(value * cos + y[(i + len(y) // 2) % len(y)] * sin)
        return out

    def attend(self, query, slots):
        """Every shard by itself, then their mean weighted by their sums of weights."""
        totals, parts = [], []
        for shard in range(self.shards):
            mine = {slot // self.shards: pair for slot, pair in slots.items()
                    if slot % self.shards == shard}
            total, part = self.attend_shard(query, mine)
            totals.append(total)
            parts.append(part)
        if self.shards == 1:
            return parts[0]
        inverse = recip(self.fold(totals))[()]
        shares = [total * inverse for total in totals]
        return [self.fold([value * share for value, share in zip(column, shares, strict=True)])
                for column in zip(*parts, strict=True)]

    @staticmethod
    def fold(values):
        entries = [F(0)] * 4
        for t, value in enumerate(values):
            entries[t % 4] = entries[t % 4] + value
        return (entries[0] + entries[1]) + (entries[2] + entries[3])

    def attend_shard(self, query, slots):
        model = self.model
        weights = [F(0)] * (max(slots, default=0) + 1)
        for slot, (keys, _) in slots.items():
            total = nearest_float(sum(a * b for a, b in zip(query, keys, strict=True)))
            weights[slot] = exp2(min(total * model.score_scale, graph.SCORE_CAP))[()]
        total = ordered(weights, model.lanes, F(0))
        inverse = recip(total)[()] * F(32639)
        with np.errstate(invalid="ignore"):     # a shard in which nothing is visible: 0 * infinity
            p = [limbs(e * inverse) for e in weights]
        size = len(query)
        return total, [nearest_float(sum(p[slot] * values[i]
                                         for slot, (_, values) in slots.items()))
                       for i in range(size)]

    def added(self, x, sums, scale, gain, eps):
        r = F(1)
        if scale is not None:
            values = [s * c for s, c in zip(sums, scale, strict=True)]
            r = rms_factor(values, self.model.lanes, eps)
        return [(s * g) * r + old for s, g, old in zip(sums, gain, x, strict=True)]

    def gated(self, t, up):
        exponent = (t * t + graph.GELU_BETA) * t if self.model.activation == "gelu_tanh" else t
        return limbs((t * up) * recip(exp2(exponent) + F(1))[()])
