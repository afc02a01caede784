"""Options and output of the commands that can write waves."""

import argparse
import re

from sim.build.model import BUILD_ROOT
from sim.errors import UsageError
from sim.rtl.run import VCD
from sim.waves.gtkw import write_view
from sim.waves.header import read_header

__all__ = ["add_waves", "build_options", "check_waves", "offer_waves", "show_waves"]

_LARGEST = (1 << 31) - 1
_LOOK = ("look first at event_cycle, counted from the start time, and at the group "
         "`instructions`: each row has the text of an instruction in the cycle it issues in")


def _window(text):
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if not match or not int(match[1]) <= int(match[2]) <= _LARGEST:
        raise argparse.ArgumentTypeError("must be first:last cycle, counted from the start time, "
                                         f"for example 1000:3000, not {text!r}")
    return int(match[1]), int(match[2])


def add_waves(parser):
    """A window of waves and the tile to see, as ``options.waves`` and ``options.waves_tile``."""
    parser.add_argument("--waves", type=_window, metavar="A:B",
                        help="write a VCD of cycles A to B of the run (needs a build of its own)")
    parser.add_argument("--waves-tile", type=int, default=0, metavar="TILE",
                        help="tile to see in it (default: %(default)s)")


def build_options(options):
    """Arguments of `sim.rtl.build.build_rtl`."""
    return {} if options.waves is None else {"kind": "waves", "tile": options.waves_tile}


def check_waves(options, cycles, tiles):
    """Refuse waves that would show nothing.

    Parameters
    ----------
    options : argparse.Namespace
    cycles : int
        Planned cycles of the run.
    tiles : int
        Of the program.

    Raises
    ------
    UsageError
    """
    if options.waves is None:
        return
    if getattr(options, "engine", None) == "emulator":
        raise UsageError("The emulator has no waves: leave --waves or --engine emulator out")
    if options.waves[0] >= cycles:
        raise UsageError(f"Waves must begin before the run ends at cycle {cycles:,}, "
                         f"not at {options.waves[0]:,}")
    if not 0 <= options.waves_tile < tiles:
        raise UsageError(f"Tile of the waves must be in 0..{tiles - 1}, not {options.waves_tile}")


def show_waves(directory, program, tile):
    """Write the view of the waves in a run's directory.

    Returns
    -------
    list of str
        Lines for the user: what there is, how to open it, what to look at.
    """
    vcd = directory / VCD
    if not vcd.exists() or read_header(vcd).begin is None:
        return [f"waves: the run did not come to the window, {vcd} is empty"]
    save = write_view(vcd, program.system.tile, tile, program.binary.tiles[tile].words)
    return [f"waves: {vcd.stat().st_size:,} bytes, tile {tile}",
            f"open them: gtkwave {_name(vcd.resolve())} {_name(save)}", _LOOK]


def offer_waves(directory, cycles):
    """How to get the waves of the first ``cycles`` cycles of what has just run without: lines."""
    vcd = directory / VCD
    return [f"see its waves: the same with WAVES=0:{cycles} (--waves 0:{cycles}), then gtkwave "
            f"{_name(vcd)} {_name(vcd.with_suffix('.gtkw'))}", _LOOK]


def _name(path):
    root = BUILD_ROOT.parent
    return path.relative_to(root) if path.is_relative_to(root) else path
