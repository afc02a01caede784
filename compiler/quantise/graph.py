"""The quantised network: every integer and every float32 constant that a program computes with.

This is all that the plain model and the lowering know of a model. Numerics, in full in
``docs/numerics.md``: weights are int8 with one scale per output channel, activations that enter a
matrix are 16-bit integers (two int8 limbs, high * 256 + low), sums are exact, and everything
between two matrices is float32. A *gain* is a float32 factor per channel into which the scales of
both sides, a norm's weight and sqrt(n) are folded, so that one multiplication does for all.

Matrices here are [inputs, outputs]: sums = activations @ weight.
"""

from dataclasses import dataclass

import numpy as np

#: Largest magnitude of a 16-bit activation: what two signed int8 limbs hold symmetrically.
LIMB_MAX = 127 * 256 + 127
#: Accumulators of a reduction; element chunk c goes into accumulator c mod 4.
ENTRIES = 4
#: Positions in the lower level of a rotary table: position = high * ROPE_LOW + low.
ROPE_LOW = 16

#: tanh-GELU as t * recip(1 + exp2(t * (t * t + GELU_BETA))) / GELU_LAMBDA with
#: t = GELU_LAMBDA * x: with s = -2 log2(e) sqrt(2 / pi), the exponent s (x + 0.044715 x**3) has
#: no factor on its cube when GELU_LAMBDA**3 = 0.044715 s; then GELU_BETA = s / GELU_LAMBDA.
_GELU_SLOPE = -2 / np.log(2) * np.sqrt(2 / np.pi)
GELU_LAMBDA = float(np.cbrt(0.044715 * _GELU_SLOPE))
GELU_BETA = np.float32(_GELU_SLOPE / GELU_LAMBDA)

#: A visible score (log2 of a weight) is cut at SCORE_CAP, so that no sum of up to 2**26 weights
#: overflows and no reciprocal underflows; a hidden one is pulled to SCORE_HIDDEN, where exp2 is 0.
SCORE_CAP = np.float32(100)
SCORE_HIDDEN = np.float32(-256)


@dataclass(frozen=True, kw_only=True)
class Rope:
    """Two-level rotary tables of one kind of layer, float32.

    Row i of ``cos_low`` is cos(i * frequency) (i < ROPE_LOW), row j of ``cos_high`` is
    cos(j * ROPE_LOW * frequency). The sines carry the sign of the half of the head they serve:
    negative in the first half. Pair i is (i, i + head_dim / 2).

    Parameters
    ----------
    cos_low, sin_low : np.ndarray
        [ROPE_LOW, head_dim].
    cos_high, sin_high : np.ndarray
        [ceil(positions / ROPE_LOW), head_dim].
    """

    cos_low: np.ndarray
    sin_low: np.ndarray
    cos_high: np.ndarray
    sin_high: np.ndarray


@dataclass(frozen=True, kw_only=True)
class QuantisedLayer:
    """One decoder layer.

    ``*_scale`` turns a sum into the value itself (float32, a factor per output), ``*_gain`` into
    the value times all that follows before the next rounding; ``*_eps`` is what a sum of squares
    begins with *in every lane*, ready for rsqrt(sum).

    Parameters
    ----------
    heads, kv_heads, head_dim : int
    window : int or None
        Slots of the ring of keys and values (a power of two); None: one slot per position.
    rope : int
        Index of the layer's tables in ``QuantisedModel.ropes``.
    attention_gain, ffn_gain : np.ndarray
        [hidden]; residual stream to 16-bit activations, before the factor rsqrt(sum) or without
        it (``QuantisedModel.late_norms``).
    attention_eps, ffn_eps, q_eps, k_eps, v_eps, o_eps, down_eps : np.float32
    q, k, v, o, gate, up, down : np.ndarray
        int8 [inputs, outputs]; `v` is None where V is made from the sums of K.
    q_scale, k_scale, v_scale, o_scale, down_scale : np.ndarray
        For the sums of squares. `v_scale` and `v_eps` are None where `v` is: there K's sum of
        squares serves.
    q_gain, k_gain, v_gain : np.ndarray
        To 16-bit Q, int8 K and int8 V, before the factor rsqrt(sum).
    attended_gain : np.ndarray
        [heads * head_dim]; sums over probabilities and V to 16-bit inputs of `o`.
    o_gain, down_gain : np.ndarray
        [hidden]; to the residual stream, before the factor rsqrt(sum).
    gate_scale : np.ndarray
        [ffn]; sums to t = GELU_LAMBDA * gate.
    up_gain : np.ndarray
        [ffn]; sums to up / GELU_LAMBDA in units of the 16-bit inputs of `down`.
    """

    heads: int
    kv_heads: int
    head_dim: int
    window: int | None
    rope: int
    attention_gain: np.ndarray
    attention_eps: np.float32
    q: np.ndarray
    q_scale: np.ndarray
    q_gain: np.ndarray
    q_eps: np.float32
    k: np.ndarray
    k_scale: np.ndarray
    k_gain: np.ndarray
    k_eps: np.float32
    v: np.ndarray | None
    v_scale: np.ndarray | None
    v_gain: np.ndarray
    v_eps: np.float32 | None
    attended_gain: np.ndarray
    o: np.ndarray
    o_scale: np.ndarray
    o_gain: np.ndarray
    o_eps: np.float32
    ffn_gain: np.ndarray
    ffn_eps: np.float32
    gate: np.ndarray
    gate_scale: np.ndarray
    up: np.ndarray
    up_gain: np.ndarray
    down: np.ndarray
    down_scale: np.ndarray
    down_gain: np.ndarray
    down_eps: np.float32


@dataclass(frozen=True, kw_only=True)
class QuantisedModel:
    """A whole network.

    Parameters
    ----------
    lanes : int
        Lanes of a vector, a power of two: float32 sums are ordered by it.
    late_norms : bool
        When the factor rsqrt(sum) of the norms in front of Q, K, V, gate and up is applied. False:
        before rounding to 16 bits. True: rounding does not wait for it; it multiplies the sums of
        gate and up, and Q, K and V do without, as their own norms cancel it.
    vocab, hidden, ffn, max_position : int
    layers : tuple of QuantisedLayer
    ropes : tuple of Rope
        One per kind of layer.
    embedding : np.ndarray
        int8 [vocab, hidden]; also the head (transposed).
    embedding_scale : np.ndarray
        [vocab]; row of the table to residual stream.
    head_gain : np.ndarray
        [hidden]; residual stream to 16-bit activations, before the factor rsqrt(sum).
    head_eps : np.float32
    score_scale : np.float32
        Sums of Q and K to log2 of attention weights: a power of two, the same in every layer.
    logit_gain : np.ndarray
        [vocab]; sums of the head to what argmax compares: 2 log2(e) logit / softcap, or the logit
        itself where there is no softcap.
    softcap : np.float32 or None
    """

    lanes: int
    late_norms: bool
    vocab: int
    hidden: int
    ffn: int
    max_position: int
    layers: tuple[QuantisedLayer, ...]
    ropes: tuple[Rope, ...]
    embedding: np.ndarray
    embedding_scale: np.ndarray
    head_gain: np.ndarray
    head_eps: np.float32
    score_scale: np.float32
    logit_gain: np.ndarray
    softcap: np.float32 | None
