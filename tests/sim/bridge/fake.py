"""A bridge in Python, written from the text of `hdl.arch.bridge`, alone or behind a terminal."""

import os
import select
import threading
import tty

from hdl.arch.bridge import (
    BUFFER,
    BridgeOp,
    Result,
    command_bytes,
    identity_layout,
    size_of,
    status_layout,
    trailer_layout,
)
from hdl.arch.host import HostOp, start_layout
from sim.bridge.frames import FrameReader, frame
from tests.sim.rtl.tile_model import TileModel

__all__ = ["BridgeModel", "FakeBridge"]


class BridgeModel:
    """What a bridge answers.

    Parameters
    ----------
    cfg : TileConfig
    execute : callable, optional
        Called at a START with the `TileModel`, first step and steps; gives cycles, error register
        and bytes for the host link.
    buffer : int
        What it says that it holds.

    Attributes
    ----------
    tile : TileModel
    executed : int
        Records so far.
    """

    def __init__(self, cfg, execute=None, buffer=BUFFER):
        self.tile = TileModel(cfg)
        self.executed = 0
        self._cfg, self._execute, self._buffer = cfg, execute, buffer
        self._expected, self._kept = 1, None
        self._sent = b""
        self._state = dict.fromkeys((name for name, _ in status_layout(cfg)), 0)

    def answer(self, body):
        """The body of the answer to one."""
        sequence, rest = body[0], body[1:]
        if sequence == 0:
            self._expected, self._kept = 1, None
            return self._closed(0, b"", Result.OK, int.from_bytes(rest, "little"))
        if self._kept and sequence == self._kept[0]:
            return self._kept
        if sequence != self._expected:
            return self._closed(sequence, b"", Result.SEQUENCE, self._expected)
        self._expected = sequence % 255 + 1
        self._kept = self._closed(sequence, *self._records(rest))
        return self._kept

    def _closed(self, sequence, returned, result, count):
        end = trailer_layout.const({"result": result, "count": count}).as_bits()
        filling = bytes(-len(returned) % 4)
        return bytes([sequence]) + returned + filling + end.to_bytes(4, "little")

    def _records(self, rest):
        assert len(rest) + 3 <= self._buffer
        sizes, returned, count = command_bytes(self._cfg), b"", 0
        while rest:
            op, length = rest[0], int.from_bytes(rest[1:3], "little")
            at = 3
            values = []
            for size in (sizes["select"], sizes["address"], length):
                values.append(int.from_bytes(rest[at:at + size], "little"))
                at += size
            returned += self._one(op, *values)
            count, rest = count + 1, rest[at:]
        assert len(returned) + 8 <= self._buffer
        self.executed += count
        return returned, Result.OK, count

    def _one(self, op, select, address, data):
        if op == BridgeOp.IDENTITY.value:
            return _bytes(identity_layout(), {"version": 1, "buffer": self._buffer,
                                              "digest": int(self._cfg.digest, 16)})
        if op == BridgeOp.STATUS.value:
            waiting = len(self._sent) // self._cfg.host.bytes
            return _bytes(status_layout(self._cfg), {**self._state, "waiting": waiting})
        if op == BridgeOp.TAKE.value:
            width = self._cfg.host.bytes
            flits, self._sent = self._sent[:data * width], self._sent[data * width:]
            return (len(flits) // width).to_bytes(2, "little") + flits
        if op == HostOp.CLEAR.value:
            self._state["errors"] = 0
        if op == HostOp.START.value:
            start = start_layout.from_bits(data)
            cycles, self._state["errors"], self._sent = self._execute(
                self.tile, start.first_step, start.steps)
            self._state["start"] = start.time
            self._state["stopped"] = self._state["cycle"] = start.time + cycles
        return b"".join(self.tile.one(op, select, address, data))


class FakeBridge:
    """A `BridgeModel` behind a pseudo terminal, with the parameters of that.

    Parameters
    ----------
    lose : set of int
        Numbers of frames, from 0, that the bridge never sees.

    Attributes
    ----------
    path : str
        The line's device.
    lost : int
        Frames not seen.
    """

    def __init__(self, cfg, execute=None, lose=()):
        self.lost = 0
        self._model, self._lose = BridgeModel(cfg, execute), lose
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._stop.set()
        self._thread.join()
        os.close(self._slave)
        os.close(self._master)

    def _serve(self):
        reader, number = FrameReader(), 0
        while not self._stop.is_set():
            if not select.select([self._master], [], [], 0.01)[0]:
                continue
            for body in reader.feed(os.read(self._master, 4096)):
                if number in self._lose:
                    self.lost += 1
                else:
                    os.write(self._master, frame(self._model.answer(body)))
                number += 1


def _bytes(layout, values):
    return layout.const(values).as_bits().to_bytes(size_of(layout), "little")
