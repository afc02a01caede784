"""Heads that go together through long caches, and how many of them at once."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from compiler.quantise.graph import ENTRIES

__all__ = ["Group", "chunk_of", "passes"]

#: Blocks of a chunk, the best first; an ordered sum asks for multiples of 4.
_SIZES = (8, ENTRIES)
#: Chunks that a cache has at least: two iterations and what lies around them.
_LEAST = 3


@dataclass(frozen=True, eq=False)
class Group:
    """Heads of a tile that share a KV head, of the sequences that attend together.

    Parameters
    ----------
    tile : int
    name : str
    queries : list of attention.Query
    keys, values : attention.Cache
    scored : callable
        Called with where the sums of the weights are kept, by query, once they are.
    mixed : callable
        Called with the sums by query and vector, MXM and accumulator, once they are complete.
    """

    tile: int
    name: str
    queries: list
    keys: object
    values: object
    scored: object
    mixed: object

    @property
    def vectors(self):
        return len(self.queries[0].limbs)

    def score_mxms(self, chunk):
        """MXM of the sum of each block of a chunk and each query, in order."""
        return [self.keys.mxm(0, block) for block in range(chunk) for _ in self.queries]

    def mix_mxms(self):
        """MXM of the sum of each vector and each query, in order."""
        return [self.values.mxm(vector, 0) for vector in range(self.vectors)
                for _ in self.queries]


def chunk_of(cfg, groups):
    """Blocks of a chunk; None where the caches of ``groups`` are too short for several, or the
    accumulators too few for the chunks of one group."""
    count = groups[0].keys.count
    for chunk in _SIZES:
        needs = [Counter(mxms) for group in groups
                 for mxms in (group.score_mxms(chunk), group.mix_mxms())]
        if count % chunk == 0 and count >= _LEAST * chunk and \
                all(max(need.values()) <= cfg.accumulators for need in needs):
            return chunk
    return None


def passes(cfg, groups, mxms_of):
    """Groups of all tiles in passes, each of as many as find accumulators at once.

    Parameters
    ----------
    mxms_of : callable
        MXM of each sum of a group.

    Returns
    -------
    list of list of (Group, list of (str, int))
        By pass; of each group its sums, MXM and accumulator.
    """
    found, used = [[]], defaultdict(Counter)
    turn = Counter()
    for group in groups:
        mxms, tile = mxms_of(group), group.tile
        if any((used[tile, turn[tile]] + Counter(mxms))[mxm] > cfg.accumulators for mxm in mxms):
            turn[tile] += 1
        if turn[tile] == len(found):
            found.append([])
        mine, sums = used[tile, turn[tile]], []
        for mxm in mxms:
            sums.append((mxm, mine[mxm]))
            mine[mxm] += 1
        found[turn[tile]].append((group, sums))
    return found
