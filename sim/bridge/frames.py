"""Frames of `hdl.arch.bridge`, from the host's side."""

from binascii import crc_hqx

from hdl.arch.bridge import ESCAPE, FLAG, FLIP

__all__ = ["FrameReader", "frame"]

_CRC_START = 0xFFFF
_CRC_BYTES = 2


def frame(body):
    """Bytes of the frame of a body."""
    checked = body + crc_hqx(body, _CRC_START).to_bytes(_CRC_BYTES, "big")
    escaped = bytearray([FLAG])
    for byte in checked:
        escaped += bytes([ESCAPE, byte ^ FLIP]) if byte in (FLAG, ESCAPE) else bytes([byte])
    return bytes(escaped) + bytes([FLAG])


class FrameReader:
    """Takes bytes as they come and gives bodies.

    Attributes
    ----------
    damaged : int
        Frames dropped since the beginning, and bytes beside all frames.
    heard : int
        Bytes that came.
    """

    def __init__(self):
        self.damaged = 0
        self.heard = 0
        self._pending = bytearray()

    def feed(self, received):
        """Bodies that are complete with ``received``, in order."""
        self.heard += len(received)
        self._pending += received
        *frames, rest = self._pending.split(bytes([FLAG]))
        self._pending = bytearray(rest)
        found = []
        for raw in filter(None, frames):
            body = _body(raw)
            if body is None:
                self.damaged += 1
            else:
                found.append(body)
        return found

    def reset(self):
        """Forget what has come of a frame."""
        self._pending.clear()


def _body(raw):
    """The body of what was between two flags, None if it was damaged."""
    first, *parts = bytes(raw).split(bytes([ESCAPE]))
    if not all(parts):      # nothing behind an escape
        return None
    plain = first + b"".join(bytes([part[0] ^ FLIP]) + part[1:] for part in parts)
    if len(plain) <= _CRC_BYTES or crc_hqx(plain, _CRC_START):
        return None
    return plain[:-_CRC_BYTES]
