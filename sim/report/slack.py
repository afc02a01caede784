"""What a schedule is made of: how long vectors lie about before they are sent and once they have
come, from the plan of a program alone."""

import re
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from sim.report.flow import Flow

__all__ = ["Exchange", "Product", "Spread", "exchanges", "products", "spread"]

#: Name of what is sent to the host.
HOST = "to the host"


class Exchange(NamedTuple):
    """What one SEND, or a RECV or FORWARD that passes on, puts on one link.

    Attributes
    ----------
    name : str
        Of the words they are received into.
    place : tuple or None
        The first of these: tile, slice, address.
    vector : tuple or None
        Name and number of the whole vector that this is a plane of, or a limb.
    tile : int
        That sends.
    run : tuple
        Run of the region in which it does.
    sent : int
        Cycle of the instruction that does.
    made : int or None
        Earliest cycle in which what it sends could be read; None: before the step, or never.
    to_send : int or None
        Cycles from then to its READ or ACC.
    to_use : int or None
        Cycles from when it could be read at the other end to when it is; None: not in this step.
    relayed : bool
        The sender has it from another tile.
    """

    name: str
    place: tuple | None
    vector: tuple | None
    tile: int
    run: tuple
    sent: int
    made: int | None
    to_send: int | None
    to_use: int | None
    relayed: bool


class Spread(NamedTuple):
    """A distribution of cycles."""
    count: int
    zeros: float
    median: float
    ninety: float
    most: int


class Product(NamedTuple):
    """Vectors of one name that one tile makes and sends in one run of a region.

    Attributes
    ----------
    name, tile, run : str, int, tuple
    vectors : int
    leaves : int
        Cycle of the first SEND.
    begun, done : int
        First cycle in which one of them, and in which all of them could be read.
    """

    name: str
    tile: int
    run: tuple
    vectors: int
    leaves: int
    begun: int
    done: int


def spread(cycles):
    """`Spread` of a list of cycles; None of an empty one."""
    if not cycles:
        return None
    values = np.array(cycles)
    return Spread(len(values), float((values == 0).mean()), float(np.median(values)),
                  float(np.percentile(values, 90)), int(values.max()))


def exchanges(program):
    """`Exchange` of everything that leaves a tile in a program's first step, in order of time; one
    SEND onto several links gives one for each."""
    plan, flow = program.plan, Flow(program.plan)
    names, uses, writes = _Names(program.symbols), defaultdict(list), defaultdict(list)
    for event in flow.events:
        if event.op == "WRITE":
            for maker in event.made_by:
                writes[maker].append(event)
        if event.op == "READ" and (found := flow.ready(event)):
            uses[found[0]].append(event.cycle - found[1])
    found, onward = [], {}
    for send, take, link in _journeys(plan.system, flow.events):
        found.append((send, take, link))
        if send.op == "FORWARD":
            onward.setdefault(send, take)
    rows = []
    for send, take, link in found:
        while take in onward:
            take = onward[take]
        rows.append(_exchange(flow, names, send, writes[take], uses, link))
    return sorted(rows, key=lambda exchange: exchange.sent)


def _journeys(system, events):
    """(What puts vectors on a link, RECV or FORWARD that takes the first of them, link) of all; the
    host takes nothing, on no link."""
    host, sent, taken = len(system.tile.ports), defaultdict(list), defaultdict(list)
    for event in events:
        vectors = 4 if event.fields.get("quad") else 1
        for port in range(host + 1):
            if event.fields.get("links", 0) >> port & 1:
                sent[event.tile, port] += [event] * vectors
        if event.op in ("RECV", "FORWARD"):
            taken[event.tile, event.queue.unit] += [event] * vectors
    for (tile, port), vectors in sent.items():
        link = None if port == host else system.outgoing(tile, port)
        takes = taken[link.target, link.target_port] if link else [None] * len(vectors)
        before = None
        for send, take in zip(vectors, takes, strict=True):
            if send is not before:
                yield send, take, link
            before = send


def _exchange(flow, names, send, written, uses, link):
    waits = [wait for write in written for wait in uses[write][:1]]
    makers = [(event, flow.ready(event)) for event in send.made_by if event.op in ("READ", "ACC")]
    known = [(event.cycle - ready[1], ready[1]) for event, ready in makers if ready]
    relayed = send.op != "SEND" or any(maker.op == "RECV" for _, ready in makers if ready
                                       for maker in ready[0].made_by)
    name, place, vector = HOST if link is None else "passed on", None, None
    if written:
        place = written[0].place
        name, vector = names.of(place)
    return Exchange(name, place, vector, send.tile, send.run, send.cycle,
                    max((made for _, made in known), default=None),
                    min((wait for wait, _ in known), default=None), min(waits, default=None),
                    relayed)


def products(found):
    """`Product` of those of `exchanges` that make several vectors, in order of time."""
    groups, turns = defaultdict(list), defaultdict(int)
    for exchange in found:
        if exchange.made is not None and exchange.place and not exchange.relayed:
            # a word that is received once more belongs to the next product of that name
            turn = turns[exchange.tile, exchange.run, exchange.place]
            turns[exchange.tile, exchange.run, exchange.place] += 1
            groups[exchange.name, exchange.tile, exchange.run, turn].append(exchange)
    rows = []
    for (*group, _), sent in groups.items():
        vectors = len({exchange.vector for exchange in sent})
        if vectors > 1:
            rows.append(Product(*group, vectors, sent[0].sent,
                                min(exchange.made for exchange in sent),
                                max(exchange.made for exchange in sent)))
    return sorted(rows, key=lambda product: product.leaves)


class _Names:
    """Names of words: without the numbers of their parts, and with them and that of the word."""

    def __init__(self, symbols):
        self._symbols = sorted(symbols.values(), key=lambda symbol: symbol.words)

    def of(self, place):
        tile, slice_, address = place
        for symbol in self._symbols:
            number = address - symbol.address
            if symbol.tile == tile and slice_ in symbol.slices and 0 <= number < symbol.words:
                return re.sub(r"[. ]\d+$", "", symbol.name), (symbol.name, number)
        return "no name", (slice_, address)
