"""Words of a queue, decoded, and what of a binary can be refused without running it."""

from functools import cache, lru_cache

from amaranth.hdl import Shape

from hdl.arch import isa
from hdl.arch.binary import BinaryError
from hdl.arch.encoding import EncodingError, decode
from hdl.arch.isa import Operand, planes
from hdl.arch.ops import CONTROL, TWO_OPERANDS
from hdl.arch.queues import queues

from ..errors import VerifyError

__all__ = ["active_queues", "check_binary", "read_words", "stream_reads",
           "stream_writes", "table_of"]


def check_binary(system, binary):
    """Check that a binary fits ``system``: sizes, names, ranges.

    Raises
    ------
    VerifyError
        Naming what does not fit.
    """
    kinds = {queue.name: queue.kind for queue in queues(system.tile)}
    for number, tile in enumerate(binary.tiles):
        for name, table in tile.tables.items():
            if name in kinds:
                _check_table(f"Tile {number} {name}", table, _step_bits(system.tile, kinds[name]))
    if system.tile.sync:
        raise VerifyError("Verifier cannot check tiles with sync, whose arrivals are not planned: "
                          "check what the RTL run gives")
    try:
        binary.check(system)
    except BinaryError as error:
        raise VerifyError(str(error)) from None


@cache
def _step_bits(cfg, kind):
    return Shape.cast(isa.table_layout(cfg, kind)["step"].shape).width


def _check_table(where, table, bits):
    if not table:
        raise VerifyError(f"{where} has an empty table: its first entry must be (0, 0, 0)")
    for entry in table:
        shift, mask, step = (*entry, 0, 0, 0)[:3]
        if len(entry) != 3 or not 0 <= shift < 32 or not 0 <= mask < 1 << isa.COUNTER_BITS or \
                not -1 << bits - 1 <= step < 1 << bits - 1:
            raise VerifyError(f"{where} has a table entry {tuple(entry)!r}: it must be a shift "
                              f"below 32, a mask of {isa.COUNTER_BITS} bits and a signed step of "
                              f"{bits} bits")


def active_queues(cfg, binary):
    """Yield (tile, `Queue`, its `TileBinary`) of every queue that has words, in order."""
    for tile, content in enumerate(binary.tiles):
        for queue in queues(cfg):
            if content.words.get(queue.name):
                yield tile, queue, content


def table_of(queue, content):
    """Table of a queue; a queue that is given none has entry 0 alone."""
    return content.tables.get(queue.name) or [(0, 0, 0)]


def read_words(cfg, tile, queue, content):
    """(opcode name, fields) of every word of a queue.

    Raises
    ------
    VerifyError
        On a word that the instruction set lacks, or one that names a table entry or a stream which
        the queue or the tile lacks.
    """
    where = f"Tile {tile} {queue.name}"
    entries = len(table_of(queue, content))
    found = []
    for word in content.words[queue.name]:
        try:
            op, fields, entry, stream = _read(cfg, queue.kind, word)
        except EncodingError as error:
            raise VerifyError(f"{where}: {error}") from None
        if entry >= entries:
            raise VerifyError(f"{where} {op} names table entry {entry}, its table has {entries}")
        if stream >= cfg.streams:
            raise VerifyError(f"{where} {op} names stream {stream} of {cfg.streams}")
        found.append((op, fields))
    return found


@lru_cache(maxsize=1 << 16)
def _read(cfg, kind, word):
    """Opcode name, fields, the last table entry and the last stream that a word names, or 0."""
    op, fields = decode(cfg, kind, word)
    named = [fields.get("predicate", 0)]
    for name, value in fields.items():
        if name.endswith("_terms"):
            named += value
    streams = [0]
    if op not in CONTROL:
        streams += [stream for _, stream, _ in stream_reads(op, fields)]
        streams += [stream for _, stream in stream_writes(op, fields)]
    return op, fields, max(named), max(streams)


def stream_reads(op, fields):
    """(west, stream, last) of every stream that a unit word reads."""
    found = []
    for operand in _operands(op, fields):
        count = min(planes(op, fields, operand), 4)
        first = fields[operand] & ~(count - 1)
        found += [(fields[f"{operand}_west"], first + plane, fields[f"{operand}_last"])
                  for plane in range(count)]
    return found


def _operands(op, fields):
    if "source" in fields:
        return () if fields.get("buffered") else ("source",)
    return [f"{name}_source" for name in "ab"
            if name in fields and (name == "a" or op in TWO_OPERANDS)
            and fields[name] == Operand.STREAM.value]


def stream_writes(op, fields):
    """(west, stream) of every stream that a unit word writes."""
    found = []
    for west, side in enumerate(("east", "west")):
        if fields.get(f"{side}_en"):
            count = planes(op, fields, "target")
            first = (fields["target"] if "target" in fields else fields[side]) & ~(count - 1)
            found += [(west, first + plane) for plane in range(count)]
    return found
