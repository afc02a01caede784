"""``oncycle report``: what a program costs: cycles, busy units, links, memories, loops."""

from pathlib import Path

from compiler import program as program_file
from hdl.arch.queues import queues
from sim.commands.options import add_model, positive
from sim.compiling import MACHINE_TILES, model_program
from sim.progress import say
from sim.report.figures import (
    busy_cycles,
    instruction_bytes,
    instruction_memory,
    link_vectors,
    sram_words,
    step_cycles,
    stretches,
)
from sim.report.slack import exchanges, products, spread
from sim.report.table import percent, table

__all__ = ["HELP", "add_arguments", "run"]

HELP = "say what a program costs: cycles a token, busy units, links, memories, loops"


def add_arguments(parser):
    """See `sim.cli`."""
    parser.add_argument("program", type=Path, nargs="?",
                        help="program file (.npz); without one, that of a model")
    parser.add_argument("--tiles", type=positive, default=MACHINE_TILES,
                        help="tiles of a model's program (default: %(default)s)")
    add_model(parser)


def run(options):
    """See `sim.cli`."""
    if options.program is None:
        program = model_program(options.model, options.tiles, options.context, report=say,
                                calibration=options.calibration)
    else:
        program = program_file.load(options.program)
    for part in (_time, _bounds, _busy, _links, _slack, _instructions, _sram):
        if lines := part(program):
            print("\n".join(lines), end="\n\n")
    print(_summary(program))
    return 0


def _time(program):
    """Cycles a token beside their bounds, and where they go."""
    cycles = step_cycles(program.plan)
    lines = [f"{program.system.tiles} tiles of {program.system.tile.lanes} lanes, "
             f"{cycles:,} cycles a step (of a model: a token)"]
    rows = [("  " * part.depth + ("loop" if part.loop else "straight"), part.start, part.cycles,
             part.runs, part.total, percent(part.total, cycles), part.issues)
            for part in stretches(program.plan)]
    return lines + ["", *table(("part of a step", "at cycle", "cycles", "runs", "in all", "share",
                                "instructions a run"), rows)]


def _bounds(program):
    """What the cycles are measured against, region after region of time."""
    if program.bounds is None:
        return ["bounds: none in this program"]
    rows = [(f"region {number}", region.cycles, region.runs, region.bound,
             f"{region.cycles / region.bound:.3f}", region.binds)
            for number, region in enumerate(program.bounds.regions)]
    return [program.bounds.line(step_cycles(program.plan)), "",
            *table(("in order of time", "cycles", "runs", "bound", "ratio", "binds"), rows)]


def _busy(program):
    """Busy cycles of the unit behind every queue: the mean of all tiles, and the busiest."""
    cycles = step_cycles(program.plan)
    busy = busy_cycles(program.plan)
    rows = []
    for number, queue in enumerate(queues(program.system.tile)):
        mine = busy[:, number]
        tile = int(mine.argmax())
        rows.append((_unit(queue), round(mine.mean()), percent(mine.mean(), cycles),
                     int(mine[tile]), percent(mine[tile], cycles), tile))
    header = ("busy cycles a step", "mean", "share", "most", "share", "on tile")
    if program.system.tiles == 1:
        header = ("busy cycles a step", "cycles", "share")
    return table(header, [row[:len(header)] for row in rows])


def _unit(queue):
    """Name of what a queue keeps busy."""
    way = {"send": "out", "recv": "in"}.get(queue.kind)
    return f"{queue.name.split('.')[0]} {way}" if way else queue.name


