"""The FPGAs that a design can be made for, and the pins of the board."""

from dataclasses import dataclass

from amaranth_boards import ulx3s

from hdl.board.top import OSCILLATOR_MHZ

__all__ = ["BOARD", "PACKAGE", "PARTS", "SPEED", "Part", "constraints"]


@dataclass(frozen=True)
class Part:
    """An ECP5.

    ``option``: what nextpnr calls it.  Numbers of what it has: LUTs of 4 inputs, flip-flops, block
    RAMs of 18 kbit, multipliers of 18 x 18 bits.
    """

    name: str
    option: str
    luts: int
    flip_flops: int
    block_rams: int
    multipliers: int


#: By size: LUTs as nextpnr has them, each with a flip-flop; the rest as in Lattice FPGA-DS-02012,
#: ECP5 family data sheet.
PARTS = {
    "85k": Part("LFE5U-85F", "--85k", 83640, 83640, 208, 156),
    "45k": Part("LFE5U-45F", "--45k", 43848, 43848, 108, 72),
    "25k": Part("LFE5U-25F", "--25k", 24288, 24288, 56, 28),
}


#: The board: an oscillator, a serial line over USB, eight LEDs.
BOARD = "Radiona ULX3S 85F"
PACKAGE = "CABGA381"
SPEED = int(ulx3s.ULX3S_85F_Platform.speed)


def _pins(name, *, part=None):
    """Package pins of a resource of the board, or of a part of it, by number."""
    found = [resource for resource in ulx3s.ULX3S_85F_Platform.resources if resource.name == name]
    ios = [resource.ios if part is None else
           [io.ios[0] for io in resource.ios if getattr(io, "name", None) == part]
           for resource in found]
    return [pins.names[0] for io in ios for pins in io[:1]]


def constraints():
    """Text of an LPF file: where the ports of `hdl.board.BoardTop` are."""
    sites = {"clk25": _pins("clk25")[0], "rx": _pins("uart", part="rx")[0],
             "tx": _pins("uart", part="tx")[0]}
    sites |= {f"leds[{i}]": site for i, site in enumerate(_pins("led"))}
    lines = [f'LOCATE COMP "{port}" SITE "{site}";\nIOBUF PORT "{port}" IO_TYPE=LVCMOS33;'
             for port, site in sites.items()]
    return "\n".join([*lines, f'FREQUENCY PORT "clk25" {OSCILLATOR_MHZ} MHZ;', ""])
