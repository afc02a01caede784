"""Both verifiers on one binary: they must agree."""

from ..errors import VerifyError
from .affine import verify
from .affine.issues import Issues
from .expanded import verify_expanded
from .words import check_binary

__all__ = ["EXPANDED_ISSUES", "VerdictsDiffer", "verify_both"]

#: Issues up to which a program is verified on its expansion too.
EXPANDED_ISSUES = 10_000_000


class VerdictsDiffer(AssertionError):
    """The two verifiers disagree: one of them is wrong, whatever the program is."""


def verify_both(system, binary, limit=EXPANDED_ISSUES):
    """`verify`, and `verify_expanded` too if the program has at most ``limit`` issues.

    Returns
    -------
    int
        Number of issues checked.

    Raises
    ------
    VerifyError
        As `verify`.
    VerdictsDiffer
        When one accepts what the other refuses, or both name different faults.
    """
    affine = _verdict(verify, system, binary)
    if _issues(system, binary) <= limit:
        expanded = _verdict(verify_expanded, system, binary)
        if affine != expanded:
            raise VerdictsDiffer(f"on affine sets: {affine}; on the expansion: {expanded}")
    if isinstance(affine, str):
        raise VerifyError(affine)
    return affine


def _verdict(function, system, binary):
    try:
        return function(system, binary)
    except VerifyError as error:
        return str(error)


def _issues(system, binary):
    """Issues of a binary; none if its words make no program."""
    try:
        check_binary(system, binary)
        return sum(root.total for root in Issues(system.tile, binary).roots)
    except VerifyError:
        return 0
