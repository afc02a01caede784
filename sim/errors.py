"""Everything a user can cause, and how it is shown: one line, exit code 2, no traceback."""

import errno

from compiler.errors import CompileError
from compiler.model.config import ModelError
from hdl.arch.binary import BinaryError
from hdl.arch.encoding import EncodingError
from sim.bridge.link import BridgeError
from sim.build.errors import SimError
from sim.conformance.matching import ConformanceError

__all__ = ["USER_ERRORS", "UsageError", "one_line"]


class UsageError(ValueError):
    """Options that contradict each other, or name what does not exist."""


#: Errors whose message is for the user.
USER_ERRORS = (UsageError, CompileError, ModelError, BinaryError, EncodingError, SimError,
               BridgeError, ConformanceError, OSError, MemoryError)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Characters of a message that are shown.
_LONGEST = 500


def one_line(error):
    """The message of a user error as one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        hint = ": free some where build and the output lie" if error.errno in _NO_SPACE else ""
        return f"{where}{error.strerror}{hint}"
    if isinstance(error, MemoryError):
        return f"Not enough memory on this computer{f' ({error})' if str(error) else ''}"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
