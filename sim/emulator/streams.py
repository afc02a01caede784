"""Stream registers of all tiles.

A value moves one position a cycle, so on an eastward stream ``position - cycle`` stays the same all
its life, on a westward one ``position + cycle``: its *diagonal*.  Values are kept by diagonal, and
nothing has to move.  A diagonal enters and leaves the tile once, so a value that is still kept when
its diagonal has left was lost, and the diagonal says in which cycle.
"""

from hdl.arch.errors import Fault

__all__ = ["Streams"]

#: Keys are ``lane * _SPAN + diagonal``, with eastward diagonals moved up by half of it: cycles are
#: far below.
_SPAN = 1 << 48
_HALF = _SPAN >> 1
#: Kept values at which lost ones are looked for in between.
_CROWD = 1 << 16


class Streams:
    """All streams of a system of tiles.

    Within a cycle the machine lets all readers read, then calls `clear`, then `write`.

    Parameters
    ----------
    cfg : TileConfig
    faults : FaultLog
    calendar : Calendar
    """

    def __init__(self, cfg, faults, calendar):
        self._cfg = cfg
        self._faults = faults
        self._calendar = calendar
        self._end = len(cfg.floorplan) - 1
        self._crowd = _CROWD
        self.values = {}        #: valid values by key
        self.lasts = []         #: keys cleared in this cycle

    def _base(self, tile, place, west, number):
        """What gives a key after the cycle is subtracted (east) or added (west)."""
        lane = (2 * tile + west) * self._cfg.streams + number
        return lane * _SPAN + self._cfg.position(place) + (0 if west else _HALF)

    def _place(self, key, cycle):
        """Tile, and the text that names slice and stream, of a key in ``cycle``."""
        tile, west, number, diagonal = self._parts(key)
        position = diagonal - cycle if west else diagonal + cycle
        return tile, f"{self._cfg.floorplan[position]} {'EW'[west]}{number}"

    def _parts(self, key):
        lane, diagonal = divmod(key, _SPAN)
        rest, number = divmod(lane, self._cfg.streams)
        tile, west = divmod(rest, 2)
        return tile, west, number, diagonal if west else diagonal - _HALF

    def reader(self, tile, place, fields, count=None, operand="source"):
        """Function of the cycle that reads a stream operand.

        Parameters
        ----------
        tile : int
        place : str
            Slice that reads.
        fields : dict
            Fields of the instruction.
        count : int or None
            Aligned streams to read, as a tuple of vectors; the low bits of the number are ignored.
            None: one stream, as a vector (bytes).
        operand : str
            The field with the number; ``<operand>_west`` and ``<operand>_last`` go with it.

        An operand that is not there reads as zeros.
        """
        west, last = fields[f"{operand}_west"], fields[f"{operand}_last"]
        first = fields[operand] & ~((count or 1) - 1)
        planes = [self._plane(tile, place, west, number, last)
                  for number in range(first, first + (count or 1))]
        if count is None:
            return planes[0]
        return lambda cycle: tuple([read(cycle) for read in planes])

    def _plane(self, tile, place, west, number, last):
        """Function of the cycle that reads one stream."""
        def missing(cycle):
            self._faults.note(tile, Fault.STREAM_INVALID, cycle, f"{place} {'EW'[west]}{number}")
            return zeros

        zeros = bytes(self._cfg.lanes)
        if number >= self._cfg.streams:
            return missing
        get, clear = self.values.get, self.lasts.append
        base, sign = self._base(tile, place, west, number), 1 if west else -1

        def read(cycle):
            key = base + sign * cycle
            if last:
                clear(key)
            value = get(key)
            return missing(cycle) if value is None else value
        return read

    def writer(self, tile, place, fields, count=None):
        """Function of cycle and value that lets a result be written to streams in that cycle.

        Parameters
        ----------
        tile : int
        place : str
            Slice that writes.
        fields : dict
            Fields of the instruction: ``east_en``, ``west_en``, and either ``east`` and ``west`` or
            ``target`` for both.
        count : int or None
            Aligned streams to write, from a sequence of vectors; the low bits of the numbers are
            ignored.  None: one stream, from a vector (bytes).
        """
        planned = self._calendar.write_stream
        bases = []
        for west, direction in enumerate(("east", "west")):
            if fields[f"{direction}_en"]:
                first = fields.get("target", fields.get(direction)) & ~((count or 1) - 1)
                bases += [(plane, self._base(tile, place, west, first + plane), 1 if west else -1)
                          for plane in range(count or 1) if first + plane < self._cfg.streams]
        if count is None:
            if len(bases) == 1:
                (_, base, sign), = bases
                return lambda cycle, value: planned(cycle, base + sign * cycle, value)

            def write(cycle, value):
                for _, base, sign in bases:
                    planned(cycle, base + sign * cycle, value)
            return write

        def write_all(cycle, values):
            for plane, base, sign in bases:
                planned(cycle, base + sign * cycle, values[plane])
        return write_all

    def clear(self, cycle):
        """Clear what was read with ``last`` in ``cycle``; call it when there is any."""
        lasts, values = self.lasts, self.values
        cleared = set(lasts)
        if len(cleared) < len(lasts):
            for key in cleared:
                if lasts.count(key) > 1:
                    self._fault(Fault.STREAM_CONFLICT, key, cycle)
        for key in cleared:
            values.pop(key, None)
        lasts.clear()

    def write(self, cycle, entries):
        """Write ``entries``, (key, value) each, in ``cycle``."""
        values = self.values
        for number, (key, value) in enumerate(entries):
            if key in values:
                twice = any(key == other for other, _ in entries[:number])
                self._fault(Fault.STREAM_CONFLICT if twice else Fault.STREAM_OVERWRITE, key, cycle)
            values[key] = value
        if len(values) > self._crowd:
            self.sweep(cycle)
            self._crowd = 2 * len(values) + _CROWD

    def _fault(self, fault, key, cycle):
        tile, place = self._place(key, cycle)
        self._faults.note(tile, fault, cycle, place)

    def leaves(self, key):
        """Last cycle in which the diagonal of ``key`` is on the tile."""
        _, west, _, diagonal = self._parts(key)
        return diagonal if west else self._end - diagonal

    def last_cycle(self):
        """Last cycle in which a value is on a tile if nothing clears it; -1 if there is none."""
        return max(map(self.leaves, self.values), default=-1)

    def sweep(self, cycle):
        """Drop and note the values that were lost in or before ``cycle``."""
        gone = [key for key in self.values if self.leaves(key) <= cycle]
        for key in gone:
            del self.values[key]
            end = self.leaves(key)
            tile, place = self._place(key, end)
            self._faults.note(tile, Fault.STREAM_LOST, end, place)
