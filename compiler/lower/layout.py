"""Where data lies: words of SRAM slices, handed out once, with their first contents."""

from dataclasses import dataclass

from hdl.arch.binary import TileBinary

from ..errors import AllocationError

__all__ = ["Memory", "Symbol", "near_slices", "quads_of", "vector_quads", "weight_slices"]


@dataclass(frozen=True)
class Symbol:
    """A named piece of SRAM: ``words`` words from ``address`` on in each of ``slices`` of ``tile``.

    ``meaning`` says how elements map to slices, words and lanes.
    """

    name: str
    tile: int
    slices: tuple
    address: int
    words: int
    meaning: str = ""


def near_slices(cfg, name, count):
    """``count`` mem slices on one side of slice ``name``, the nearest first.

    Raises
    ------
    AllocationError
        When neither side has that many.
    """
    here = cfg.position(name)
    sides = [[mem for mem in reversed(cfg.slices("mem")) if cfg.position(mem) < here],
             [mem for mem in cfg.slices("mem") if cfg.position(mem) > here]]
    best = max(sides, key=lambda side: (len(side) >= count,
                                        -cfg.hops(name, side[0]) if side else 0))
    if len(best) < count:
        raise AllocationError(f"{name} needs {count} mem slices on one side, the floorplan has "
                              f"{len(sides[0])} west and {len(sides[1])} east of it")
    return tuple(best[:count])


def weight_slices(cfg, mxm, count=4):
    """``count`` mem slices for the weights of ``mxm``: beyond the VXM where there are as many.

    Weights then flow past the VXM in the direction in which its own operands flow to it.  Four
    byte planes that meet there are read one cycle apart from slice to slice, and so are the four
    rows of an LW: in the same order, one takes the place of one; in opposite order, of four.

    Raises
    ------
    AllocationError
        As `near_slices`.
    """
    if "vxm" in cfg.floorplan:
        here, vxm = cfg.position(mxm), cfg.position("vxm")
        beyond = [mem for mem in cfg.slices("mem") if (cfg.position(mem) < vxm) == (vxm < here)]
        if len(beyond) >= count:
            return tuple(sorted(beyond, key=lambda mem: cfg.hops("vxm", mem))[:count])
    return near_slices(cfg, mxm, count)


def quads_of(cfg):
    """Groups of four neighbouring mem slices, each on one side of the VXM and of the C2C: homes of
    vectors of four byte planes; west to east.  Slices that are left over lie far from the VXM."""
    here = cfg.position("vxm") if "vxm" in cfg.floorplan else 0
    found = []
    for side in (cfg.floorplan[:here][::-1], cfg.floorplan[here:]):
        group = []
        for name in side:
            if name == "c2c":
                group = []
            elif name.startswith("mem"):
                group.append(name)
                if len(group) == 4:
                    found.append(tuple(sorted(group, key=cfg.position)))
                    group = []
    return tuple(sorted(found, key=lambda quad: cfg.position(quad[0])))


def vector_quads(cfg):
    """`quads_of` a tile that has some.

    Raises
    ------
    AllocationError
        When there is none.
    """
    found = quads_of(cfg)
    if not found:
        raise AllocationError("Vectors of four byte planes need four mem slices on one side of the "
                              "vxm slice and of the c2c slice: change TileConfig.floorplan")
    return found


class Memory:
    """Free words of every slice of every tile, and the contents placed so far."""

    def __init__(self, system):
        self._cfg = system.tile
        self._next = {(tile, name): 0 for tile in range(system.tiles)
                      for name in self._cfg.slices("mem")}
        self._contents = {}
        self.symbols = {}

    def place(self, name, tile, slices, words, contents=None, meaning=""):
        """Give ``words`` words in each of ``slices``, at one address; note it under ``name``.

        Parameters
        ----------
        contents : sequence of arrays of uint8 (words, lanes) or None, optional
            What is loaded into each slice.

        Raises
        ------
        AllocationError
            When a slice is full.
        """
        address = max(self._next[tile, slice_] for slice_ in slices)
        if address + words > self._cfg.mem_words:
            row = len(slices) * self._cfg.lanes
            free, total = self._cfg.mem_words - address, self._cfg.mem_words
            raise AllocationError(
                f"{name} needs {words * row:,} bytes of SRAM ({words} words in each of "
                f"{', '.join(slices)} of tile {tile}), {free * row:,} of {total * row:,} are free: "
                "raise TileConfig.mem_words or use more tiles")
        for i, slice_ in enumerate(slices):
            self._next[tile, slice_] = address + words
            if contents is not None and contents[i] is not None:
                self._contents[tile, slice_, address] = contents[i].tobytes()
        symbol = Symbol(name, tile, tuple(slices), address, words, meaning)
        self.symbols[f"{name}@{tile}"] = symbol
        return symbol

    def note(self, name, place, stride):
        """Give a name to a part of what `place` handed out."""
        self.symbols[f"{name}@{place.tile}"] = Symbol(
            name, place.tile, place.slices, place.address, place.words, f"layer stride {stride}")

    def fill(self, binary):
        """Write the contents into the SRAM images of a `SystemBinary`."""
        for (tile, slice_, address), content in self._contents.items():
            image: TileBinary = binary.tiles[tile]
            image.sram.setdefault(slice_, {})[address] = content
