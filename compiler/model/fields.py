"""Values by name, as config.json and the metadata of a GGUF file hold them, checked."""

from compiler.model.config import ModelError

#: Beyond float32 the reference cannot compute.
FLOAT_LIMIT = 2.0**127


def get(data, key, kind, optional=False):
    """data[key], of type `kind` (float takes whole numbers too), or None where `optional`."""
    if key not in data and not optional:
        raise ModelError(f"{key} is missing")
    value = data.get(key)
    if value is None and optional:
        return None
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ModelError(f"{key} must be of type {kind.__name__}, not {value!r:.60}")
    if kind is float and not abs(value) < FLOAT_LIMIT:      # not infinite, not NaN
        raise ModelError(f"{key} must be a finite number, not {value!r}")
    return kind(value)


def get_token(data, key):
    """A token number or None; where several are allowed (end of text) the first."""
    value = data.get(key)
    if isinstance(value, list) and value:
        return get({key: value[0]}, key, int)
    return get(data, key, int, optional=True)


def demand(data, values):
    """Refuse a key that is there with another value than ``values`` has for it."""
    for key, value in values.items():
        if data.get(key, value) != value:
            raise ModelError(f"{key} must be {value!r}, not {data[key]!r:.60}")
