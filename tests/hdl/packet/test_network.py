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
        messages = traffic(rng, network, 4, 12)

        def take(tile, port, cycle, there):
            if handshake and (cycle + 16 * port) % 64 < 48:     # let the FIFO fill up
                return 0
            return 4 if there >= 4 else min(there, 1)

        seen = play(network, messages, knobs, latencies, take=take)
        check(network, messages, chunk, seen)


