"""Stages: what is announced is sent, what is waited for comes, in whatever order it does."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from compiler.collectives import COLLECTIVES, applicable
from compiler.errors import CompileError
from compiler.lower.chain import At, Chain
from compiler.packets import MessageBuilder, PacketCompilation, Stages, packet_collective
from hdl.arch.config import all_to_all
from hdl.arch.presets import DEMO
from sim.collectives import operands
from tests.compiler.packets.models import small_layer


def packet_system(tiles, fifo=64, **changes):
    port = replace(DEMO.ports[0], fifo=fifo)
    tile = replace(DEMO, ports=(port,) * (tiles - 1), sync=True, **changes)
    return all_to_all(tile, tiles)


def vectors_of(issue):
    return 4 if dict(issue.fields).get("quad") else 1


def ports_of(issue, system):
    mask = dict(issue.fields)["links"]
    return [port for port in range(len(system.tile.ports)) if mask >> port & 1]


class Tile:
    """A tile's issues, cut at its SYNCs."""

    def __init__(self, tile, issues):
        mine = [issue for issue in issues if issue.tile == tile]
        waits = defaultdict(list)
        for issue in mine:
            waits[issue.queue] += [(issue.start, dict(issue.fields)["links"])] \
                if issue.op == "SYNC" else []
        # every queue of the tile parks at the same times for the same messages
        assert len({tuple(sorted(some)) for some in waits.values()}) == 1
        self.waits = sorted(next(iter(waits.values())))
        bounds = [start for start, _ in self.waits]
        self.stages = [[] for _ in range(len(bounds) + 1)]
        for issue in sorted(mine, key=lambda issue: issue.start):
            if issue.op != "SYNC":
                assert issue.start not in bounds
                self.stages[np.searchsorted(bounds, issue.start)].append(issue)


def play(system, issues, rng):
    """Let the tiles go on in random order, as their messages come; nothing is known of time."""
    tiles = [Tile(tile, issues) for tile in range(system.tiles)]
    at, come, room = [-1] * system.tiles, defaultdict(list), Counter()
    links = {(link.source, link.source_port): (link.target, link.target_port)
             for link in system.links}
    left = set(range(system.tiles))
    while left:
        ready = [tile for tile in sorted(left) if at[tile] < 0 or all(
            come[tile, port] for port in range(len(system.tile.ports))
            if tiles[tile].waits[at[tile]][1] >> port & 1)]
        assert ready, "every tile waits"
        tile = rng.choice(ready)
        if at[tile] >= 0:
            for port in range(len(system.tile.ports)):
                if tiles[tile].waits[at[tile]][1] >> port & 1:
                    room[tile, port] += come[tile, port].pop(0)
        at[tile] += 1
        announced, sent = Counter(), Counter()
        for issue in tiles[tile].stages[at[tile]]:
            if issue.op == "POST":
                for port in ports_of(issue, system):
                    announced[port] += dict(issue.fields)["vectors"]
            elif issue.op == "RECV":
                port = int(issue.queue.removeprefix("link").removesuffix(".recv"))
                room[tile, port] -= vectors_of(issue)
                assert room[tile, port] >= 0, "taken before it has come"
            if issue.op in ("SEND", "RECV"):
                for port in ports_of(issue, system):
                    assert sent[port] < announced[port], "sent before it is announced"
                    sent[port] += vectors_of(issue)
        assert announced == sent
        for port, count in sent.items():
            come[links[tile, port]].append(count)
        if at[tile] == len(tiles[tile].waits):
            left.remove(tile)
    assert not any(come.values()) and not any(room.values())
    return tiles


@pytest.mark.parametrize("tiles", [2, 3, 4])
@pytest.mark.parametrize("batch", [1, 2])
def test_stages_of_a_layer(tiles, batch, rng):
    model, inputs = small_layer()
    compilation = PacketCompilation(packet_system(tiles), model, 30, search=False, batch=batch)
    compilation.layers(inputs)
    body = compilation.regions[-1].body
    for _ in range(5):
        found = play(compilation.system, body.issues, rng)
    # attended, the sums of `o`, the gated vectors, the sums of `down`
    assert {len(tile.waits) for tile in found} <= {4, 5}


@pytest.mark.parametrize("tiles", [2, 4, 8])
def test_a_queue_waits_in_every_region_if_it_issues_in_any(tiles):
    model, inputs = small_layer()
    compilation = PacketCompilation(packet_system(tiles), model, 30, search=False)
    compilation.layers(inputs)
    queues, waiting = defaultdict(set), defaultdict(lambda: defaultdict(int))
    for region in compilation.regions:
        for issue in region.body.issues:
            queues[issue.tile].add(issue.queue)
            waiting[issue.tile][issue.queue] += issue.op == "SYNC"
    for tile in range(tiles):
        assert len({waiting[tile][queue] for queue in queues[tile]}) == 1
        assert min(waiting[tile].values()) > 0


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("tiles", "vectors"), [(2, 1), (3, 5), (4, 4)])
def test_stages_of_collectives(collective, tiles, vectors, rng):
    system = packet_system(tiles, mem_words=256)
    data = operands(system, collective, vectors, rng)
    algorithms = [algorithm for algorithm, _ in applicable(system, collective, vectors)]
    assert {"one_shot", "ring"} <= set(algorithms)
    for algorithm in algorithms:
        *_, body = packet_collective(system, collective, algorithm, data)
        for _ in range(5):
            play(system, body.issues, rng)


def _builder(system, sends, takes):
    """Tile 0 sends so many vectors to tile 1, which takes so many."""
    builder = MessageBuilder(system)
    for number in range(max(sends, takes)):
        for tile, count in ((0, sends), (1, takes)):
            if number < count:
                chain = Chain(system.tile, f"vector {number} of tile {tile}", tile)
                at = At(("mem0",), number)
                if tile == 0:
                    chain.send(chain.read(at), [0])
                else:
                    chain.write(chain.recv(0), at)
                builder.add(chain.cluster())
    return builder


def test_what_is_sent_must_be_taken():
    with pytest.raises(CompileError, match="Tile 1 takes 2 of 3 vectors that arrive on link 0"):
        Stages(_builder(packet_system(2), 3, 2))


def test_a_message_must_fit_the_fifo():
    assert Stages(_builder(packet_system(2, fifo=4), 4, 4)).end
    with pytest.raises(CompileError, match="Message of 5 vectors to tile 1 needs a FIFO of as "
                                           "many, link 0 has one of 4: raise PortConfig.fifo"):
        Stages(_builder(packet_system(2, fifo=4), 5, 5))
