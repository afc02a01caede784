"""What the config.json of a `LlamaForCausalLM` says.

Anything that Llama's decoder has not, and a rotation that is scaled, is refused by name.
"""

from compiler.model.config import ModelError
from compiler.model.fields import demand, get, get_token
from compiler.model.llama import ROPE_THETA, llama_config

#: Values that config.json may have or leave out; anything else is an architecture we do not run.
REQUIRED = {"hidden_act": "silu", "attention_bias": False, "mlp_bias": False}


def parse_llama(data):
    """The :class:`ModelConfig` of such a config.json; ModelError where it has none."""
    demand(data, REQUIRED)
    heads = get(data, "num_attention_heads", int)
    kv_heads = get(data, "num_key_value_heads", int, optional=True)
    return llama_config(
        vocab=get(data, "vocab_size", int),
        hidden=get(data, "hidden_size", int),
        ffn=get(data, "intermediate_size", int),
        layers=get(data, "num_hidden_layers", int),
        heads=heads,
        kv_heads=heads if kv_heads is None else kv_heads,
        head_dim=get(data, "head_dim", int, optional=True),
        rope_theta=_rope_theta(data),
        eps=get(data, "rms_norm_eps", float),
        max_position=get(data, "max_position_embeddings", int),
        tied=bool(get(data, "tie_word_embeddings", bool, optional=True)),
        bos=get_token(data, "bos_token_id"),
        eos=get_token(data, "eos_token_id"),
        pad=get_token(data, "pad_token_id"),
    )


def _rope_theta(data):
    """Base of the rotary frequencies in either spelling; a rotation of another kind is refused."""
    found = [get(data, "rope_theta", float, optional=True)]
    for key in ("rope_parameters", "rope_scaling"):
        rope = get(data, key, dict, optional=True) or {}
        for name in ("rope_type", "type"):
            if rope.get(name, "default") != "default":
                raise ModelError(f"{key}: {name} must be default, not {rope[name]!r:.60}: scaled "
                                 "rotary positions are not supported")
        found.append(get(rope, "rope_theta", float, optional=True))
        demand(rope, {"factor": 1.0, "partial_rotary_factor": 1.0})
    demand(data, {"partial_rotary_factor": 1.0})
    thetas = {theta for theta in found if theta is not None}
    if len(thetas) > 1:
        raise ModelError(f"rope_theta has two values, {min(thetas)} and {max(thetas)}")
    return thetas.pop() if thetas else ROPE_THETA
