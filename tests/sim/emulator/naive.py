"""The machine as docs/architecture.md tells it: cycle after cycle, with every register moving.

Slow, and plain enough to be believed; the emulator is compared with it.
"""

import numpy as np

from hdl.arch import isa
from hdl.arch.encoding import crc16
from hdl.arch.errors import Fault
from hdl.arch.queues import queues
from hdl.arch.timing import adder_stages
from hdl.arch.trace import pack_index
from tests.sim.emulator.naive_icu import ICU_FAULT, queue_cycles
from tests.sim.emulator.naive_vxm import Vectors, VectorState

__all__ = ["NaiveSystem"]


class _Mxm:
    def __init__(self, cfg):
        self.shadow = np.zeros((cfg.lanes, cfg.lanes), np.int64)
        self.weights = self.shadow.copy()
        self.buffer = [bytes(cfg.lanes)] * cfg.activations
        self.sums = np.zeros((cfg.accumulators, cfg.lanes), np.int64)


class _Port:
    """One link port: flits waiting to be sent, flits of a vector that is arriving, and the FIFO."""
    def __init__(self):
        self.sending = []       # flits of the SEND in progress; the first is on the wire now
        self.arriving = b""
        self.flits = 0
        self.fifo = []


class _Tile:
    def __init__(self, cfg):
        self.streams = {west: [[None] * cfg.streams for _ in cfg.floorplan] for west in (0, 1)}
        self.sram = {name: [bytes(cfg.lanes)] * cfg.mem_words for name in cfg.slices("mem")}
        self.mxms = [_Mxm(cfg) for _ in cfg.slices("mxm")]
        self.ports = [_Port() for _ in range(len(cfg.ports) + 1)]
        self.queues = {}
        self.clears = []
        self.writes = []
        self.due = {}           # cycle -> functions called at its end
        self.reads = {}         # cycle -> functions called before its writes
        self.writing = set()    # (cycle, slice, address) of every SRAM write
        self.gathering = set()  # (cycle, slice) of every access of a GATHER
        self.vectors = VectorState(cfg)
        self.far_host = _Port() # the host's end of the link
        self.faults = {}


