"""A smoke program for two nano tiles, and the commands that load, run and read it back.

Each tile sends half of a vector to the other and makes half of a product (link, MXM).  Of a byte of
every element of that it makes exponentials and their sum over the lanes (VXM), and sends the sum to
the host; another byte it turns to other lanes (SXM).
"""

from compiler.lower.chain import At, Chain
from compiler.lower.matvec import matvec_graph
from compiler.plan import stepped
from compiler.program import from_plan
from compiler.schedule.listing import schedule
from compiler.verify import verify
from hdl.arch.config import pair
from hdl.arch.host import READ_LATENCY, HostOp, command_layout
from hdl.arch.presets import NANO
from hdl.arch.timing import START_LEAD
from sim.rtl.loader import Loader

__all__ = ["SYSTEM", "Commands", "smoke_program"]

SYSTEM = pair(NANO, latency=3)
_PLANE = 2              # the byte of the fp32 product
_SCALE = 2.0 ** -5
#: Cycles behind the planned end until nothing is under way.
_DRAIN = 60


def smoke_program(system, rng):
    """The program for two tiles with the floorplan of `NANO`."""
    cfg, size = system.tile, system.tiles * system.tile.lanes
    weights = rng.integers(-128, 128, (size, size)).astype("int8")
    builder = matvec_graph(system, weights, rng.integers(-32639, 32640, size))
    memory, host = builder.memory, len(cfg.ports)
    for tile in range(system.tiles):
        y = memory.symbols[f"y.mxm0@{tile}"]
        e = memory.place("e", tile, y.slices[:1], 1)
        chain = Chain(cfg, f"exponentials {tile}", tile)
        value = chain.alu("FROM_INT8", chain.read(At(y.slices[_PLANE:_PLANE + 1], y.address)))
        value = chain.alu("EXP2", chain.alu("MUL", value, _SCALE))
        chain.write(chain.alu("TO_INT8", value), At(e.slices, e.address))
        chain.send(chain.reduce("SUM", value), [host])
        builder.add(chain.cluster())
        turned = memory.place("turned", tile, y.slices[1:2], 1)
        chain = Chain(cfg, f"turn {tile}", tile)
        value = chain.move("ROTATE", chain.read(At(y.slices[:1], y.address)), "sxm0",
                           cfg.lanes // 2 + 1)
        chain.write(value, At(turned.slices, turned.address))
        builder.add(chain.cluster())
    body = schedule(cfg, builder.clusters, builder.edges)
    program = from_plan(stepped(system, body), memory)
    verify(system, program.binary)
    return program


class Commands:
    """Host commands of a whole run, one a cycle for each tile, from the first cycle behind reset.

    Parameters
    ----------
    program : compiler.program.Program
    sram : list of array
        By tile: contents to load, uint8 of shape (slices, words, lanes).

    Attributes
    ----------
    words : list of list of int
        By tile: `hdl.arch.host.command_layout` in each cycle.
    rows : range
        Cycles in which ``read_data`` is a word that was asked for: every word of SRAM in order.
    start : int
        Start time.
    """

    def __init__(self, program, sram):
        loader = Loader(SYSTEM, program.binary, sram)
        parts = [self._words(loader.load_sram()), self._words(loader.load_program())]
        loaded = max(sum(map(len, tile)) for tile in zip(*parts, strict=True))
        self.start = loaded + START_LEAD
        parts.append([[0] * (loaded - sum(map(len, tile))) for tile in zip(*parts, strict=True)])
        parts.append(self._words(loader.start([self.start] * SYSTEM.tiles, 0, 1)))
        pause = START_LEAD + program.plan.cycles(1) + _DRAIN
        parts.append([[0] * pause] * SYSTEM.tiles)
        begin = loaded + 1 + pause + READ_LATENCY
        self.rows = range(begin, begin + NANO.mem_words)
        parts.append(self._words(loader.read_sram()))
        parts.append([[0] * READ_LATENCY] * SYSTEM.tiles)
        self.words = [sum(tile, []) for tile in zip(*parts, strict=True)]

    @staticmethod
    def _words(batch):
        layout = command_layout(NANO)
        assert HostOp.NONE.value == 0       # what the pauses are made of
        return [[sum(int.from_bytes(record[name].tobytes(), "little") << field.offset
                     for name, field in layout) for record in table] for table in batch]
