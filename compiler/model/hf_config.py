"""What a Hugging Face config.json says about the architecture, whichever of ours it is."""

from compiler.model.config import ModelError
from compiler.model.fields import demand
from compiler.model.hf_gemma4 import parse_gemma4
from compiler.model.hf_llama import parse_llama

#: By the name in ``architectures``.
PARSERS = {"Gemma4ForCausalLM": parse_gemma4, "LlamaForCausalLM": parse_llama}


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
    names = data.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or str(names[0]) not in PARSERS:
        found = ", ".join(map(str, names)) if isinstance(names, list) else "none"
        raise ModelError(f"architecture must be {' or '.join(PARSERS)}, not {found}")
    demand(data, {"quantization_config": None})
    return PARSERS[names[0]](data)
