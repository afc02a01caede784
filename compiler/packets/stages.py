"""Stages of a tile: what it can do before it waits for messages, and what they are.

A cluster's stage is the number of times that its tile has to wait before it: one more than that of
every SEND whose vectors it takes, and no less than that of anything on its own tile that it comes
behind.  What a tile sends to another in one stage is one *message*, announced by a POST as the
stage begins, and taken by the stages behind its arrival.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from ..errors import CompileError
from ..lower.builder import Builder
from ..lower.links import Links
from ..plan import Issue
from ..schedule.listing import ROUNDS, schedule
from ..schedule.problem import Cluster, Edge, Slot

__all__ = ["MessageBuilder", "Stages"]


class _UntimedLinks(Links):
    """Links that ask for an order alone."""

    def _arrive(self, send, recv, flight):
        pass

    def _leave_room(self, recv, send, flight):
        pass


class MessageBuilder(Builder):
    """A `Builder` in whose graph nothing is known of the time between a SEND and its RECV.

    The system's links are connections of its tiles, whatever lies between them; every two tiles
    that exchange vectors need one.
    """

    _links_of = _UntimedLinks

    def part(self, first, last):
        """Refused: what is sent in a part may be taken in another.

        Raises
        ------
        CompileError
            Always.
        """
        raise CompileError("Stages of parts of a region are unknown, and loops through caches are "
                           "parts: use a shorter context")


@dataclass
class _Stage:
    """What a tile does between two waits."""

    clusters: list = field(default_factory=list)
    edges: list = field(default_factory=list)
    sends: dict = field(default_factory=lambda: defaultdict(list))  #: SEND of each vector by port
    waits: list = field(default_factory=list)       #: masks of links: a message of each, by SYNC


class Stages:
    """Stages of every tile with their schedules, one behind the other: as `Schedule`, in a time of
    each tile's own that stands still while it waits.

    Parameters
    ----------
    builder : MessageBuilder
    rounds : int
        As of `schedule`.

    Attributes
    ----------
    end : int
        First cycle, in that time, in which the last tile does nothing any more.
    issues : list of Issue
        The instructions; SYNCs among them once `park` was called.
    starts : list of list of int
        By tile: cycle in which each stage begins.
    start : dict of Cluster to int
        Cycle of each cluster's first issue.
    turns : int
        1: it is no loop.
    """

    turns = 1

    def __init__(self, builder, rounds=0):
        self._builder = builder
        self._cfg = builder.cfg
        self.issues, self.starts, self.start, self.end = [], [], {}, 0
        self._waits = []        # (tile, cycle, mask of links), of every SYNC
        for tile, stages in enumerate(_split(builder)):
            self._lay_out(tile, stages, rounds)

    def improved(self):
        """The same with every stage's schedule improved."""
        return Stages(self._builder, ROUNDS)

    def _lay_out(self, tile, stages, rounds):
        """Schedule the stages of a tile."""
        posts = [_posts(self._cfg, tile, stage) for stage in stages]
        clusters = [[*(post for post, _ in some), *stage.clusters]
                    for some, stage in zip(posts, stages, strict=True)]
        cursor, starts = 1, []      # the LOOP word has cycle 0
        for stage, some, firsts in zip(stages, clusters, posts, strict=True):
            for mask in stage.waits:
                self._waits.append((tile, cursor, mask))
                cursor += 1
            starts.append(cursor)
            edges = stage.edges + [Edge(post.slots[0], send, 1) for post, sends in firsts
                                   for send in sends]
            body = schedule(self._cfg, some, edges, first=0, rounds=rounds)
            self.issues += [replace(issue, start=issue.start + cursor) for issue in body.issues]
            self.start |= {cluster: start + cursor for cluster, start in body.start.items()}
            cursor += body.end
        self.starts.append(starts)
        self.end = max(self.end, cursor)

    @property
    def queues(self):
        """(tile, queue) of everything that issues."""
        return {(issue.tile, issue.queue) for issue in self.issues}

    def park(self, queues):
        """Let ``queues``, set of (tile, queue), wait wherever their tile does: all must that issue
        anything in the program, in this region or in another."""
        self.issues += [Issue(tile, name, "SYNC", cycle, (("links", mask),))
                        for tile, cycle, mask in self._waits
                        for other, name in sorted(queues) if other == tile]


def _split(builder):
    """The stages of every tile: list by tile of lists of `_Stage`."""
    crossings = builder.crossings()
    stage = _numbers(builder, crossings)
    found = [defaultdict(_Stage) for _ in range(builder.system.tiles)]
    for cluster in builder.clusters:
        found[cluster.tile][stage[cluster]].clusters.append(cluster)
    for edge in builder.edges:
        source, target = edge.source.cluster, edge.target.cluster
        if stage[source] == stage[target]:
            found[source.tile][stage[source]].edges.append(edge)
    for (tile, port), vectors in crossings.items():
        needed = defaultdict(list)      # stage of the taker -> messages, by stage of the sender
        known = set()
        link = next(link for link in builder.system.links
                    if (link.target, link.target_port) == (tile, port))
        for send, recv in vectors:
            sent = stage[send.cluster]
            found[link.source][sent].sends[link.source_port].append(send)
            if sent not in known:
                known.add(sent)
                needed[stage[recv.cluster]].append(sent)
        for number, messages in needed.items():
            waits = found[tile][number].waits
            waits += [0] * (len(messages) - len(waits))
            for i in range(len(messages)):
                waits[i] |= 1 << port
        _check_room(builder.cfg, tile, port, vectors, stage)
    # the first has no wait in front, though nothing may be in it
    return [[stages[number] for number in sorted({0, *stages})] for stages in found]


def _numbers(builder, crossings):
    """The stage of each cluster."""
    before = defaultdict(list)
    for edge in builder.edges:
        before[edge.target.cluster].append((edge.source.cluster, 0))
    for vectors in crossings.values():
        for send, recv in vectors:
            before[recv.cluster].append((send.cluster, 1))
    stage = {}
    for cluster in builder.clusters:        # edges lead from earlier to later ones
        stage[cluster] = max((stage[other] + more for other, more in before[cluster]), default=0)
    return stage


def _check_room(cfg, tile, port, vectors, stage):
    sizes = defaultdict(int)
    for send, _ in vectors:
        sizes[stage[send.cluster]] += 1
    if (most := max(sizes.values())) > cfg.port(port).fifo:
        raise CompileError(f"Message of {most} vectors to tile {tile} needs a FIFO of as many, "
                           f"link {port} has one of {cfg.port(port).fifo}: raise PortConfig.fifo")


def _posts(cfg, tile, stage):
    """POSTs of a stage's messages, one for all of a length, and the SENDs they come before."""
    by_length = defaultdict(list)
    for port, sends in sorted(stage.sends.items()):
        by_length[len(sends)].append(port)
    found = []
    for length, ports in by_length.items():
        slot = Slot(tile, f"link{ports[0]}.send", "POST",
                    {"links": sum(1 << port for port in ports), "vectors": length})
        post = Cluster(cfg, f"post {length} vectors of tile {tile}", [slot], [])
        found.append((post, [stage.sends[port][0] for port in ports]))
    return found
