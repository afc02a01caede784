"""Instruction words of one queue as nested loops over the issues they stand for.

Words run in order and loops only jump back to the first word of their body, so how many LOOPs are
open at a word is the same whenever it runs, and what stops a queue (HALT, or a word at fault) stops
it when it is met first.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from .decode import decode

__all__ = ["Leaf", "Block", "Source", "Program", "parse"]

_NOP_UNIT = 1 << 8      #: cycles of one in the field ``more`` of a NOP


class Source(NamedTuple):
    """What issues at one place of a program: the unit ``word``, its decoded ``op`` and ``fields``,
    the number of LOOPs open there, and the REPEAT's stride for each index."""
    word: int
    op: str
    fields: dict
    depth: int
    strides: tuple


class Leaf(NamedTuple):
    """Issues of one word: ``count`` of them, ``interval`` cycles apart, with repetition numbers
    from ``first`` on; the next word follows after ``duration`` cycles.  ``source`` is a number in
    `Program.sources`; None for a word that only waits."""
    source: int | None
    count: int
    interval: int
    first: int
    duration: int


@dataclass
class Block:
    """Body of a LOOP of ``level`` (-1: the program); ``count`` 0 stands for the step count."""
    level: int
    count: int
    items: list = field(default_factory=list)


@dataclass
class Program:
    """``body`` ends with a HALT, or with a fault (``valid`` is False) in its last cycle."""
    body: Block
    sources: list
    valid: bool


def parse(cfg, kind, words):
    """`Program` of the instruction ``words`` of a queue of ``kind``.

    The word that is at fault, or the place behind the last word, ends it with ``valid`` False.
    """
    body = Block(level=-1, count=1)
    opened = [body]
    sources = []
    previous = None         # (word, op, fields) that a REPEAT would repeat

    def end(valid):
        for block in opened[1:]:
            block.count = 1             # met in the first iteration
        return Program(body, sources, valid)

    for word in words:
        op, fields = decode(cfg, kind, word)
        open_loops = len(opened) - 1
        if op is None or fields["ends"] > open_loops \
                or op == "LOOP" and (open_loops == cfg.loop_levels or fields["ends"]) \
                or op == "REPEAT" and previous is None:
            return end(False)
        if op == "HALT":
            return end(True)
        duration = 1 + fields["wait"]
        if op == "LOOP":
            opened[-1].items.append(Leaf(None, 0, 1, 0, duration))
            block = Block(level=open_loops, count=fields["count"])
            opened[-1].items.append(block)
            opened.append(block)
            previous = None
            continue
        if op == "NOP":
            opened[-1].items.append(Leaf(None, 0, 1, 0, duration + fields["more"] * _NOP_UNIT))
            previous = None
        else:
            count, interval, first, strides = 1, 1, 0, ()
            if op == "REPEAT":
                count, interval, first = fields["count"] or 1, fields["interval"] or 1, 1
                strides = tuple(value for name, value in fields.items() if name.endswith("_stride"))
                duration += (count - 1) * interval
            else:
                previous = (word, op, fields)
            opened[-1].items.append(Leaf(len(sources), count, interval, first, duration))
            sources.append(Source(*previous, open_loops, strides))
        for _ in range(fields["ends"]):
            opened.pop()
    return end(False)
