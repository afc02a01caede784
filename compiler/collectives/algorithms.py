"""The algorithms, as moves.

Vector ``v`` of ``n`` belongs to tile ``v % tiles``: there an all-gather finds it and a
reduce-scatter leaves it.  A vector goes on in the cycle in which it is ready, whatever others do.

``one_shot``
    Everything straight to whoever needs it; every tile adds for itself.
``two_shot``
    All-reduce: the owner of a vector adds it up and sends the sum to all.
``ring``
    From neighbour to neighbour, each adding its own; sums go around once more.  Where links lead
    around both ways, every other round of vectors goes the other way.
``hierarchical``
    Within groups first, between the members of one rank then, within groups again.
"""

from ..errors import CompileError

__all__ = ["ALGORITHMS", "COLLECTIVES", "tasks_of", "vectors_of"]

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


def vectors_of(collective, tiles, count):
    """Vectors of ``x`` and of ``y`` by tile: (list of int, list of int)."""
    mine = [len(range(tile, count, tiles)) for tile in range(tiles)]
    whole = [count] * tiles
    return {"all_gather": (mine, whole), "reduce_scatter": (whole, mine),
            "all_reduce": (whole, whole)}[collective]


def tasks_of(algorithm, collective, moves, count):
    """Add the tasks of ``count`` vectors to ``moves``.

    Raises
    ------
    CompileError
        When the algorithm does not apply.
    """
    _Algorithm(collective, moves, count).run(algorithm)


