"""Configurations as JSON text, for program files, manifests and reports; read back with checks."""

import json
from dataclasses import fields

from .config import AluConfig, Link, PortConfig, SystemConfig, TileConfig, values_of

__all__ = ["system_from_json", "system_to_json"]

#: Largest value of a field in a text from elsewhere: what one computer can still simulate.
_LIMITS = {"tiles": 1 << 12, "lanes": 1 << 12, "streams": 1 << 12}
_LIMIT = 1 << 24


def system_to_json(system):
    """Text from which `system_from_json` makes an equal `SystemConfig`."""
    return json.dumps(values_of(system), sort_keys=True)


def _build(cls, values, **parts):
    if not isinstance(values, dict):
        raise ValueError(f"{cls.__name__} must be an object, not {values!r}")
    known = {field.name for field in fields(cls)}
    if set(values) != known:
        raise ValueError(f"{cls.__name__} must have the fields {', '.join(sorted(known))}")
    values = {**values, **parts}
    for field in fields(cls):
        value, limit = values[field.name], _LIMITS.get(field.name, _LIMIT)
        if field.type is bool and type(value) is not bool:
            raise ValueError(f"{cls.__name__}.{field.name} must be true or false, not {value!r}")
        if field.type is int and not (type(value) is int and 0 <= value <= limit):
            raise ValueError(f"{cls.__name__}.{field.name} must be a whole number of at most "
                             f"{limit}, not {value!r}")
        if isinstance(value, list):
            values[field.name] = tuple(value)
    return cls(**values)


def system_from_json(text):
    """`SystemConfig` of a text written by `system_to_json`.

    Raises
    ------
    ValueError
        On anything else, also on values that the configuration rejects.
    """
    try:
        values = json.loads(text)
        tile = {"sync": False, **values["tile"]}
        return _build(
            SystemConfig, values,
            tile=_build(TileConfig, tile,
                        alus=tuple(_build(AluConfig, alu) for alu in tile["alus"]),
                        ports=tuple(_build(PortConfig, port) for port in tile["ports"]),
                        host=_build(PortConfig, tile["host"])),
            links=tuple(_build(Link, link) for link in values["links"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"Machine description is malformed ({error!r})") from None
