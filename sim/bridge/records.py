"""Records of `hdl.arch.bridge`: from tables of commands to requests, and from answers to rows."""

from typing import NamedTuple

import numpy as np

from hdl.arch.bridge import (
    BridgeOp,
    Result,
    command_bytes,
    identity_layout,
    size_of,
    status_layout,
    trailer_layout,
)
from hdl.arch.host import HostOp, row_bits

__all__ = ["Identity", "Records", "Request", "Status", "Trailer", "first_identity",
           "identity_request", "split_answer"]

#: Bytes of a request that are no records: sequence number and CRC.
_REQUEST_BESIDE = 3
#: Bytes of an answer that no record returns: sequence number, filling, trailer.
_ANSWER_BESIDE = 8


class Identity(NamedTuple):
    """What a bridge says it is: `identity_layout`."""
    version: int
    buffer: int
    digest: str


class Status(NamedTuple):
    """What a bridge says of its tile: `status_layout`."""
    cycle: int
    start: int
    stopped: int
    waiting: int
    errors: int
    running: int
    lost: int
    halted: int


class Trailer(NamedTuple):
    """End of an answer."""
    result: Result
    count: int


class Request(NamedTuple):
    """Some records in one body: their bytes, their number, and bytes that they return."""
    records: bytes
    count: int
    returned: int


def identity_request(cfg):
    """`Request` of an `Identity`, which says how much a bridge of ``cfg`` holds."""
    return Request(_record(cfg, BridgeOp.IDENTITY.value), 1, size_of(identity_layout()))


def first_identity(returned):
    """The `Identity` at the beginning of what records returned."""
    values = _parse(identity_layout(), returned)
    return Identity(values["version"], values["buffer"], f"{values['digest']:016x}")


def _parse(layout, returned):
    """Fields of a layout of numbers, by name, from the beginning of bytes."""
    size = size_of(layout)
    view = layout.from_bits(int.from_bytes(returned[:size], "little"))
    return {name: getattr(view, name) for name, _ in layout}


def _record(cfg, op, data=b"", select=0, address=0, *, short=True):
    """Bytes of a record; without zeros at the end of ``data`` if that may be ``short``."""
    sizes = command_bytes(cfg)
    data = data.rstrip(b"\0") if short else data
    return b"".join([bytes([op]), len(data).to_bytes(2, "little"),
                     select.to_bytes(sizes["select"], "little"),
                     address.to_bytes(sizes["address"], "little"), data])


def split_answer(answer):
    """What records returned, with what fills it up, and the `Trailer` behind it."""
    size = size_of(trailer_layout)
    end = trailer_layout.from_bits(int.from_bytes(answer[-size:], "little"))
    return answer[:-size], Trailer(Result(end.result), end.count)


class Records:
    """Requests to the bridge of a tile.

    Parameters
    ----------
    cfg : TileConfig
    buffer : int
        Bytes that the bridge holds of a request with its CRC, and of an answer.
    """

    def __init__(self, cfg, buffer):
        self._cfg = cfg
        self._request_room = buffer - _REQUEST_BESIDE
        self._answer_room = buffer - _ANSWER_BESIDE
        self._row = row_bits(cfg) // 8

    def commands(self, table):
        """`Request`s of commands of `sim.rtl.loader.command_record`, as few as there is room
        for."""
        found, parts, size, returned = [], [], 0, 0
        for row in table:
            fields = {name: row[name].tobytes() for name in table.dtype.names}
            select, address = (int.from_bytes(fields[name], "little")
                               for name in ("select", "address"))
            op, = fields["op"]
            record = _record(self._cfg, op, fields["data"], select, address)
            returns = self._row if op == HostOp.READ.value else 0
            if size + len(record) > self._request_room or returned + returns > self._answer_room:
                found.append(Request(b"".join(parts), len(parts), returned))
                parts, size, returned = [], 0, 0
            parts.append(record)
            size, returned = size + len(record), returned + returns
        return [*found, Request(b"".join(parts), len(parts), returned)] if parts else found

    def rows(self, returned):
        """What READs returned, as uint8 of shape (commands, bytes of a row)."""
        return np.frombuffer(returned, np.uint8).reshape(-1, self._row)

    def poll(self, take):
        """`Request` of a `Status` and, to ``take``, of what waits of the host link, as much as
        there is room for."""
        record, size = _record(self._cfg, BridgeOp.STATUS.value), size_of(status_layout(self._cfg))
        if not take:
            return Request(record, 1, size)
        flits = (self._answer_room - size - 2) // self._cfg.host.bytes
        record += _record(self._cfg, BridgeOp.TAKE.value, flits.to_bytes(2, "little"))
        return Request(record, 2, size + 2 + flits * self._cfg.host.bytes)

    def polled(self, returned, take):
        """`Status` and the bytes of flits that a request of `poll` returned."""
        layout = status_layout(self._cfg)
        status, rest = Status(**_parse(layout, returned)), returned[size_of(layout):]
        if not take:
            return status, b""
        return status, rest[2:2 + int.from_bytes(rest[:2], "little") * self._cfg.host.bytes]

    def put(self, flits):
        """`Request`s that send bytes on the host link, in whole flits."""
        width = self._cfg.host.bytes
        size = command_bytes(self._cfg)["data"] // width * width
        return [Request(_record(self._cfg, BridgeOp.PUT.value, flits[at:at + size], short=False),
                        1, 0) for at in range(0, len(flits), size)]
