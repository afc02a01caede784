import numpy as np
import pytest

from hdl.arch.presets import NANO
from sim.bench.registers import RECORD, SUFFIX, compare_traces, read_traces, recorded


def trace(rng, cycles=50):
    table = np.zeros(cycles, RECORD)
    table["cycle"] = np.arange(cycles)
    for name in ("reads", "registers"):
        table[name] = rng.integers(1 << 62, size=cycles)
    return table


@pytest.fixture
def traces(rng):
    return [trace(rng), trace(rng)]


def copies(traces):
    return [table.copy() for table in traces]


def test_equal_traces(traces):
    found = compare_traces(traces, copies(traces))
    assert (found.registers, found.reads) == (None, None)


@pytest.mark.parametrize("name", ["registers", "reads"])
def test_first_cycle_of_any_tile_is_found(traces, name):
    other = copies(traces)
    other[0][name][40] ^= 1
    other[1][name][17] ^= 1 << 61
    found = compare_traces(traces, other)
    assert getattr(found, name) == 17
    assert {found.registers, found.reads} == {17, None}


def test_trace_that_ends_early_differs(traces):
    other = copies(traces)
    other[1] = other[1][:30]
    found = compare_traces(traces, other)
    assert (found.registers, found.reads) == (30, 30)


def test_only_what_follows_the_start_counts(traces):
    other = [np.concatenate([trace(np.random.default_rng(9), 10), table]) for table in traces]
    for table in other:
        table["cycle"] = np.arange(len(table))
        table["registers"][5 + 10] ^= 1
    found = compare_traces(traces, other, starts=([6, 6], [16, 16]))
    assert (found.registers, found.reads) == (None, None)
    assert compare_traces(traces, other, starts=([5, 5], [15, 15])).registers == 5


def test_files_are_read_by_tile(traces, tmp_path):
    for number in (1, 0):
        (tmp_path / f"top.tile{number}{SUFFIX}").write_bytes(traces[number].tobytes())
    for expected, observed in zip(traces, read_traces(tmp_path), strict=True):
        np.testing.assert_array_equal(observed, expected)


def test_netlist_without_registers_is_refused():
    with pytest.raises(ValueError, match="registers and taps"):
        recorded(NANO, "module \\tile\nend\n", "module tile;\nendmodule\n")
