"""A tile behind a bridge, driven by the loader that drives the simulation."""

from dataclasses import dataclass

import numpy as np

from hdl.arch.binary import BinaryError
from hdl.arch.bridge import VERSION, Result
from hdl.arch.host import TIME_BITS
from hdl.arch.queues import queues
from hdl.arch.timing import START_LEAD
from hdl.arch.trace import arrival_record
from sim.bridge.link import BridgeError
from sim.bridge.records import Records, first_identity, identity_request
from sim.rtl.loader import Transport

__all__ = ["Board", "BoardRun"]

#: Cycles from a START to the start time.
_LEAD = START_LEAD + 3
#: What a `Result` of a request means.
_REFUSALS = {
    Result.UNKNOWN: "it has no such operation, take hardware and software from one release",
    Result.CUT: "the request ends within a record",
    Result.LONG: "it has more data than a command of this tile",
    Result.RUNNING: "the tile is running, wait until it has halted or reset the board",
    Result.ROOM: "the answer does not fit into its buffer",
}


@dataclass(frozen=True)
class BoardRun:
    """One run on a board.

    Attributes
    ----------
    cycles : int
        From the start time until every queue had halted, or the last look at a run given up.
    host : array
        Vectors from the host link as `hdl.arch.trace.arrival_record`, in order; ``cycle`` is 0.
    faults : tuple of int
        By tile: the sticky error register behind the run.
    running : tuple of (int, str)
        Tile and name of the queues that had not halted.
    """

    cycles: int
    host: np.ndarray
    faults: tuple
    running: tuple


class Board(Transport):
    """Talks to one bridge.

    Parameters
    ----------
    link : sim.bridge.link.RequestLink
    system : hdl.arch.config.SystemConfig
        What the board should be: one tile.
    """

    def __init__(self, link, system):
        super().__init__(system)
        if system.tiles != 1:
            raise BinaryError(f"A board has 1 tile, the program is for {system.tiles}: compile it "
                              "with --tiles 1")
        self._link = link
        self._name = link.name
        self._records = None

    async def connect(self):
        """Begin anew, and see that the board is what it should be; gives its `Identity`."""
        await self._link.begin()
        request = identity_request(self._system.tile)
        identity = first_identity((await self._ask(request))[0])
        if identity.version != VERSION:
            raise BridgeError(f"Bridge at {self._name} is of version {identity.version}, this "
                              f"program of {VERSION}: take both from one release")
        if identity.digest != self._system.tile.digest:
            raise BinaryError(f"Program was made for tiles of configuration "
                              f"{self._system.tile.digest}, the board has {identity.digest}: "
                              "compile it for that, or configure the board anew")
        self._records = Records(self._system.tile, identity.buffer)
        return identity

    async def _ask(self, request):
        """What the records of a request returned, and what filled that up."""
        returned, trailer = await self._link.ask(request.records, request.returned)
        if trailer.result is not Result.OK:
            raise BridgeError(f"Bridge at {self._name} refused record {trailer.count} of "
                              f"{request.count}: {_REFUSALS[trailer.result]}")
        return returned, trailer

    async def play(self, batch):
        """See `sim.rtl.loader.Transport`.  The time of a START counts from its own cycle."""
        table, = batch
        rows = []
        for request in self._records.commands(table):
            returned, _ = await self._ask(request)
            rows.append(returned[:request.returned])
        return [self._records.rows(b"".join(rows))]

    async def status(self):
        """The `Status` now."""
        return (await self._poll(take=False))[0]

    async def _poll(self, take=True):
        """The `Status`, and the bytes of what was waiting of the host link, as far as there was
        room."""
        request = self._records.poll(take)
        returned, _ = await self._ask(request)
        return self._records.polled(returned, take)

    async def put(self, vectors):
        """Send vectors to the tile over the host link, whose FIFO must have room for them.

        Parameters
        ----------
        vectors : array
            uint8 of shape (vectors, lanes).
        """
        cfg = self._system.tile
        flits = np.zeros((len(vectors), cfg.host.flits(cfg.lanes) * cfg.host.bytes), np.uint8)
        flits[:, :cfg.lanes] = vectors
        for request in self._records.put(flits.tobytes()):
            await self._ask(request)

    async def run(self, loader, first_step, steps, *, limit, progress=None):
        """Start what is loaded, and wait until it has halted.

        Parameters
        ----------
        loader : sim.rtl.loader.Loader
            From `load`.
        first_step, steps : int
        limit : int
            Cycles behind the start time at which a run that goes on is given up.
        progress : callable, optional
            Called with the cycles done, now and then.

        Returns
        -------
        BoardRun
        """
        status, flits = await self._poll()
        while flits and not status.running:     # left from before
            status, flits = await self._poll()
        await self.play(loader.start([_LEAD], first_step, steps))
        received, running = bytearray(), True
        while True:
            was_running = running
            status, flits = await self._poll()
            received += flits
            # of a tile that halts, something may be under way
            running = bool(status.running)
            end = status.cycle if running else status.stopped
            cycles = (end - status.start) % (1 << TIME_BITS)
            if progress is not None:
                progress(cycles)
            if not (running or was_running or flits) or running and cycles > limit:
                break
        if status.lost:
            raise BridgeError(f"Bridge at {self._name} lost vectors from the tile, which sends "
                              "faster than the line: use a higher rate, or send less")
        return BoardRun(cycles, self._vectors(received), (status.errors,), self._running(status))

    def _vectors(self, received):
        """Bytes of flits as vectors."""
        cfg = self._system.tile
        rows = np.frombuffer(received, np.uint8).reshape(-1, cfg.host.flits(cfg.lanes)
                                                         * cfg.host.bytes)
        table = np.zeros(len(rows), arrival_record(cfg))
        table["unit"], table["data"] = len(cfg.ports), rows[:, :cfg.lanes]
        return table

    def _running(self, status):
        if not status.running:
            return ()
        return tuple((0, queue.name) for number, queue in enumerate(queues(self._system.tile))
                     if not status.halted >> number & 1)
