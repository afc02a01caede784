"""A serial line of this computer, through the standard library's ``termios`` alone."""

import os
import select
import termios
import time
import tty

from sim.bridge.link import BridgeError
from sim.bridge.stream import ByteStream

__all__ = ["SerialPort"]

#: Start bit, data, stop bit.
_BITS = 10
#: Seconds: USB adapters hold bytes back for up to 16 ms, and computers are busy.
_PATIENCE = 0.5
_CHUNK = 4096


class SerialPort(ByteStream):
    """A device file, opened raw: 8 bits, no parity, one stop bit, no flow control.

    Parameters
    ----------
    path : path
        For example ``/dev/ttyUSB0``; pseudo terminals do as well.
    baud : int
        Bits a second.

    Raises
    ------
    sim.bridge.link.BridgeError
        If it cannot be opened, or does not have that rate.
    """

    patience = _PATIENCE

    def __init__(self, path, baud):
        self.name = str(path)
        self.byte_time = _BITS / baud
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            rates = sorted(int(name[1:]) for name in dir(termios)
                           if name[0] == "B" and name[1:].isdigit() and int(name[1:]) >= 9600)
            raise BridgeError(f"A serial line here has one of the rates "
                              f"{', '.join(map(str, rates))}, not {baud}")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise BridgeError(f"Serial line {path} cannot be opened ({error.strerror}): connect "
                              "the board, or name its device with --port") from None
        try:
            self._set_up(speed)
        except termios.error:
            os.close(self._file)
            raise BridgeError(f"{path} is no serial line: name its device with --port") from None

    def _set_up(self, speed):
        tty.setraw(self._file, termios.TCSANOW)
        mode = termios.tcgetattr(self._file)
        mode[2] &= ~(termios.PARENB | termios.CSTOPB | termios.CRTSCTS)
        mode[2] |= termios.CLOCAL | termios.CREAD
        mode[4] = mode[5] = speed
        termios.tcsetattr(self._file, termios.TCSANOW, mode)
        termios.tcflush(self._file, termios.TCIOFLUSH)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.close(self._file)

    async def write(self, data):
        """See `ByteStream`."""
        end = time.monotonic() + self.patience + 2 * self.byte_time * len(data)
        while data:
            _, ready, _ = select.select([], [self._file], [], max(0, end - time.monotonic()))
            if not ready:
                raise BridgeError(f"{self.name} takes no bytes: unplug the board and try again")
            data = data[self._guarded(os.write, data):]

    async def read(self, limit):
        """See `ByteStream`."""
        ready, _, _ = select.select([self._file], [], [], limit)
        if not ready:
            return b""
        found = self._guarded(os.read, _CHUNK)
        if not found:
            raise BridgeError(f"{self.name} was closed: connect the board again")
        return found

    def _guarded(self, call, argument):
        try:
            return call(self._file, argument)
        except OSError as error:
            raise BridgeError(f"{self.name} was lost ({error.strerror}): connect the board "
                              "again") from None
