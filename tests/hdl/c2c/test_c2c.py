"""Links against their description: every width, the tightness of every rule, each fault."""

import dataclasses

import pytest
from amaranth.hdl import ResetInserter, Signal

from hdl.arch.config import PortConfig
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from hdl.arch.timing import departure, link_arrival, rules, timing
from hdl.c2c import C2c
from tests.hdl.c2c.harness import simulate
from tests.hdl.c2c.model import Issue, expected
from tests.support.pysim import run
from tests.support.replay import Recorder, differing, replay

SEND = {"quad": 0, "links": 1, "source": 0, "source_west": 0, "source_last": 0}
RECV = {"links": 0, "quad": 0, "east_en": 1, "east": 0, "west_en": 0, "west": 0}


def config(lanes, *ports):
    """Configuration with link ports of (bytes, fifo); the last is the host's."""
    made = [PortConfig(bytes=width, fifo=fifo) for width, fifo in ports]
    return dataclasses.replace(NANO, lanes=lanes, ports=tuple(made[:-1]), host=made[-1])


def vectors(cfg, rng, count=4):
    return [rng.bytes(cfg.lanes) for _ in range(count)]


def send(cycle, link, data, **fields):
    return Issue(cycle, link, "SEND", SEND | {"links": 1 << link} | fields, data)


def recv(cycle, link, **fields):
    return Issue(cycle, link, "RECV", RECV | fields)


def forward(cycle, link, links):
    return Issue(cycle, link, "FORWARD", {"links": links})


def check(cfg, issues, wires, rng, cycles):
    trace = simulate(cfg, issues, wires, rng, cycles)
    model = expected(cfg, issues, wires, cycles)
    for part in dataclasses.fields(trace):
        assert getattr(trace, part.name) == getattr(model, part.name), part.name
    return trace


@pytest.mark.parametrize(("lanes", "width"), [
    (4, 1), (4, 2), (4, 3), (4, 4), (4, 5), (4, 9), (8, 1), (8, 3), (8, 5), (8, 8), (16, 1),
    (16, 7), (16, 8), (16, 16), (16, 40), (48, 32)])
