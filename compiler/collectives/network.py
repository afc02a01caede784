"""Ways over the links of a system, and what its tiles are joined to."""

from functools import cached_property

from hdl.arch.timing import rules

from ..errors import CompileError

__all__ = ["Network"]


class Network:
    """Fastest ways between the tiles of ``system``, and its groups.

    Parameters
    ----------
    system : SystemConfig
    """

    def __init__(self, system):
        self.system = system
        self.cfg = system.tile
        self.tiles = range(system.tiles)
        self._out = {tile: [link for link in system.links if link.source == tile]
                     for tile in self.tiles}
        self._direct = {(link.source, link.target): link for link in system.links}
        self._ways = {}

    def flits(self, link):
        """Cycles that one byte plane of a vector occupies the wire of ``link``."""
        return self.cfg.port(link.source_port).flits(self.cfg.lanes)

    def hop(self, link):
        """Cycles from the departure of a byte plane on ``link`` to its departure from the tile at
        the end."""
        return self.flits(link) + link.latency + rules(self.cfg).arrival_to_recv

    def direct(self, source, target):
        """The link from one tile to another, or None."""
        return self._direct.get((source, target))

    def way(self, source, target):
        """Links of the fastest way.

        Raises
        ------
        CompileError
            When there is none.
        """
        links = []
        via = self._via(source)
        while target != source:
            if target not in via:
                raise CompileError(f"Collective needs a way over links from tile {source} to tile "
                                   f"{target}: use another topology")
            links.append(via[target])
            target = via[target].source
        return links[::-1]

    def _via(self, source):
        """The last link on the fastest way from ``source`` to each tile."""
        if source not in self._ways:
            times, via, left = {source: 0}, {}, {source}
            while left:
                tile = min(left, key=lambda tile: (times[tile], tile))
                left.remove(tile)
                for link in self._out[tile]:
                    at = times[tile] + self.hop(link)
                    if at < times.get(link.target, at + 1):
                        times[link.target], via[link.target] = at, link
                        left.add(link.target)
            self._ways[source] = via
        return self._ways[source]

    def tree(self, source, targets):
        """How a vector gets from ``source`` to all ``targets``: dict of tile to the links on which
        it goes on, in the order in which tiles have it."""
        return self.joined(self.way(source, target) for target in targets)

    @staticmethod
    def joined(ways):
        """One tree of several ``ways``, each of which begins at a tile of those before it; a tile
        that has the vector already does not get it again."""
        tree, reached = {}, set()
        for way in ways:
            for link in way:
                reached.add(link.source)
                if link.target not in reached:
                    reached.add(link.target)
                    tree.setdefault(link.source, []).append(link)
        return tree

    @property
    def ring(self):
        """Steps (1, -1) in which links lead around all tiles in the order of their numbers."""
        count = len(self.tiles)
        return [step for step in ((1, -1) if count > 2 else (1,))
                if all(self.direct(tile, (tile + step) % count) for tile in self.tiles)]

    @cached_property
    def group(self):
        """Tiles of a group: consecutive tiles all of which are joined directly; of several sizes
        that divide the tiles the one nearest to their square root, or None."""
        count = len(self.tiles)
        sizes = [size for size in range(2, count)
                 if count % size == 0 and all(
                     self.direct(one, other) for one in self.tiles for other in self.tiles
                     if one != other and one // size == other // size)]
        return min(sizes, key=lambda size: max(size * size, count) / min(size * size, count),
                   default=None)
