"""What a Hugging Face config.json says about the architecture.

Anything that Gemma 4's dense text decoder does not have is refused by name.
"""

from compiler.model.config import LayerConfig, ModelConfig, ModelError

ARCHITECTURE = "Gemma4ForCausalLM"

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

#: Beyond float32 the reference cannot compute.
FLOAT_LIMIT = 2.0**127


def parse_config(data):
    """Turn the content of a config.json into a :class:`ModelConfig`.

    Parameters
    ----------
    data : dict

    Returns
    -------
    ModelConfig

    Raises
    ------
    ModelError
        Another architecture, a missing key, or a value out of range.
    """
    architectures = data.get("architectures")
    if architectures != [ARCHITECTURE]:
        found = ", ".join(map(str, architectures)) if isinstance(architectures, list) else "none"
        raise ModelError(f"architecture must be {ARCHITECTURE}, not {found}")
    for key, value in REQUIRED.items():
        if data.get(key, value) != value:
            raise ModelError(f"{key} must be {value!r}, not {data[key]!r}")
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
        bos=_token(data, "bos_token_id"),
        eos=_token(data, "eos_token_id"),
        pad=_token(data, "pad_token_id"),
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


def get(data, key, kind, optional=False):
    """data[key], of type `kind` (float takes whole numbers too), or None where `optional`."""
    if key not in data and not optional:
        raise ModelError(f"{key} is missing")
    value = data.get(key)
    if value is None and optional:
        return None
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ModelError(f"{key} must be of type {kind.__name__}, not {value!r}")
    if kind is float and not abs(value) < FLOAT_LIMIT:      # not infinite, not NaN
        raise ModelError(f"{key} must be a finite number, not {value!r}")
    return kind(value)


def _token(data, key):
    """A token number; where several are allowed (end of text) the first."""
    value = data.get(key)
    if isinstance(value, list) and value:
        return get({key: value[0]}, key, int)
    return get(data, key, int, optional=True)
