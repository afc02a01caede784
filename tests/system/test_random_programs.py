"""Emulator and RTL must agree on programs that nobody planned, down to the last fault."""

import numpy as np
import pytest

from hdl.arch.config import pair
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from sim.emulate import run_emulator
from sim.events import KINDS
from sim.rtl.build import build_rtl
from sim.rtl.run import run_rtl
from tests.system.random_programs import random_binary

SYSTEM = pair(NANO, latency=5)


@pytest.fixture(scope="module")
def model():
    return build_rtl(SYSTEM, name="test-nano-pair")


def rows(table, data):
    """Events as a sorted list of tuples, with or without their data."""
    names = [name for name in table.dtype.names if name != "data"]
    found = [tuple(int(event[name]) for name in names) for event in table]
    if data and "data" in table.dtype.names:
        found = [(*row, event["data"].tobytes()) for row, event in zip(found, table, strict=True)]
    return sorted(found)


def differences(binary, rtl, garbage):
    """What emulator and RTL do differently, and the faults that the emulator had."""
    emulated, other = (run_emulator(SYSTEM, binary, garbage=seed)[0]
                       for seed in (garbage, garbage + 1))
    found = []
    if emulated.faults != rtl.faults:
        found.append(("faults", emulated.faults, rtl.faults))
    # Which of two values moves on behind a conflict is undefined.
    defined = not any(faults >> Fault.STREAM_CONFLICT & 1 for faults in emulated.faults)
    for kind in KINDS:
        expected, observed = getattr(emulated.events, kind), getattr(rtl.events, kind)
        if rows(expected, False) != rows(observed, False):
            found.append((kind, rows(expected, False), rows(observed, False)))
        elif defined:
            # What depends on the state that nobody defined differs under another garbage.
            certain = set(rows(expected, True)) & set(rows(getattr(other.events, kind), True))
            if missing := certain - set(rows(observed, True)):
                found.append((kind, "data", missing))
    return found, emulated.faults


@pytest.mark.slow
def test_random_programs_do_the_same_on_emulator_and_rtl(model, seed, tmp_path):
    seen = set()
    for number in range(12):
        binary = random_binary(np.random.default_rng([seed, number]))
        rtl = run_rtl(model, SYSTEM, binary, run_dir=tmp_path / str(number), seed=seed + number,
                      garbage=seed, read_sram=False).runs[0]
        found, faults = differences(binary, rtl, seed)
        assert found == [], f"program {number}"
        seen |= {fault for fault in Fault for bits in faults if bits >> fault & 1}
    assert len(seen) >= 5, "programs that provoke next to nothing show next to nothing"
