"""``oncycle disasm``: the instruction words and tables of a program as text."""

from compiler import program as program_file
from hdl.arch.encoding import EncodingError, decode, from_text, to_text
from hdl.arch.queues import queues
from sim.commands.options import add_program
from sim.errors import UsageError

__all__ = ["HELP", "add_arguments", "assemble", "disassemble", "run"]

HELP = "print the instructions of a program"

_RAW = ".word"


def disassemble(cfg, kind, words):
    """One line of assembler text for each word of a queue of ``kind``.

    A word that is no instruction is ``.word`` and its value.
    """
    lines = []
    for word in words:
        try:
            lines.append(to_text(decode(cfg, kind, word)))
        except EncodingError:
            lines.append(f"{_RAW} {word:#x}")
    return lines


def assemble(cfg, kind, lines):
    """Words of lines as `disassemble` writes them.

    Raises
    ------
    EncodingError
        On a malformed line.
    """
    return [int(line.split()[1], 0) if line.startswith(_RAW + " ") else from_text(cfg, kind, line)
            for line in lines]


def add_arguments(parser):
    """See `sim.cli`."""
    add_program(parser)
    parser.add_argument("--tile", type=int, help="only this tile")
    parser.add_argument("--queue", help="only this queue, for example mem0.read")


def run(options):
    """See `sim.cli`."""
    program = program_file.load(options.program)
    cfg, tiles = program.system.tile, program.binary.tiles
    names = [queue.name for queue in queues(cfg)]
    if options.tile is not None and not 0 <= options.tile < len(tiles):
        raise UsageError(f"Tile must be in 0..{len(tiles) - 1}, not {options.tile}")
    if options.queue is not None and options.queue not in names:
        raise UsageError(f"Queue must be one of {', '.join(names)}, not {options.queue!r}")
    for number, tile in enumerate(tiles):
        if options.tile not in (None, number):
            continue
        for queue in queues(cfg):
            if options.queue in (None, queue.name) and tile.words.get(queue.name):
                _print_queue(cfg, number, queue, tile)
    return 0


def _print_queue(cfg, number, queue, tile):
    print(f"# tile {number} {queue.name}")
    for entry, (shift, mask, step) in enumerate(tile.tables.get(queue.name, ())):
        if entry:
            print(f"# entry {entry}: ((index >> {shift}) & {mask:#x}) * {step}")
    for line in disassemble(cfg, queue.kind, tile.words[queue.name]):
        print(line)
