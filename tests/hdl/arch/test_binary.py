"""What a binary must be to fit its configuration."""

import pytest

from hdl.arch.binary import BinaryError, TileBinary
from hdl.arch.presets import NANO

ZERO = (0, 0, 0)


@pytest.mark.parametrize("table", [[ZERO], [ZERO, (31, (1 << 20) - 1, -(1 << 20))], [ZERO] * 8])
def test_tables_that_fit(table):
    TileBinary(tables={"mem0.read": table}).check(NANO)


@pytest.mark.parametrize("table", [[], [(1, 0, 0)], [ZERO] * 9])
def test_tables_without_the_zero_entry_or_too_long(table):
    with pytest.raises(BinaryError, match="Table of queue mem0.read must have 1 to 8 entries, the "
                                          r"first \(0, 0, 0\)"):
        TileBinary(tables={"mem0.read": table}).check(NANO)


@pytest.mark.parametrize("entry", [(32, 0, 0), (-1, 0, 0), (0, 1 << 20, 0), (0, -1, 0),
                                   (0, 0, 1 << 20), (0, 0, -(1 << 20) - 1), (0, 0), (0, 0, 0.5)])
def test_entries_that_the_hardware_cannot_hold(entry):
    with pytest.raises(BinaryError, match="which is not a shift, a mask and a step of its width"):
        TileBinary(tables={"mem0.read": [ZERO, entry]}).check(NANO)


def test_a_table_of_no_queue():
    with pytest.raises(BinaryError, match="Table of queue mem9.read"):
        TileBinary(tables={"mem9.read": [ZERO]}).check(NANO)
