"""Tables of text."""

from sim.report.table import percent, table


def test_columns_are_aligned():
    assert table(("what", "cycles", "share"), [("a", 1234567, "1.0%"), ("longer", 5, "-")]) == [
        "what       cycles  share",
        "a       1,234,567   1.0%",
        "longer          5      -",
    ]


def test_shares():
    assert (percent(1, 8), percent(3, 3), percent(1, 0)) == ("12.5%", "100.0%", "-")
