"""The verifier on the expansion: every issue of every iteration, one by one."""

from ..errors import VerifyError
from .alus import check_alus, check_maps
from .expand import events
from .state import check_links, check_mxm, check_sram
from .streams import check_streams
from .words import check_binary

__all__ = ["verify_expanded"]


def verify_expanded(system, binary):
    """Check every issue of ``binary`` (with its step count) on ``system``.

    Takes time and memory in proportion to the issues; `verify` does not.

    Returns
    -------
    int
        Number of issues checked.

    Raises
    ------
    VerifyError
        Naming the first fault: cycle, tile, unit and what is wrong.
    """
    check_binary(system, binary)
    cfg = system.tile
    found = events(cfg, binary)
    faults = [*check_streams(cfg, found), *check_sram(cfg, found, binary), *check_alus(cfg, found),
              *check_maps(cfg, found), *check_mxm(cfg, found), *check_links(system, found)]
    if faults:
        raise VerifyError(min(faults).line)
    return len(found)
