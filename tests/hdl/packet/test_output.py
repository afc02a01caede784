"""An output of a router: order of grants, credits, and no cycle lost between packets."""

import pytest

from hdl.arch.packets import around, direct
from hdl.packet.output import PacketOutput
from tests.hdl.packet.test_network import system
from tests.support.pysim import run

DIRECT, RING = direct(system(4), depth=24), around(system(4), depth=24)


class Source:
    """Packets of a source, as (first cycle in which it asks, length)."""

    def __init__(self, packets):
        self.packets, self.rest = list(packets), 0

    def asks(self, cycle):
        return not self.rest and bool(self.packets) and self.packets[0][0] <= cycle


def simulate(network, through, packets, credits, start, returned, cycles):
    """(cycle, source) of every grant and cycles with a flit on the link; ``returned``: cycles in
    which a credit comes back."""
    output = PacketOutput(network, through)
    sources, grants, wire = [Source(some) for some in packets], [], []

    async def bench(ctx):
        ctx.set(output.credits, credits)
        ctx.set(output.start, start)
        for cycle in range(cycles):
            ctx.set(output.credit, cycle in returned)
            if ctx.get(output.tx.valid):
                wire.append((cycle, ctx.get(output.tx.data)))
            for i, source in enumerate(sources):
                port = getattr(output, f"source{i}")
                ctx.set(port.ask, source.asks(cycle))
                ctx.set(port.length, source.packets[0][1] if source.packets else 0)
                ctx.set(port.flit, 16 * (i + 1) + cycle % 16)
            for i, source in enumerate(sources):
                if ctx.get(getattr(output, f"source{i}").take):
                    assert source.rest or source.asks(cycle)
                    if not source.rest:
                        grants.append((cycle, i))
                        source.rest = source.packets[0][1]
                    source.rest -= 1
                    if not source.rest:
                        source.packets.pop(0)
            await ctx.tick()

    run(output, bench)
    return grants, wire


def expected(network, through, packets, credits, start, returned, cycles):
    """The same grants, from what is documented."""
    queues, grants = [list(some) for some in packets], []
    used, free, first = 0, 0, start
    for cycle in range(cycles):
        if cycle >= free:
            for turn in range(len(queues)):
                i = (first + turn) % len(queues)
                if not queues[i] or queues[i][0][0] > cycle:
                    continue
                length = queues[i][0][1]
                cost = 1 if network.passes else length
                spare = 1 if network.passes and not through[i] else 0
                if used + cost + spare <= credits:
                    grants.append((cycle, i))
                    used, free, first = used + cost, cycle + length, i + 1
                    queues[i].pop(0)
                    break
        used -= cycle in returned
    return grants


@pytest.mark.parametrize("start", range(4))
def test_sources_that_always_ask_take_turns_without_a_gap(start):
    packets = [[(0, 3)] * 5] * 4
    cycles = range(100)
    grants, wire = simulate(DIRECT, (False,) * 4, packets, 24, start, cycles[1:], 64)
    assert grants == [(3 * n, (start + n) % 4) for n in range(20)]
    assert [cycle for cycle, _ in wire] == list(range(1, 61))
    assert [data for _, data in wire] == \
        [16 * (grants[(cycle - 1) // 3][1] + 1) + (cycle - 1) % 16 for cycle, _ in wire]


@pytest.mark.parametrize("network", [DIRECT, RING], ids=["flits", "packets"])
def test_random_packets_and_credits_are_granted_as_documented(network, rng):
    through = (True, False, False) if network.passes else (False,) * 3
    seen = 0
    for _ in range(12):
        packets = []
        for _ in through:
            at, some = 0, []
            for _ in range(12):
                at += int(rng.integers(0, 12))
                some.append((at, int(rng.integers(1, 8))))
            packets.append(some)
        credits = 3 if network.passes else int(rng.integers(8, 15))
        # a credit comes back for what a packet has cost, some time behind it
        given = expected(network, through, packets, 10_000, 0, set(), 200)
        returned = {int(cycle) for cycle in rng.choice(300, min(150, len(given) * 4), False)}
        start = int(rng.integers(len(through)))
        want = expected(network, through, packets, credits, start, _earned(
            network, through, packets, credits, start, returned), 300)
        got, _ = simulate(network, through, packets, credits, start, _earned(
            network, through, packets, credits, start, returned), 300)
        assert got == want
        seen += len(want)
    assert seen > 150


def _earned(network, through, packets, credits, start, wished):
    """Those of the wished credits that something has been paid for before."""
    kept = set()
    for cycle in sorted(wished):
        grants = expected(network, through, packets, credits, start, kept, cycle)
        counts, paid = [0] * len(packets), 0
        for _, i in grants:
            paid += 1 if network.passes else packets[i][counts[i]][1]
            counts[i] += 1
        if paid > len(kept):
            kept.add(cycle)
    return kept
