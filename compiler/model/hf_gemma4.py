"""What the config.json of a `Gemma4ForCausalLM` says: Gemma 4's dense text decoder.

Anything that it does not have is refused by name.
"""

from compiler.model.config import LayerConfig, ModelConfig, ModelError
from compiler.model.fields import demand, get, get_token

#: Values that config.json may have or leave out; anything else is an architecture we do not run.
REQUIRED = {
    "hidden_activation": "gelu_pytorch_tanh",
    "attention_bias": False,
    "enable_moe_block": False,
    "use_double_wide_mlp": False,
    "num_kv_shared_layers": 0,
    "tie_word_embeddings": True,
    "use_bidirectional_attention": None,
}


def parse_gemma4(data):
    """The :class:`ModelConfig` of such a config.json; ModelError where it has none."""
    demand(data, REQUIRED)
    if get(data, "hidden_size_per_layer_input", int) != 0:
        raise ModelError(
            "hidden_size_per_layer_input must be 0: per-layer input embeddings are not supported"
        )
    kinds = get(data, "layer_types", list)
    count = get(data, "num_hidden_layers", int)
    if len(kinds) != count:
        raise ModelError(f"layer_types has {len(kinds)} entries, num_hidden_layers is {count}")
    return ModelConfig(
        vocab=get(data, "vocab_size", int),
        hidden=get(data, "hidden_size", int),
        ffn=get(data, "intermediate_size", int),
        layers=tuple(_parse_layer(data, index, kind) for index, kind in enumerate(kinds)),
        eps=get(data, "rms_norm_eps", float),
        softcap=get(data, "final_logit_softcapping", float, optional=True),
        max_position=get(data, "max_position_embeddings", int),
        bos=get_token(data, "bos_token_id"),
        eos=get_token(data, "eos_token_id"),
        pad=get_token(data, "pad_token_id"),
    )


def _parse_layer(data, index, kind):
    """LayerConfig of layer `index`, whose layer type is `kind`."""
    if kind not in ("sliding_attention", "full_attention"):
        raise ModelError(
            f"layer {index}: layer type must be sliding_attention or full_attention, not {kind!r}"
        )
    full = kind == "full_attention"
    k_eq_v = full and get(data, "attention_k_eq_v", bool)
    shape = {key: get(data, key, int) for key in ("head_dim", "num_key_value_heads")}
    # Two spellings: overrides per layer, and one set of values for all full-attention layers.
    if "per_layer_config" in data:
        overrides = get(data, "per_layer_config", dict).get(str(index), {})
        if not isinstance(overrides, dict) or not set(overrides) <= set(shape):
            raise ModelError(
                f"per_layer_config[{index}] may set head_dim and num_key_value_heads only"
            )
        shape |= {key: get(overrides, key, int) for key in overrides}
    elif full:
        shape["head_dim"] = get(data, "global_head_dim", int)
        if k_eq_v and data.get("num_global_key_value_heads") is not None:
            shape["num_key_value_heads"] = get(data, "num_global_key_value_heads", int)
    rope = get(get(data, "rope_parameters", dict), kind, dict)
    pairs = shape["head_dim"] // 2
    rope_type = get(rope, "rope_type", str)
    if rope_type == "proportional":
        if rope.get("factor", 1.0) != 1.0:
            raise ModelError(f"rope_parameters[{kind}]: factor must be 1, not {rope['factor']!r}")
        pairs = int(get(rope, "partial_rotary_factor", float) * shape["head_dim"] // 2)
    elif rope_type != "default":
        raise ModelError(
            f"rope_parameters[{kind}]: rope_type must be default or proportional, not {rope_type!r}"
        )
    try:
        return LayerConfig(
            heads=get(data, "num_attention_heads", int),
            kv_heads=shape["num_key_value_heads"],
            head_dim=shape["head_dim"],
            window=None if full else get(data, "sliding_window", int),
            k_eq_v=k_eq_v,
            rope_theta=get(rope, "rope_theta", float),
            rope_pairs=pairs,
        )
    except ModelError as error:
        raise ModelError(f"layer {index}: {error}") from None
