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
#: SiLU as t * recip(1 + exp2(t)) / SILU_LAMBDA with t = SILU_LAMBDA * x.
SILU_LAMBDA = float(-1 / np.log(2))

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

    ``head_dim`` is that of `QuantisedLayer`; what is left over has angle 0.
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
    begins with *in every lane*, ready for rsqrt(sum).  Those of a norm that the layer does not have
    are None.

    Parameters
    ----------
    heads, kv_heads : int
    head_dim : int
        Elements of a head, in whole vectors: see :func:`compiler.quantise.heads.head_places`.
    head_size : int
        Those that are not left over.
    window : int or None
        Slots of the ring of keys and values (a power of two); None: one slot per position.
    rope : int
        Index of the layer's tables in ``QuantisedModel.ropes``.
    qk_norm, v_norm : bool
        Whether each head of Q and K, and of V, is normalised by itself.
    attention_gain, ffn_gain : np.ndarray
        [hidden]; residual stream to 16-bit activations, before the factor rsqrt(sum) or without
        it (``QuantisedModel.late_norms``).
    attention_eps, ffn_eps, q_eps, k_eps, v_eps, o_eps, down_eps : np.float32
    q, k, v, o, gate, up, down : np.ndarray
        int8 [inputs, outputs]; `v` is None where V is made from the sums of K.
    q_scale, k_scale, v_scale, o_scale, down_scale : np.ndarray or None
        For the sums of squares. `v_scale` and `v_eps` are None also where `v` is and K is
        normalised: there K's sum of squares serves.
    q_gain, k_gain, v_gain : np.ndarray
        To 16-bit Q, int8 K and int8 V, before the factor rsqrt(sum) if there is one.
    attended_gain : np.ndarray
        [heads * head_dim]; sums over probabilities and V to 16-bit inputs of `o`.
    o_gain, down_gain : np.ndarray
        [hidden]; to the residual stream, before the factor rsqrt(sum) if there is one.
    gate_scale : np.ndarray
        [ffn]; sums to t = lambda * gate, with GELU_LAMBDA or SILU_LAMBDA.
    up_gain : np.ndarray
        [ffn]; sums to up / lambda in units of the 16-bit inputs of `down`.
    """

    heads: int
    kv_heads: int
    head_dim: int
    head_size: int
    window: int | None
    rope: int
    qk_norm: bool
    v_norm: bool
    attention_gain: np.ndarray
    attention_eps: np.float32
    q: np.ndarray
    q_scale: np.ndarray | None
    q_gain: np.ndarray
    q_eps: np.float32 | None
    k: np.ndarray
    k_scale: np.ndarray | None
    k_gain: np.ndarray
    k_eps: np.float32 | None
    v: np.ndarray | None
    v_scale: np.ndarray | None
    v_gain: np.ndarray
    v_eps: np.float32 | None
    attended_gain: np.ndarray
    o: np.ndarray
    o_scale: np.ndarray | None
    o_gain: np.ndarray
    o_eps: np.float32 | None
    ffn_gain: np.ndarray
    ffn_eps: np.float32
    gate: np.ndarray
    gate_scale: np.ndarray
    up: np.ndarray
    up_gain: np.ndarray
    down: np.ndarray
    down_scale: np.ndarray | None
    down_gain: np.ndarray
    down_eps: np.float32 | None


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
        gate and up, and of Q, K and V where they are not normalised themselves; else their own
        norms cancel it.
    activation : str
        As of :class:`compiler.model.config.ModelConfig`.
    vocab, hidden, ffn, max_position : int
    layers : tuple of QuantisedLayer
    ropes : tuple of Rope
        One per kind of layer.
    embedding : np.ndarray
        int8 [vocab, hidden].
    untied : np.ndarray or None
        int8 [vocab, hidden], the head (transposed); None where it is the embedding.
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
    activation: str
    vocab: int
    hidden: int
    ffn: int
    max_position: int
    layers: tuple[QuantisedLayer, ...]
    ropes: tuple[Rope, ...]
    embedding: np.ndarray
    untied: np.ndarray | None
    embedding_scale: np.ndarray
    head_gain: np.ndarray
    head_eps: np.float32
    score_scale: np.float32
    logit_gain: np.ndarray
    softcap: np.float32 | None

    @property
    def head(self):
        """np.ndarray: the head, int8 [vocab, hidden]."""
        return self.embedding if self.untied is None else self.untied
