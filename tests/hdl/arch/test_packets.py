"""The conventional network's configuration: checks, ways, knobs."""

from dataclasses import replace

import pytest

from hdl.arch.config import PortConfig, all_to_all, ring
from hdl.arch.packets import Knobs, PacketNetwork, around, direct
from hdl.arch.presets import NANO

PORT = PortConfig(bytes=2, fifo=8)


def system(tiles, ports=None, **changes):
    return all_to_all(replace(NANO, **{"sync": True, "ports": ports or (PORT,) * (tiles - 1),
                                       **changes}), tiles, latency=5)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: direct(system(4, sync=False)), "Network needs tiles with sync: set TileConfig.sync"),
    (lambda: direct(system(3, ports=(PORT, replace(PORT, fifo=4)))), "ports are of one width and"),
    (lambda: direct(system(4, ports=(replace(PORT, bytes=1),) * 3)),
     "Packet header of 11 bits does not fit into a flit of 1 bytes: widen TileConfig.ports"),
    (lambda: direct(ring(system(4).tile, 4)), "whose tiles are all joined: use all_to_all"),
    (lambda: direct(all_to_all(system(2).tile, 1)), "Network must join at least 2 tiles, not 1"),
    (lambda: around(system(4), depth=5), "Input buffer must hold at least 6 flits, not 5"),
    (lambda: direct(system(4), depth=2), "Input buffer must hold at least 3 flits, not 2"),
    (lambda: direct(system(4), outbox=1), "Outbox must hold at least the 2 flits of a vector"),
    (lambda: around(system(4), latency=0), "Latency of a physical link must be at least 1 cycle"),
    (lambda: PacketNetwork(system=system(4), links=around(system(4)).links[1:]),
     "Physical links must join all pairs of tiles once, or all neighbours of a ring"),
])
def test_wrong_networks_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_direct_links_have_the_latencies_of_the_system():
    assert {link.latency for link in direct(system(3)).links} == {5}
    assert {link.latency for link in direct(system(3), latency=2).links} == {2}


@pytest.mark.parametrize("tiles", [2, 3, 4, 5, 8])
def test_ways_lead_to_their_target_by_the_shortest_way(tiles):
    for network in (direct(system(tiles)), around(system(tiles))):
        assert len(network.ways) == tiles * (tiles - 1)
        for (source, target), way in network.ways.items():
            at = source
            for j in way:
                assert network.links[j].source == at
                at = network.links[j].target
            assert at == target
            near = (target - source) % tiles
            assert len(way) == (1 if network.links == direct(system(tiles)).links
                                else min(near, tiles - near))
    if tiles % 2 == 0 and tiles > 2:
        half = around(system(tiles)).ways[1, (1 + tiles // 2) % tiles]
        assert around(system(tiles)).links[half[0]].target == 2


def test_only_a_ring_passes_on():
    assert [around(system(tiles)).passes for tiles in (2, 3, 4)] == [False, False, True]
    assert not direct(system(4)).passes and not direct(system(4)).passing


def test_knobs_count_credits_in_flits_or_in_largest_packets():
    assert direct(system(4)).knobs(chunk=2, depth=17) == Knobs(2, 17, 1, 0)
    assert around(system(4)).knobs(chunk=2, depth=17, handshake=0, arbiter=9) == Knobs(2, 3, 0, 9)
    assert direct(system(4), depth=9).knobs(chunk=1).credits == 9


@pytest.mark.parametrize(("values", "message"), [
    ({"chunk": 0}, "Chunk must be 1 to 8 vectors, not 0"),
    ({"chunk": 9}, "Chunk must be 1 to 8 vectors, not 9"),
    ({"chunk": 2, "depth": 9}, "Depth must be 10 to 32 flits with chunks of 2, not 9"),
    ({"chunk": 1, "depth": 33}, "Depth must be 6 to 32 flits with chunks of 1, not 33"),
    ({"chunk": 1, "handshake": 2}, "Handshake must be 0 or 1, not 2"),
    ({"chunk": 1, "arbiter": 256}, "Arbiter state must be 0 to 255, not 256"),
])
def test_knobs_that_cannot_work_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        around(system(4)).knobs(**values)
