"""The independent verifier: reads the finished binary and re-derives that it is legal.

It shares no code with the scheduler or the assembler; what it knows is the machine.
"""

from .alus import check_alus
from .expand import events
from .state import check_links, check_mxm, check_sram
from .streams import check_streams

__all__ = ["verify"]


def verify(system, binary):
    """Check every issue of ``binary`` (with its step count) on ``system``.

    Returns
    -------
    int
        Number of issues checked.

    Raises
    ------
    VerifyError
        Naming the first fault: cycle, tile, unit and what is wrong.
    """
    binary.check(system)
    found = events(system.tile, binary)
    check_streams(system.tile, found)
    check_sram(system.tile, found, binary)
    check_alus(system.tile, found)
    check_mxm(system.tile, found)
    check_links(system, found)
    return len(found)