class NaiveSystem(Vectors):
    """All tiles; `run` gives what happened as lists that are sorted as the emulator's tables."""

    def __init__(self, system, binary):
        self.system, self.cfg, self.cycle = system, system.tile, 0
        self.tiles = [_Tile(self.cfg) for _ in range(system.tiles)]
        self.wires = {}         # cycle -> (tile, port, flit) that a port receives
        self.issues, self.sram_writes, self.arrivals, self.host = [], [], [], []
        for tile, loaded in zip(self.tiles, binary.tiles, strict=True):
            for name, runs in loaded.sram.items():
                for address, content in runs.items():
                    for i in range(len(content) // self.cfg.lanes):
                        tile.sram[name][address + i] = \
                            content[i * self.cfg.lanes:(i + 1) * self.cfg.lanes]
            for queue in queues(self.cfg):
                if queue.name in loaded.words:
                    tile.queues[queue] = queue_cycles(
                        self.cfg, queue.kind, loaded.words[queue.name],
                        loaded.tables.get(queue.name, [(0, 0, 0)]), binary.first_step, binary.steps)

    def run(self, cycles, host_input=()):
        """Simulate ``cycles`` cycles; ``host_input`` as for the emulator."""
        for self.cycle in range(cycles):
            for number, tile in enumerate(self.tiles):
                self._issue(number, tile)
            for number, tile in enumerate(self.tiles):
                self._streams(number, tile)
            self._links()
            for number, cycle, vector in host_input:
                if cycle == self.cycle:
                    self._enter(number, len(self.cfg.ports), vector)
            for tile in self.tiles:
                for function in tile.due.pop(self.cycle, []):
                    function()
        for table in (self.issues, self.sram_writes, self.arrivals, self.host):
            table.sort(key=lambda row: row[:3])

    def _fault(self, number, fault):
        self.tiles[number].faults.setdefault(fault, self.cycle)

    # issues

    def _issue(self, number, tile):
        # what a FIFO held, and whether a link was idle, at the start of the cycle
        for port in tile.ports:
            port.before = len(port.fifo)
        for function in tile.reads.pop(self.cycle, []):
            function()
        order = sorted(tile.queues, key=lambda queue: queue.kind == "recv")
        for queue in order:
            happens = next(tile.queues[queue], None)
            if happens == ICU_FAULT:
                self._fault(number, Fault.ICU_WORD)
            elif happens is not None:
                word, op, fields, indices, step, predicate = happens
                count = isa.word_bytes(self.cfg, queue.kind)
                self.issues.append((self.cycle, number, queues(self.cfg).index(queue),
                                    crc16(word, count), pack_index(self.cfg, queue.kind, indices)))
                getattr(self, "_" + op.lower())(number, tile, queue, fields, indices, step,
                                                predicate)

    def _take(self, number, tile, place, f, count=1, name="source"):
        position = self.cfg.position(place)
        first = f[name] // count * count
        vectors = []
        for stream in range(first, first + count):
            west, exists = f[name + "_west"], stream < self.cfg.streams
            value = tile.streams[west][position][stream] if exists else None
            if value is None:
                self._fault(number, Fault.STREAM_INVALID)
                value = bytes(self.cfg.lanes)
            if f[name + "_last"] and exists:
                tile.clears.append((west, position, stream))
            vectors.append(value)
        return vectors

    def _put(self, tile, place, f, vectors, delay):
        position, count = self.cfg.position(place), len(vectors)
        for west, name in enumerate(("east", "west")):
            if f[name + "_en"]:
                first = f["target" if "target" in f else name] // count * count
                for i, vector in enumerate(vectors):
                    tile.writes.append((self.cycle + delay, west, position, first + i, vector))

    def _later(self, tile, delay, function):
        tile.due.setdefault(self.cycle + delay, []).append(function)

    def _access(self, number, tile, queue, address):
        """The word that a read port gives in this cycle."""
        if (self.cycle, queue.slice, address) in tile.writing:
            self._fault(number, Fault.SRAM_COLLISION)
        return tile.sram[queue.slice][address]

    def _read(self, number, tile, queue, f, indices, *_):
        address, = indices
        if (self.cycle, queue.slice) in tile.gathering:
            self._fault(number, Fault.SRAM_COLLISION)
            return
        value = bytes(self.cfg.lanes)
        if address >= self.cfg.mem_words:
            self._fault(number, Fault.SRAM_ADDRESS)
        else:
            value = self._access(number, tile, queue, address)
        self._put(tile, queue.slice, f, [value], 1)

    def _gather(self, number, tile, queue, f, indices, *_):
        planes = self._take(number, tile, queue.slice, f, 4)
        offset = sum(plane[0] << 8 * i for i, plane in enumerate(planes))
        address = (indices[0] + offset) % 2**32
        tile.gathering.add((self.cycle + 1, queue.slice))

        def access():
            value = self._access(number, tile, queue, address) \
                if address < self.cfg.mem_words else bytes(self.cfg.lanes)
            self._put(tile, queue.slice, f, [value], 1)
        tile.reads.setdefault(self.cycle + 1, []).append(access)

    def _write(self, number, tile, queue, f, indices, step, predicate):
        (address,), (vector,) = indices, self._take(number, tile, queue.slice, f)
        if not predicate:
            return
        if address >= self.cfg.mem_words:
            self._fault(number, Fault.SRAM_ADDRESS)
            return

        def store():
            tile.sram[queue.slice][address] = vector
            self.sram_writes.append((self.cycle, number, queue.unit, address, vector))
        tile.writing.add((self.cycle + 1, queue.slice, address))
        self._later(tile, 1, store)

    def _lw(self, number, tile, queue, f, indices, *_):
        mxm = tile.mxms[queue.unit]
        vectors = self._take(number, tile, queue.slice, f, 1 << f["count_log2"])

        def store():
            for i, vector in enumerate(vectors):
                at = (indices[0] + i) % self.cfg.lanes
                values = np.frombuffer(vector, np.int8)
                if f["columns"]:
                    mxm.shadow[:, at] = values
                else:
                    mxm.shadow[at, :] = values
        self._later(tile, 1, store)

    def _abc(self, number, tile, queue, f, indices, *_):
        mxm, (accumulator, activation) = tile.mxms[queue.unit], indices
        vector = mxm.buffer[activation] if f["buffered"] else \
            self._take(number, tile, queue.slice, f)[0]
        if f["keep"]:
            mxm.buffer[activation] = vector
        if f["install"]:
            mxm.weights = mxm.shadow.copy()
        total = np.frombuffer(vector, np.int8).astype(np.int64) @ mxm.weights
        total = total * (256 if f["high"] else 1)
        half = 2 ** (self.cfg.accumulator_bits - 1)

        def update():
            before = np.zeros(self.cfg.lanes, np.int64) if f["clear"] else mxm.sums[accumulator]
            mxm.sums[accumulator] = (before + total + half) % (2 * half) - half
        # product in j + 1, then the stages of the sum, then the accumulator
        self._later(tile, 1 + adder_stages(self.cfg.lanes) + 1, update)

    def _acc(self, number, tile, queue, f, indices, *_):
        total = tile.mxms[queue.unit].sums[indices[0]]
        words = {0: total.astype(np.float32).view(np.uint32), 1: total >> 16,
                 2: total & 0xFFFF, 3: total.astype(np.float32).view(np.uint32)}[f["mode"]]
        planes = [bytes(int(word) >> 8 * plane & 0xFF for word in words) for plane in range(4)]
        self._put(tile, queue.slice, f, planes, 4)

    def _send(self, number, tile, queue, f, indices, *_):
        self._leave(number, tile, f["links"],
                    self._take(number, tile, "c2c", f, 4 if f["quad"] else 1))

    def _leave(self, number, tile, links, vectors):
        ports = [k for k in range(len(tile.ports)) if links >> k & 1]
        if any(tile.ports[k].sending for k in ports):
            self._fault(number, Fault.LINK_BUSY)
            return
        for k in ports:
            width = self.cfg.port(k).bytes
            tile.ports[k].sending = [vector[at:at + width].ljust(width, b"\0") for vector in vectors
                                     for at in range(0, self.cfg.lanes, width)]

    def _from_fifo(self, number, port, count):
        if port.before < count:
            self._fault(number, Fault.FIFO_UNDERFLOW)
            return [bytes(self.cfg.lanes)] * count
        return [port.fifo.pop(0) for _ in range(count)]

    def _recv(self, number, tile, queue, f, indices, *_):
        vectors = self._from_fifo(number, tile.ports[queue.unit], 4 if f["quad"] else 1)
        self._put(tile, "c2c", f, vectors, 1)
        self._leave(number, tile, f["links"], vectors)

    def _forward(self, number, tile, queue, f, indices, *_):
        self._leave(number, tile, f["links"], self._from_fifo(number, tile.ports[queue.unit], 1))

    # what moves by itself

    def _streams(self, number, tile):
        last = len(self.cfg.floorplan) - 1
        for at in set(tile.clears):
            if tile.clears.count(at) > 1:
                self._fault(number, Fault.STREAM_CONFLICT)
            west, position, stream = at
            tile.streams[west][position][stream] = None
        tile.clears = []
        now = [write[1:] for write in tile.writes if write[0] == self.cycle]
        tile.writes = [write for write in tile.writes if write[0] != self.cycle]
        written = set()
        for west, position, stream, vector in now:
            at = west, position, stream
            if at in written:
                self._fault(number, Fault.STREAM_CONFLICT)
            elif tile.streams[west][position][stream] is not None:
                self._fault(number, Fault.STREAM_OVERWRITE)
            written.add(at)
            tile.streams[west][position][stream] = vector
        for west, end in ((0, last), (1, 0)):
            if any(value is not None for value in tile.streams[west][end]):
                self._fault(number, Fault.STREAM_LOST)
        nothing = [None] * self.cfg.streams
        tile.streams[0] = [nothing[:], *tile.streams[0][:-1]]
        tile.streams[1] = [*tile.streams[1][1:], nothing[:]]

    def _links(self):
        """A SEND that issued in ``k`` has its flit ``f`` on the wire in ``k + 1 + f``."""
        for number, tile in enumerate(self.tiles):
            for k, port in enumerate(tile.ports):
                if port.sending:
                    flit = port.sending.pop(0)
                    link = self.system.outgoing(number, k) if k < len(self.cfg.ports) else None
                    if k == len(self.cfg.ports):
                        there = ("host", number, self.system.host_latency)
                    elif link is None:
                        continue
                    else:
                        there = (link.target, link.target_port, link.latency)
                    self.wires.setdefault(self.cycle + 1 + there[2], []).append((*there[:2], flit))
        for target, k, flit in self.wires.pop(self.cycle, []):
            port = self.tiles[k].far_host if target == "host" else self.tiles[target].ports[k]
            port.arriving += flit
            port.flits += 1
            width = self.cfg.port(len(self.cfg.ports) if target == "host" else k)
            if port.flits == width.flits(self.cfg.lanes):
                vector, port.arriving, port.flits = port.arriving[:self.cfg.lanes], b"", 0
                if target == "host":
                    self.host.append((self.cycle, k, len(self.cfg.ports), vector))
                else:
                    self._enter(target, k, vector)

    def _enter(self, number, k, vector):
        port = self.tiles[number].ports[k]
        if port.before >= self.cfg.port(k).fifo:
            self._fault(number, Fault.FIFO_OVERFLOW)
            return
        port.fifo.append(vector)
        self.arrivals.append((self.cycle, number, k, vector))
