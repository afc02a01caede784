"""The architecture of a decoder-only language model, as plain numbers.

Covers Gemma 4's dense text decoder and Llama's: attention with few KV heads, RMSNorm before each
block, a gated network, rotary positions.  Gemma 4 besides has RMSNorm after each block and on Q, K
and V of every head, rotates a part of each head, and has a scalar per layer and a softcap on the
logits; these are the defaults.
Nothing here knows a file format (see :mod:`compiler.model.checkpoint`) or a number format.
"""

from dataclasses import dataclass
from math import sqrt

#: Bounds of what a file may ask for, beyond every model of this kind.
MAX_LAYERS, MAX_POSITIONS = 1 << 10, 1 << 20
#: What the gated network may apply to its gate.
ACTIVATIONS = ("gelu_tanh", "silu")
#: Smallest normal number of float32.
FLOAT_LEAST = 2.0**-126


#: Characters of a message, which may quote names of a damaged file.
MESSAGE_LIMIT = 500


class ModelError(ValueError):
    """A model that cannot be used; the message is one line that says what is wrong and where."""

    def __init__(self, message):
        line = "".join(char if char.isprintable() else "?" for char in message)
        super().__init__(line if len(line) <= MESSAGE_LIMIT else f"{line[:MESSAGE_LIMIT]} ...")


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    """Shape of the attention of one decoder layer.

    Parameters
    ----------
    heads, kv_heads : int
        Query heads, and key/value heads; each KV head serves ``heads // kv_heads`` query heads.
    head_dim : int
        Size of a head of Q, K and V; even.
    window : int or None
        A query at position p sees keys at positions above p - window (itself included);
        None: all positions up to its own.
    k_eq_v : bool
        The layer has no V projection: V is the output of the K projection before K's
        normalisation and rotation.
    rope_theta : float
        Base of the rotary frequencies: pair i turns by theta ** (-2 i / head_dim) per position.
    rope_pairs : int
        Pairs (i, i + head_dim / 2) that rotate, the first ones; the others stay as they are.
    qk_norm : bool
        RMSNorm with weights on Q and K of every head.
    v_norm : bool
        RMSNorm without weights on V of every head.
    scale : float
        Factor on the products of Q and K.
    """

    heads: int
    kv_heads: int
    head_dim: int
    window: int | None
    k_eq_v: bool
    rope_theta: float
    rope_pairs: int
    qk_norm: bool = True
    v_norm: bool = True
    scale: float = 1.0

    def __post_init__(self):
        for name in ("heads", "kv_heads", "head_dim"):
            _positive(name, getattr(self, name))
        if self.window is not None:
            _positive("window", self.window)
        if self.heads % self.kv_heads:
            raise ModelError(
                f"{self.heads} query heads cannot share {self.kv_heads} KV heads evenly"
            )
        if self.head_dim % 2:
            raise ModelError(f"head_dim must be even for rotary positions, not {self.head_dim}")
        if not 0 <= self.rope_pairs <= self.head_dim // 2:
            raise ModelError(
                f"rope_pairs must be in 0..{self.head_dim // 2}, not {self.rope_pairs}"
            )
        _positive_real("rope_theta", self.rope_theta)
        _positive_real("scale", self.scale)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Architecture of a whole model.

    Parameters
    ----------
    vocab, hidden, ffn : int
        Tokens, width of the residual stream, width of the gated network.
    layers : tuple of LayerConfig
        First to last.
    eps : float
        Added to the mean square in every RMSNorm.
    softcap : float or None
        Logits are softcap * tanh(x / softcap); None: as they are.
    max_position : int
        Positions are 0 .. max_position - 1.
    bos, eos, pad : int or None
        Token numbers that begin and end a text and fill a batch.
    activation : str
        Of the gated network: "gelu_tanh" (GELU in its tanh approximation) or "silu".
    post_norms : bool
        RMSNorm with weights on what each block adds to the residual stream.
    layer_scalars : bool
        A factor per layer on the residual stream behind it.
    tied : bool
        The head is the transposed embedding.
    scaled_embedding : bool
        The embedding of a token is multiplied by sqrt(hidden).
    """

    vocab: int
    hidden: int
    ffn: int
    layers: tuple[LayerConfig, ...]
    eps: float
    softcap: float | None
    max_position: int
    bos: int | None = None
    eos: int | None = None
    pad: int | None = None
    activation: str = "gelu_tanh"
    post_norms: bool = True
    layer_scalars: bool = True
    tied: bool = True
    scaled_embedding: bool = True

    def __post_init__(self):
        for name in ("vocab", "hidden", "ffn", "max_position"):
            _positive(name, getattr(self, name))
        if not self.layers:
            raise ModelError("a model needs at least one layer")
        check_most("layers", len(self.layers), MAX_LAYERS)
        check_most("positions", self.max_position, MAX_POSITIONS)
        _positive_real("eps", self.eps)
        if self.softcap is not None:
            _positive_real("softcap", self.softcap)
        if self.activation not in ACTIVATIONS:
            raise ModelError(f"activation must be one of {', '.join(ACTIVATIONS)}, "
                             f"not {self.activation!r}")
        for name in ("bos", "eos", "pad"):
            token = getattr(self, name)
            if token is not None and not 0 <= token < self.vocab:
                raise ModelError(f"{name} token {token} is outside the vocabulary of {self.vocab}")

    @property
    def embed_scale(self):
        """float: factor on the embedding of a token."""
        return sqrt(self.hidden) if self.scaled_embedding else 1.0

    @property
    def parameters(self):
        """int: number of weights, a tied head counted once."""
        total = (1 if self.tied else 2) * self.vocab * self.hidden + self.hidden
        for layer in self.layers:
            q, kv = layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim
            projections = 2 * q + (1 if layer.k_eq_v else 2) * kv + 3 * self.ffn
            norms = (4 if self.post_norms else 2) * self.hidden
            total += projections * self.hidden + norms + self.layer_scalars
            total += 2 * layer.head_dim if layer.qk_norm else 0
        return total


def check_most(name, value, most):
    """ModelError where a model asks for more than ``most`` layers or positions."""
    if value > most:
        raise ModelError(f"a model may have at most {most} {name}, not {value}")


def _positive(name, value):
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelError(f"{name} must be a positive whole number, not {value!r}")


def _positive_real(name, value):
    if not value >= FLOAT_LEAST:
        raise ModelError(f"{name} must be positive, at least {FLOAT_LEAST:.2g}, not {value}")