@pytest.mark.parametrize("latency", [1, 16])
def test_every_flit_count_arrives_when_the_timing_table_says(lanes, width, latency, rng):
    cfg = config(lanes, (width, 4), (2, 4))
    data = vectors(cfg, rng)
    last = link_arrival(cfg, 0, latency, 3, vector=3)
    take = last + rules(cfg).arrival_to_recv
    issues = [send(3, 0, data, quad=1), recv(take, 0, quad=1, east=4)]
    trace = check(cfg, issues, {0: (0, latency)}, rng, take + 3)
    arrivals = {(link_arrival(cfg, 0, latency, 3, vector=j), 0): data[j] for j in range(4)}
    assert trace.arrivals == arrivals
    assert trace.writes == {(take + timing(cfg)["recv", "RECV"].t_d, 0): (4, None, data)}
    assert not trace.faults
    # the first flit has the lowest lanes, and what follows the last lane is zero
    first = trace.flits[3 + timing(cfg)["send", "SEND"].t_d + 1, 0]
    assert first == (data[0] + bytes(width))[:width]
    flits = b"".join(trace.flits[cycle, 0] for cycle, _ in sorted(trace.flits))
    step = -(-lanes // width) * width
    assert len(flits) == 4 * step
    assert all(not any(flits[i * step + lanes:(i + 1) * step]) for i in range(4))


@pytest.mark.parametrize("quad", [0, 1])
@pytest.mark.parametrize(("lanes", "width"), [(4, 1), (4, 3), (8, 8), (16, 8)])
def test_next_send_is_tight(lanes, width, quad, rng):
    cfg = config(lanes, (width, 16), (2, 4))
    occupied = cfg.port(0).flits(lanes) * (4 if quad else 1)
    first, second, third = (vectors(cfg, rng) for _ in range(3))
    issues = [send(2, 0, first, quad=quad), send(2 + occupied, 0, second, quad=quad),
              send(2 + 2 * occupied, 0, third, quad=quad)]
    end = 2 + 4 * occupied + 6
    trace = check(cfg, issues, {0: (0, 3)}, rng, end)
    assert not trace.faults
    assert sorted(cycle for cycle, _ in trace.flits) == list(range(3, 3 + 3 * occupied))
    if occupied > 1:
        issues[1].cycle -= 1
        trace = check(cfg, issues, {0: (0, 3)}, rng, end)
        assert trace.faults == {(1 + occupied, Fault.LINK_BUSY)}
        # the one that came too early is dropped as a whole, though it has read its streams
        count = 4 if quad else 1
        assert set(trace.arrivals.values()) == set(first[:count] + third[:count])
        assert (1 + occupied, 0) in trace.taps


@pytest.mark.parametrize("fifo", [4, 8])
@pytest.mark.parametrize("quad", [0, 1])
def test_recv_is_tight(quad, fifo, rng):
    cfg = config(4, (2, fifo), (2, 4))
    data = vectors(cfg, rng)
    latency = 5
    needed = link_arrival(cfg, 0, latency, 1, vector=3 if quad else 0)
    for early in (0, 1):
        at = needed + rules(cfg).arrival_to_recv - early
        issues = [send(1, 0, data, quad=1), recv(at, 0, quad=quad), recv(at + 9, 0)]
        trace = check(cfg, issues, {0: (0, latency)}, rng, at + 12)
        found = trace.writes[at + 1, 0][2]
        if early:
            assert trace.faults == {(at, Fault.FIFO_UNDERFLOW)}
            assert found == [bytes(4)] * (4 if quad else 1)
            assert trace.writes[at + 10, 0][2] == data[:1]      # nothing was taken
        else:
            assert trace.faults == ({(at + 9, Fault.FIFO_UNDERFLOW)} if quad else set())
            assert found == data[:4 if quad else 1]


@pytest.mark.parametrize("fifo", [4, 8])
def test_fifo_overflow(fifo, rng):
    cfg = config(4, (4, fifo), (2, 4))
    data = vectors(cfg, rng, fifo + 2)
    issues = [send(i, 0, [vector]) for i, vector in enumerate(data)]
    arrival = link_arrival(cfg, 0, 2, fifo)         # of the vector for which there is no room
    issues += [recv(arrival, 0), *(recv(arrival + 4 + i, 0) for i in range(fifo))]
    trace = check(cfg, issues, {0: (0, 2)}, rng, arrival + fifo + 8)
    # full counts at the start of the cycle: taking one in the same cycle makes no room
    assert trace.faults == {(arrival, Fault.FIFO_OVERFLOW)}
    assert list(trace.arrivals.values()) == data[:fifo] + data[fifo + 1:]
    assert [vector for *_, (vector,) in trace.writes.values()] == data[:fifo] + data[fifo + 1:]


def test_a_full_fifo_takes_what_arrives_one_cycle_after_a_recv(rng):
    cfg = config(4, (4, 4), (2, 4))
    data = vectors(cfg, rng, 5)
    issues = [send(i, 0, [vector]) for i, vector in enumerate(data)]
    issues.append(recv(link_arrival(cfg, 0, 2, 4) - 1, 0))
    assert not check(cfg, issues, {0: (0, 2)}, rng, 20).faults


def test_forward_cuts_through_onto_several_links(rng):
    # link 1 has other flits than link 0, the host others again
    cfg = config(8, (4, 4), (3, 4), (8, 4))
    data = vectors(cfg, rng, 1)
    wires = {0: (0, 4), 1: (1, 7), 2: (2, 1)}
    at = link_arrival(cfg, 0, 4, 1) + rules(cfg).arrival_to_recv
    issues = [send(1, 0, data), forward(at, 0, 0b111)]
    trace = check(cfg, issues, wires, rng, at + 15)
    t_d = timing(cfg)["recv", "FORWARD"].t_d
    later = {(link_arrival(cfg, k, wires[k][1], at, t_d=t_d), k) for k in range(3)}
    assert later < set(trace.arrivals)
    assert set(trace.arrivals.values()) == set(data)
    assert not trace.faults


@pytest.mark.parametrize("quad", [0, 1])
def test_recv_that_passes_on_is_a_recv_and_a_forward(quad, rng):
    # link 1 has other flits than link 0, the host others again
    cfg = config(8, (4, 4), (3, 4), (8, 4))
    data = vectors(cfg, rng)
    wires = {0: (0, 4), 1: (1, 7), 2: (2, 1)}
    count = 4 if quad else 1
    at = link_arrival(cfg, 0, 4, 1, vector=3) + rules(cfg).arrival_to_recv
    issues = [send(1, 0, data, quad=1), recv(at, 0, quad=quad, links=0b110, east=4)]
    trace = check(cfg, issues, wires, rng, at + 30)
    assert trace.writes == {(at + timing(cfg)["recv", "RECV"].t_d, 0): (4, None, data[:count])}
    assert {key: vector for key, vector in trace.arrivals.items() if key[1]} == {
        (link_arrival(cfg, k, wires[k][1], at, vector=j, t_d=departure(cfg, "recv")), k): data[j]
        for k in (1, 2) for j in range(count)}
    assert not trace.faults


@pytest.mark.parametrize("op", ["SEND", "FORWARD"])
def test_of_two_drivers_of_a_link_one_may_be_a_recv(op, rng):
    cfg = config(4, (4, 8), (4, 8), (4, 8))
    data = vectors(cfg, rng)
    at = link_arrival(cfg, 0, 1, 1, vector=1) + rules(cfg).arrival_to_recv
    # SENDs go before RECVs, and of receive queues that of link 0 before that of link 1
    other = send(at, 2, data[3:], links=0b100) if op == "SEND" else forward(at, 1, 0b100)
    issues = [send(1, 0, data[:1]), send(2, 0, data[1:2]), send(1, 1, data[2:3]), other,
              recv(at, 0, links=0b110), recv(at + 1, 0)]
    trace = check(cfg, issues, {0: (0, 1), 1: (1, 1)}, rng, at + 9)
    assert trace.faults == {(at, Fault.LINK_BUSY)}
    assert trace.flits[at + 1, 2] == data[3 if op == "SEND" else 0]
    # the one that is refused claims none of its links, and is on the streams all the same
    assert ((at + 1, 1) in trace.flits) == (op == "FORWARD")
    assert [vector for *_, (vector,) in trace.writes.values()] == data[:2]


def test_recv_from_an_empty_fifo_passes_zeros_on(rng):
    cfg = config(4, (2, 4), (2, 4))
    trace = check(cfg, [recv(2, 0, links=0b11, quad=1)], {0: (0, 1), 1: (1, 1)}, rng, 20)
    assert trace.faults == {(2, Fault.FIFO_UNDERFLOW)}
    assert len(trace.arrivals) == 8 and set(trace.arrivals.values()) == {bytes(4)}


def test_forward_from_an_empty_fifo_sends_zeros(rng):
    cfg = config(4, (2, 4), (2, 4))
    trace = check(cfg, [forward(2, 0, 0b11)], {0: (0, 1), 1: (1, 1)}, rng, 10)
    assert trace.faults == {(2, Fault.FIFO_UNDERFLOW)}
    assert set(trace.arrivals.values()) == {bytes(4)}


def test_send_onto_several_links_needs_all_of_them(rng):
    cfg = config(4, (1, 4), (2, 4), (4, 4))
    data = vectors(cfg, rng, 3)
    wires = {k: (k, 1) for k in range(3)}
    for second in (1, 2, 3):        # link 1 is busy for 2 cycles
        issues = [send(1, 1, data[:1]), send(1 + second, 0, data[1:2], links=0b111)]
        trace = check(cfg, issues, wires, rng, 20)
        assert trace.faults == ({(2, Fault.LINK_BUSY)} if second == 1 else set())
        assert len(trace.arrivals) == (1 if second == 1 else 4)


def test_of_two_starts_the_lower_queue_wins_and_sends_go_before_receives(rng):
    cfg = config(4, (4, 8), (4, 8), (4, 8))
    one, two, three = vectors(cfg, rng, 3)
    wires = {k: (k, 1) for k in range(3)}
    ready = [send(0, 0, [three])]
    busy = {(6, Fault.LINK_BUSY)}
    for issues, winner in (
            ([send(6, 0, [one], links=4), send(6, 1, [two], links=4)], one),
            ([send(6, 2, [one], links=4), send(6, 1, [two], links=4)], two),
            ([forward(6, 0, 4), send(6, 2, [one], links=4)], one),
            # what is refused takes no link from the next: only link 2 is claimed here
            ([send(6, 0, [one], links=4), send(6, 1, [two], links=6), forward(6, 0, 2)], one)):
        trace = check(cfg, [*ready, *issues], wires, rng, 15)
        assert trace.faults == busy
        assert trace.flits[7, 2] == winner
    assert trace.flits[7, 1] == three


def test_send_onto_no_link_only_reads(rng):
    cfg = config(4, (2, 4), (2, 4))
    trace = check(cfg, [send(1, 0, vectors(cfg, rng), links=0, source_last=1)], {}, rng, 10)
    assert not trace.flits and not trace.faults
    assert trace.taps == {(1, 0): (0, 0, 1, 1)}


def random_traffic(cfg, rng, cycles):
    """Issues and wires; each link leads to one of its width."""
    ports = [cfg.port(k) for k in range(len(cfg.ports) + 1)]
    count, wires, issues = len(ports), {}, []
    for width in {port.bytes for port in ports}:
        alike = [k for k in range(count) if ports[k].bytes == width]
        for k, target in zip(alike, rng.permutation(alike), strict=True):
            wires[k] = (int(target), int(rng.integers(1, 20)))
    limits = {"source": cfg.streams, "east": cfg.streams, "west": cfg.streams, "links": 1 << count}

    def draw(fields):
        return {name: int(rng.integers(limits.get(name, 2))) for name in fields}

    for cycle in range(cycles - 60):
        # bursts and pauses, so that FIFOs run full and empty
        rate = 0.3 if cycle // 60 % 2 else 0.08
        for k in range(count):
            if rng.random() < rate:
                fields = draw(SEND)
                if rng.random() < 0.8:
                    fields["links"] = 1 << k
                issues.append(send(cycle, k, vectors(cfg, rng), **fields))
            if rng.random() < 0.2:
                fields = draw(RECV)
                if rng.random() < 0.6:
                    fields["links"] = 0
                issues.append(recv(cycle, k, **fields) if rng.random() < 0.7 else
                              forward(cycle, k, int(rng.integers(1 << count))))
    return issues, wires


@pytest.mark.parametrize(("lanes", "ports"), [
    (4, [(2, 4), (2, 4)]), (4, [(1, 8), (3, 4), (7, 16)]), (8, [(3, 4), (8, 4), (3, 8), (8, 8)]),
    (16, [(8, 16), (8, 4), (5, 8)])])
def test_random_traffic(lanes, ports, rng):
    cfg, cycles = config(lanes, *ports), 600
    issues, wires = random_traffic(cfg, rng, cycles)
    trace = check(cfg, issues, wires, rng, cycles)
    # the traffic must have been worth checking
    assert {fault for _, fault in trace.faults} >= {Fault.LINK_BUSY, Fault.FIFO_UNDERFLOW}
    assert len(trace.arrivals) > 50
    assert sum(any(map(any, data)) for *_, data in trace.writes.values()) > 20
    assert sum(len(data) == 4 and any(map(any, data)) for *_, data in trace.writes.values()) > 3


def test_verilog_agrees_from_random_contents(rng, seed, tmp_path):
    cfg, recorders, cycles = config(8, (3, 4), (8, 4), (3, 8)), [], 600

    def record(dut):
        recorders.append(Recorder(dut))
        return recorders[-1]

    issues, wires = random_traffic(cfg, rng, cycles)
    trace = simulate(cfg, issues, wires, rng, cycles, record)
    found = replay(recorders[0], C2c(cfg), "c2c_mixed", tmp_path, seed)
    # one port for all links: a vector counts where its valid bit is set
    arrivals = found["arrivals"]
    size = recorders[0].widths["arrivals"] // 3
    assert {(cycle, k): (value >> k * size + 1 & (1 << size - 1) - 1).to_bytes(8, "little")
            for cycle, value in enumerate(arrivals) for k in range(3)
            if value >> k * size & 1} == trace.arrivals
    assert differing(recorders[0], found | {"arrivals": recorders[0].outputs["arrivals"]}) == []


def test_reset_stops_the_links_and_empties_the_fifos(rng):
    cfg = config(4, (1, 4), (4, 4))
    dut, rst = C2c(cfg), Signal()
    resettable = ResetInserter({"sync": rst})(dut)

    async def bench(ctx):
        ctx.set(dut.rx1.valid, 1)           # a vector for the FIFO
        ctx.set(dut.rx0.valid, 1)           # and a quarter of one
        ctx.set(dut.send0.valid, 1)
        ctx.set(dut.send0.word, (1 << len(dut.send0.word)) - 1)
        await ctx.tick()
        ctx.set(dut.rx1.valid, 0)
        ctx.set(dut.rx0.valid, 0)
        ctx.set(dut.send0.valid, 0)
        assert ctx.get(dut.tx0.valid) and ctx.get(dut.tx1.valid)
        ctx.set(rst, 1)
        await ctx.tick()
        ctx.set(rst, 0)
        assert not ctx.get(dut.tx0.valid) and not ctx.get(dut.tx1.valid)
        ctx.set(dut.recv1.valid, 1)
        await ctx.tick()
        ctx.set(dut.recv1.valid, 0)
        assert ctx.get(dut.faults) == 1 << Fault.FIFO_UNDERFLOW
        for number in range(4):             # a vector begins anew
            ctx.set(dut.rx0.valid, 1)
            assert ctx.get(dut.arrivals[0].valid) == (number == 3)
            await ctx.tick()

    run(resettable, bench)