class _Algorithm:
    def __init__(self, collective, moves, count):
        self._collective = collective
        self._moves = moves
        self._network = moves.network
        self._places = moves.places
        self._tiles = moves.network.tiles
        self._count = count

    def run(self, algorithm):
        getattr(self, f"_{algorithm}")()

    def _owner(self, vector):
        return vector % len(self._tiles)

    def _gather(self, tree_of):
        """All-gather along the tree of each owner, `tree_of` (tile, vector)."""
        for vector in range(self._count):
            owner = self._owner(vector)
            tree, keep = tree_of(owner, vector), lambda tile, v=vector: self._places.y(v)
            flights = self._moves.send(owner, self._places.x(vector // len(self._tiles)),
                                       tree.get(owner, ()), copy=keep(owner))
            self._moves.settle(self._moves.spread(flights, tree, keep), keep)

    def _to(self, source, at, target, name):
        """The vector at ``at`` of ``source`` on its way to ``target``: what has come there."""
        tree = self._network.tree(source, [target])
        return self._moves.spread(self._moves.send(source, at, tree[source]), tree,
                                  lambda tile: None)[target]

    def _result(self, vector):
        """Where the sum lies on its owner."""
        scattered = self._collective == "reduce_scatter"
        return self._places.y(vector // len(self._tiles) if scattered else vector)

    def _sum(self, tile, parts, vector, *, at=None, links=(), name="part"):
        return self._moves.sum(
            tile, parts, at=at, links=links,
            spare=lambda number: self._places.waiting(tile, (name, vector, number)))

    def _publish(self, flights, tree, vector):
        """The sum of ``vector`` along ``tree`` to all its tiles."""
        def keep(tile):
            return self._places.y(vector)
        self._moves.settle(self._moves.spread(flights, tree, keep), keep)

    def _one_shot(self):
        if self._collective == "all_gather":
            self._gather(lambda owner, vector: self._network.tree(owner, self._tiles))
        elif self._collective == "reduce_scatter":
            self._collect(lambda vector: ())
        else:
            self._everywhere()

    def _collect(self, links_of):
        """Every vector to its owner, which adds it up and sends it onto ``links_of`` (vector);
        returns the flights by vector."""
        parts = {}
        for vector in range(self._count):
            owner, x = self._owner(vector), self._places.x(vector)
            parts[vector] = [x if tile == owner else self._to(tile, x, owner, "part")
                             for tile in self._tiles]
        return {vector: self._sum(self._owner(vector), mine, vector, at=self._result(vector),
                                  links=links_of(vector))[0] for vector, mine in parts.items()}

    def _everywhere(self):
        for vector in range(self._count):
            x, parts = self._places.x(vector), {tile: {} for tile in self._tiles}
            for source in self._tiles:
                tree = self._network.tree(source, self._tiles)
                flights = self._moves.send(source, x, tree.get(source, ()))

                def keep(tile, source=source, vector=vector):
                    return self._places.waiting(tile, ("part", vector, source))
                for tile, part in self._moves.spread(flights, tree, keep).items():
                    parts[tile][source] = part
                parts[source][source] = x
            for tile, mine in parts.items():
                self._sum(tile, [mine[source] for source in self._tiles], vector,
                          at=self._places.y(vector))

    def _two_shot(self):
        if self._collective != "all_reduce":
            raise CompileError("Algorithm two_shot is for all_reduce: use one_shot")
        trees = [self._network.tree(tile, self._tiles) for tile in self._tiles]
        sent = self._collect(lambda vector: trees[self._owner(vector)].get(self._owner(vector), ()))
        for vector, flights in sent.items():
            self._publish(flights, trees[self._owner(vector)], vector)

    def _way_around(self, start, step):
        """Links from ``start`` around all tiles."""
        count = len(self._tiles)
        return [self._network.direct((start + step * i) % count, (start + step * (i + 1)) % count)
                for i in range(count - 1)]

    def _ring(self):
        steps, count = self._network.ring, len(self._tiles)
        if not steps or count < 2:
            raise CompileError("Algorithm ring needs a link from every tile to the next: use "
                               "one_shot or another topology")

        def step(vector):
            return steps[vector // count % len(steps)]
        if self._collective == "all_gather":
            self._gather(lambda owner, vector: self._network.joined(
                [self._way_around(owner, step(vector))]))
            return
        # all vectors one step on, then all the next step: so their turns on a wire come
        under_way = {}
        for number in range(count - 1):
            for vector in range(self._count):
                link = self._way_around((self._owner(vector) + step(vector)) % count,
                                        step(vector))[number]
                if number == 0:
                    flights = self._moves.send(link.source, self._places.x(vector), [link])
                else:
                    flights = self._onward(under_way[vector], vector, number, [link])
                under_way[vector], = flights
        for vector in range(self._count):
            around = self._way_around(self._owner(vector), step(vector))
            whole = self._collective == "all_reduce"
            flights = self._onward(under_way[vector], vector, count - 1,
                                   around[:1] if whole else (), at=self._result(vector))
            if whole:
                self._publish(flights, self._network.joined([around]), vector)

    def _onward(self, flight, vector, number, links, at=None):
        """What has come, and the own vector, added up onto ``links``."""
        return self._sum(flight.link.target, [flight, self._places.x(vector)], vector, at=at,
                         links=links, name=f"step{number}")[0]

    def _hierarchical(self):
        size = self._network.group
        if size is None:
            raise CompileError("Algorithm hierarchical needs groups of consecutive tiles with a "
                               "link between every two: use one_shot or another topology")
        count = len(self._tiles)

        def mates(tile):
            return [tile // size * size + i for i in range(size)]

        def peers(tile):
            return list(range(tile % size, count, size))

        def tree(owner, vector=None):
            ways = [self._network.way(owner, peer) for peer in peers(owner)]
            return self._network.joined(ways + [[self._network.direct(peer, mate)]
                                                for peer in peers(owner) for mate in mates(peer)
                                                if mate != peer])
        if self._collective == "all_gather":
            self._gather(tree)
            return
        for vector in range(self._count):
            self._by_groups(vector, mates, peers)

    def _by_groups(self, vector, mates, peers):
        """One sum: in each group by the member of the owner's rank, then between these."""
        owner, x = self._owner(vector), self._places.x(vector)
        column, sums, coming = peers(owner), {}, {}
        scattered = self._collective == "reduce_scatter"
        for peer in column:
            parts = [x if mate == peer else self._to(mate, x, peer, "part") for mate in mates(peer)]
            targets = [owner] if scattered else column
            tree = self._network.tree(peer, targets)
            at = self._places.waiting(peer, ("group", vector)) if peer in targets else None
            flights, sums[peer] = self._sum(peer, parts, vector, at=at, links=tree.get(peer, ()))

            def keep(tile, peer=peer, column=column):
                return self._places.waiting(tile, ("of", peer, vector)) if tile in column and \
                    not scattered else None
            coming[peer] = self._moves.spread(flights, tree, keep)
        for peer in [owner] if scattered else column:
            parts = [sums[peer] if other == peer else coming[other][peer] for other in column]
            around = [] if scattered else [[self._network.direct(peer, mate)]
                                           for mate in mates(peer) if mate != peer]
            tree = self._network.joined(around)
            flights, _ = self._sum(peer, parts, vector, at=self._result(vector),
                                   links=tree.get(peer, ()), name="column")
            self._publish(flights, tree, vector)


#: Names, in the order in which ties are decided.
ALGORITHMS = ("one_shot", "two_shot", "ring", "hierarchical")
