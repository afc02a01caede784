"""Tables of text."""

__all__ = ["percent", "table"]


def table(header, rows):
    """Lines of a table: the first column to the left, all others to the right.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequence
        Whole numbers get thousands separators, everything else is printed as it is.

    Returns
    -------
    list of str
    """
    cells = [[str(cell) for cell in header], *([_text(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                      for at, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
            for row in cells]


def percent(part, whole):
    """``part`` of ``whole`` as text, for example ``12.5%``."""
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _text(cell):
    return str(cell) if isinstance(cell, str) else f"{cell:,}"
