"""What every file format of Llama models needs: the architecture, and the order of Q and K."""

from compiler.model.config import (
    MAX_LAYERS,
    LayerConfig,
    ModelConfig,
    ModelError,
    check_most,
)

#: Base of the rotary frequencies where a file does not say it.
ROPE_THETA = 10000.0
#: Bound of what a file may ask for, beyond every model of this kind.
MAX_HEAD_DIM = 1 << 16


def llama_config(*, vocab, hidden, ffn, layers, heads, kv_heads, head_dim, rope_theta, eps,
                 max_position, tied, bos=None, eos=None, pad=None):
    """The :class:`ModelConfig` of a Llama model.

    Parameters
    ----------
    layers, heads, kv_heads : int
        How many.
    head_dim : int or None
        None: ``hidden / heads``.
    rope_theta, vocab, hidden, ffn, eps, max_position, tied, bos, eos, pad
        As of `LayerConfig` and `ModelConfig`.

    Raises
    ------
    ModelError
        A value out of range.
    """
    check_most("layers", layers, MAX_LAYERS)
    if head_dim is None:
        if heads < 1 or hidden % heads:
            raise ModelError(f"a width of {hidden} cannot be split over {heads} heads evenly")
        head_dim = hidden // heads
    if not 1 <= head_dim <= MAX_HEAD_DIM:
        raise ModelError(f"head_dim must be in 1..{MAX_HEAD_DIM}, not {head_dim}")
    layer = LayerConfig(heads=heads, kv_heads=kv_heads, head_dim=head_dim, window=None,
                        k_eq_v=False, rope_theta=rope_theta, rope_pairs=head_dim // 2,
                        qk_norm=False, v_norm=False, scale=head_dim**-0.5)
    return ModelConfig(vocab=vocab, hidden=hidden, ffn=ffn, layers=(layer,) * layers, eps=eps,
                       softcap=None, max_position=max_position, bos=bos, eos=eos, pad=pad,
                       activation="silu", post_norms=False, layer_scalars=False, tied=tied,
                       scaled_embedding=False)


def half_split(rows, heads):
    """Rows of Q or K [heads * head_dim, hidden] for rotating pairs (i, i + head_dim / 2).

    llama2.c and GGUF files hold them for pairs (2 i, 2 i + 1).
    """
    pairs = rows.reshape(heads, -1, 2, rows.shape[-1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)
