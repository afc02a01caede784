"""The host of a simulated tile, and a recorder of its trace port."""

from hdl.arch import isa, trace
from hdl.arch.encoding import encode
from hdl.arch.host import HostOp, command_layout, start_layout
from hdl.arch.queues import link_names, queue_index, queues

__all__ = ["Host", "Recorder", "program"]


def program(cfg, **queues_by_name):
    """Words by queue name from lists of (opcode, fields): ``mem0_read=[("READ", {...}), ...]``.

    Every queue of the tile gets a HALT behind its words.
    """
    kinds = {queue.name: queue.kind for queue in queues(cfg)}
    lines = {name: queues_by_name.pop(name.replace(".", "_"), []) for name in kinds}
    assert not queues_by_name, f"no such queue: {list(queues_by_name)}"
    return {name: [encode(cfg, kinds[name], op, **fields) for op, fields in [*line, ("HALT", {})]]
            for name, line in lines.items()}


class Host:
    """Commands to one tile.

    Parameters
    ----------
    ctx : TestbenchContext
    cfg : TileConfig
    port : object
        Has the members of a tile: ``command``, ``running``, ``read_data``, ``cycle``.
    """

    def __init__(self, ctx, cfg, port):
        self._ctx = ctx
        self._cfg = cfg
        self._port = port
        self._layout = command_layout(cfg)

    def put(self, op, select=0, address=0, data=0):
        """Drive a command for the cycle that is under way."""
        command = {"op": op, "select": select, "address": address, "data": data}
        self._ctx.set(self._port.command, self._layout.const(command))

    async def command(self, op, **fields):
        self.put(op, **fields)
        await self._ctx.tick()
        self.put(HostOp.NONE)

    async def load(self, words=(), tables=(), sram=()):
        """Instruction words and tables by queue name, SRAM words by (slice name, address)."""
        cfg = self._cfg
        numbers = queue_index(cfg)
        kinds = {queue.name: queue.kind for queue in queues(cfg)}
        for name, lines in dict(words).items():
            for address, word in enumerate(lines):
                await self.command(HostOp.WORD, select=numbers[name], address=address, data=word)
        for name, entries in dict(tables).items():
            layout = isa.table_layout(cfg, kinds[name])
            for address, (shift, mask, step) in enumerate(entries):
                entry = layout.const({"shift": shift, "mask": mask, "step": step}).as_bits()
                await self.command(HostOp.TABLE, select=numbers[name], address=address, data=entry)
        slices = cfg.slices("mem")
        for (name, address), content in dict(sram).items():
            number = slices.index(name)
            await self.command(HostOp.SRAM, select=1 << number, address=address,
                               data=int.from_bytes(content, "little") << 8 * cfg.lanes * number)

    def start_data(self, time, first_step=0, steps=1):
        fields = {"time": time, "first_step": first_step, "steps": steps}
        return start_layout.const(fields).as_bits()

    async def start(self, after=20, first_step=0, steps=1):
        """Start ``after`` cycles from now; returns the start time."""
        time = self._ctx.get(self._port.cycle) + after
        await self.command(HostOp.START, data=self.start_data(time, first_step, steps))
        return time

    async def finish(self, limit=2000):
        """Wait until the tile has halted, and for what is still under way."""
        for _ in range(limit):
            if not self._ctx.get(self._port.running):
                break
            await self._ctx.tick()
        else:
            raise AssertionError("the tile did not halt")
        await self._ctx.tick().repeat(40)

    async def read(self, name, address):
        """One SRAM word as bytes."""
        await self.command(HostOp.READ, address=address)
        await self._ctx.tick()
        lanes = self._cfg.lanes
        row = self._ctx.get(self._port.read_data) >> 8 * lanes * self._cfg.slices("mem").index(name)
        return (row & (1 << 8 * lanes) - 1).to_bytes(lanes, "little")


class Recorder:
    """Events of one tile, as lists of tuples whose first element is the counter cycle.

    ``issues``: (cycle, queue, crc, packed index); ``writes``: (cycle, slice, address, bytes);
    ``arrivals``: (cycle, link, bytes).
    """

    def __init__(self, cfg, port):
        self._port = port
        self._cfg = cfg
        self._units = {
            "issues": ([queue.name for queue in queues(cfg)], trace.issue_layout(cfg)),
            "writes": (cfg.slices("mem"), trace.write_layout(cfg)),
            "arrivals": (link_names(cfg), trace.arrival_layout(cfg)),
        }
        self.issues, self.writes, self.arrivals = [], [], []

    async def bench(self, ctx):
        """A background testbench: `run(..., background=[recorder.bench])`."""
        port = self._port
        signals = [getattr(port, name).as_value() for name in self._units]
        async for _, _, cycle, *values in ctx.tick().sample(port.cycle, *signals):
            for (kind, (names, layout)), value in zip(self._units.items(), values, strict=True):
                for number, name in enumerate(names):
                    bits = value >> layout.size * number & (1 << layout.size) - 1
                    if bits & 1:
                        getattr(self, kind).append((cycle, name, *self._fields(layout, bits)))

    def _fields(self, layout, bits):
        found = []
        for name, field in list(layout)[1:]:
            value = bits >> field.offset & (1 << field.width) - 1
            if name == "data":
                value = value.to_bytes(self._cfg.lanes, "little")
            found.append(value)
        return found