def _links(program):
    """Vectors and time on the wire of every link."""
    system, cycles = program.system, step_cycles(program.plan)
    cfg, vectors, host = system.tile, link_vectors(program.plan), len(system.tile.ports)
    ends = [(f"tile {link.source} link{link.source_port} to tile {link.target} "
             f"link{link.target_port}", link.source, link.source_port, link.latency)
            for link in system.links]
    ends += [(f"tile {tile} to the host", tile, host, system.host_latency)
             for tile in range(system.tiles) if vectors[tile, host]]
    rows = []
    for name, tile, port, latency in ends:
        count = int(vectors[tile, port])
        wire = count * cfg.port(port).flits(cfg.lanes)
        rows.append((name, latency, count, wire, percent(wire, cycles)))
    return table(("link", "latency", "vectors a step", "cycles on the wire", "share"), rows)


def _slack(program):
    """How long vectors wait to be sent and to be used, and whether products leave as they are made;
    nothing where nothing is sent."""
    found, rows = exchanges(program), []
    for name in dict.fromkeys(exchange.name for exchange in found):
        mine = [exchange for exchange in found if exchange.name == name]
        for way, cycles in (("ready to SEND", [exchange.to_send for exchange in mine]),
                            ("RECV to use", [exchange.to_use for exchange in mine])):
            known = [wait for wait in cycles if wait is not None]
            if of := spread(known):
                rows.append((f"{name}, {way}", of.count, len(mine) - of.count,
                             percent(of.zeros, 1), f"{of.median:g}", f"{of.ninety:g}", of.most))
    lines = table(("cycles waited", "known", "not", "zeros", "median", "90th", "most"), rows)
    made, rows = products(found), []
    for name in dict.fromkeys(product.name for product in made):
        mine = [product for product in made if product.name == name]
        early = sum(product.leaves < product.done for product in mine)
        spans = [product.done - product.begun for product in mine]
        rows.append((name, len(mine), max(product.vectors for product in mine),
                     f"{min(spans)} to {max(spans)}", f"{early:,} of {len(mine):,}"))
    if rows:
        lines += ["", *table(("products", "made a step", "vectors", "ready within",
                              "first leaves before last is ready"), rows)]
    return lines if found else []


def _instructions(program):
    """Instruction words by kind of queue, the fullest instruction memory of each, and bytes by
    tile."""
    depth = program.system.tile.icu_words
    rows = [(row.kind, row.words, row.bytes, f"tile {row.tile} {row.queue}", row.largest, depth,
             percent(row.largest, depth)) for row in instruction_memory(program)]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows), "", "", "", ""))
    lines = table(("instructions", "words", "bytes", "fullest queue", "words", "of", "share"), rows)
    sizes = instruction_bytes(program)
    by_tile = [(f"tile {number}", *mine, sum(mine)) for number, mine in
               enumerate(zip(*sizes.values(), strict=True))]
    return lines + ["", *table(("instruction bytes", *sizes, "all"), by_tile)]


def _sram(program):
    """SRAM words by slice."""
    cfg, used = program.system.tile, sram_words(program)
    rows = []
    for number, name in enumerate(cfg.slices("mem")):
        mine = used[:, number]
        tile = int(mine.argmax())
        rows.append((name, round(mine.mean()), int(mine[tile]), tile, cfg.mem_words,
                     percent(mine[tile], cfg.mem_words)))
    return table(("SRAM words", "mean", "most", "on tile", "of", "share"), rows)


def _summary(program):
    """One line."""
    cycles, cfg = step_cycles(program.plan), program.system.tile
    busy = busy_cycles(program.plan)
    tile, number = divmod(int(busy.argmax()), busy.shape[1])
    memory = instruction_memory(program)
    return (f"report: {cycles:,} cycles a step on {program.system.tiles} tiles; busiest "
            f"{_unit(queues(cfg)[number])} of tile {tile}, "
            f"{percent(busy[tile, number], cycles)}; "
            f"{int(link_vectors(program.plan).sum()):,} vectors sent a step; "
            f"{sum(row.words for row in memory):,} instruction words, "
            f"{sum(row.bytes for row in memory):,} bytes; "
            f"fullest SRAM slice {percent(sram_words(program).max(), cfg.mem_words)}")
