"""Random traffic on whole networks: everything arrives once, in order, within the credits."""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.config import PortConfig, all_to_all
from hdl.arch.packets import around, direct
from hdl.arch.presets import NANO
from tests.hdl.packet.fabric import Message, check, play

FLITS = 2


def system(tiles, fifo=8):
    port = PortConfig(bytes=2, fifo=fifo)
    return all_to_all(replace(NANO, sync=True, ports=(port,) * (tiles - 1)), tiles, 3)


def traffic(rng, network, count, horizon):
    """Some messages on every connection, sent in order, announced before or behind."""
    messages = []
    for tile in range(network.system.tiles):
        for port in range(network.system.tiles - 1):
            at = int(rng.integers(0, horizon))
            announced = -1
            for _ in range(count):
                vectors = tuple(int(rng.integers(1 << 32)) for _ in
                                range(rng.integers(1, network.fifo + 1)))
                announced = max(announced + 1, at + int(rng.integers(-6, 6)), 0)
                steps = network.flits + rng.choice([0, 0, 0, 5], len(vectors))
                sent = tuple(int(cycle) for cycle in at + np.cumsum(steps) - steps[0])
                messages.append(Message(tile, port, announced, sent, vectors))
                at = sent[-1] + network.flits + int(rng.integers(0, horizon))
    return messages


NETWORKS = {
    "direct": lambda **options: direct(system(4), **options),
    "ring": lambda **options: around(system(4), latency=3, **options),
    "ring_of_5": lambda **options: around(system(5), latency=3, **options),
}


@pytest.mark.parametrize("handshake", [0, 1])
@pytest.mark.parametrize("shape", NETWORKS)
def test_random_traffic_arrives_once_and_in_order(shape, handshake, rng):
    for chunk, spare in ((1, 0), (3, 1)):
        largest = 1 + chunk * FLITS
        network = NETWORKS[shape](depth=4 * largest, outbox=96)
        depth = largest * network.slots_to_enter + spare * 2
        knobs = network.knobs(chunk=chunk, depth=depth, handshake=handshake,
                              arbiter=int(rng.integers(256)))
        latencies = [int(latency) for latency in rng.integers(1, 9, len(network.links))]
        messages = traffic(rng, network, 3 if network.system.tiles > 4 else 4, 12)

        def take(tile, port, cycle, there):
            if handshake and (cycle + 16 * port) % 64 < 48:     # let the FIFO fill up
                return 0
            return 4 if there >= 4 else min(there, 1)

        seen = play(network, messages, knobs, latencies, take=take)
        check(network, messages, chunk, seen)


def only_message(network, posted, sent, port, **knobs):
    """One message of one vector from tile 0 in an idle network, its links of latency 3."""
    message = Message(0, port, posted, (sent,), (0x01020304,))
    seen = play(network, [message], network.knobs(chunk=1, **knobs), [3] * len(network.links))
    check(network, [message], 1, seen)
    [(arrived, _)] = seen.received[port + 1, port]
    return seen, arrived


def test_idle_network_takes_what_is_documented(rng):
    direct_4, ring_4 = NETWORKS["direct"](), NETWORKS["ring"]()
    # sent in 10: header on the wire in 11, at the far end in 14, two flits behind
    seen, arrived = only_message(direct_4, 2, 10, 0, handshake=0)
    assert [cycle for cycle, _ in seen.wires[direct_4.ways[0, 1][0]]] == [11, 12, 13]
    assert arrived == 16
    # two hops: on the second wire a cycle behind its arrival
    seen, arrived = only_message(ring_4, 2, 10, 1, handshake=0)
    first, second = ring_4.ways[0, 2]
    assert [cycle for cycle, _ in seen.wires[first]] == [11, 12, 13]
    assert [cycle for cycle, _ in seen.wires[second]] == [15, 16, 17]
    assert arrived == 20
    # posted in 2: request on the wire in 4, there in 7; ACK on the wire in 9, there in 12; header
    # on the wire in 14
    seen, arrived = only_message(direct_4, 2, 3, 0, handshake=1)
    assert [cycle for cycle, _ in seen.wires[direct_4.ways[0, 1][0]]] == [4, 14, 15, 16]
    assert [cycle for cycle, _ in seen.wires[direct_4.ways[1, 0][0]]] == [9]
    assert arrived == 19


def test_announced_behind_the_data_goes_then():
    network = NETWORKS["direct"]()
    seen, _ = only_message(network, 20, 5, 0, handshake=0)
    assert [cycle for cycle, _ in seen.wires[network.ways[0, 1][0]]] == [22, 23, 24]


def test_ring_with_smallest_buffers_moves_on_under_full_load(rng):
    """Every tile sends two hops clockwise at once, as fast as it can: without a place kept free
    all buffers of the ring would fill with packets that wait for each other."""
    network = around(system(4), latency=3, depth=6, outbox=96)
    messages = [Message(tile, 1, n, (4 * n, 4 * n + 2),
                        tuple(int(vector) for vector in rng.integers(1 << 32, size=2)))
                for tile in range(4) for n in range(8)]
    for arbiter in range(0, 10, 3):
        knobs = network.knobs(chunk=1, depth=6, handshake=0, arbiter=arbiter)
        seen = play(network, messages, knobs, [3] * 8)
        check(network, messages, 1, seen)
