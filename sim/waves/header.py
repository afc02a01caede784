"""The names in a VCD, without reading the changes."""

from dataclasses import dataclass

__all__ = ["Header", "read_header"]


@dataclass(frozen=True)
class Header:
    """What comes before the changes.

    Attributes
    ----------
    names : dict of str to str
        Path of a signal to what GTKWave calls it: with its bit range, if it has one.
    begin : int or None
        First time at which something is dumped; None if nothing is.
    """

    names: dict
    begin: int | None


def read_header(path):
    """`Header` of the file ``path``."""
    names, scopes, begin = {}, [], None
    with open(path) as file:
        for line in file:
            words = line.split()
            if not words:
                continue
            if words[0] == "$scope":
                scopes.append(words[2])
            elif words[0] == "$upscope":
                scopes.pop()
            elif words[0] == "$var":
                name = ".".join([*scopes, words[4]])
                names[name] = name + "".join(words[5:-1])
            elif words[0].startswith("#"):
                begin = int(words[0][1:])
                break
    return Header(names, begin)
