"""Programs changed by chance: both verifiers say the same, whether they refuse or accept."""

import numpy as np
import pytest

from compiler.errors import VerifyError
from compiler.verify import verify_both
from compiler.verify.affine import Run, timeline
from hdl.arch.config import all_to_all, pair, single
from hdl.arch.presets import DEMO, FPGA, NANO
from tests.compiler.verify.programs import copies, decode_program, matvec, mutant

_DECODE = all_to_all(DEMO, 4).restrict(1)


def _bases():
    rng = np.random.default_rng(7)
    for system, k, n, steps in ((single(NANO), 5, 9, 12), (pair(NANO, latency=4), 8, 8, 9),
                                (single(FPGA), 9, 13, 6), (pair(DEMO), 33, 20, 4)):
        yield system, matvec(system, k, n, rng, steps)
    yield single(NANO), copies(rng, steps=20)
    yield _DECODE, decode_program(_DECODE)


@pytest.mark.parametrize("eager", [True, False])
def test_verdicts_on_mutants_are_equal(eager, seed, monkeypatch):
    """``eager``: iterations are skipped however few issues that saves."""
    if eager:
        monkeypatch.setattr(timeline, "WORTH", 0)
        monkeypatch.setattr(timeline, "WINDOW", 1)
    accepted = refused = skipping = 0
    for number, (system, base) in enumerate(_bases()):
        for trial in range(12):
            binary = mutant(system, base, np.random.default_rng([seed, number, trial]))
            try:
                verify_both(system, binary)
            except VerifyError:
                refused += 1
            else:
                accepted += 1
                skipping += Run(system, binary).skipped > 0
    assert accepted > 5 and refused > 30
    assert not eager or skipping > 5
