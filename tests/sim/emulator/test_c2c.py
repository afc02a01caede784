"""SEND, RECV and FORWARD between tiles, with cycles worked out from docs/architecture.md."""

from dataclasses import replace

import pytest

from hdl.arch.binary import SystemBinary
from hdl.arch.config import Link, PortConfig, SystemConfig
from hdl.arch.errors import Fault
from hdl.arch.presets import NANO
from sim.emulator import Machine
from tests.sim.emulator.support import events, tile_binary

#: Three ports of 8, 3 and 1 bytes a cycle: a vector of 8 lanes takes 1, 3 and 8 cycles.
CFG = replace(NANO, lanes=8, ports=(PortConfig(bytes=8, fifo=4), PortConfig(bytes=3, fifo=4),
                                    PortConfig(bytes=1, fifo=4)), host=PortConfig(bytes=4, fifo=4))
#: Links of the three ports from tile 0 to tile 1, of ports 0 and 1 on to tile 2.
SYSTEM = SystemConfig(tile=CFG, tiles=3, host_latency=3, links=(
    Link(source=0, source_port=0, target=1, target_port=0, latency=5),
    Link(source=0, source_port=1, target=1, target_port=1, latency=2),
    Link(source=0, source_port=2, target=1, target_port=2, latency=1),
    Link(source=1, source_port=0, target=2, target_port=0, latency=7),
    Link(source=1, source_port=1, target=2, target_port=1, latency=1),
))
HOST = 3
WORDS = [bytes(range(8 * i + 1, 8 * i + 9)) for i in range(8)]


def timed(*moments):
    """Lines that issue each (cycle, op, fields)."""
    lines, now = [], 0
    for cycle, op, fields in moments:
        assert cycle >= now
        lines += [("NOP", {"wait": cycle - now - 1})] if cycle > now else []
        lines.append((op, fields))
        now = cycle + 1
    return lines


def reads(*pairs):
    """READs of mem1, two hops west of the links, so that word ``address`` is on E0 in ``cycle``."""
    return timed(*((cycle - 3, "READ", {"address": address, "east_en": 1})
                   for cycle, address in pairs))


def run(*tiles, system=SYSTEM, **options):
    """Run programs by tile; every tile's mem1 holds WORDS."""
    machine = Machine(system)
    machine.load(SystemBinary([tile_binary(CFG, programs, sram={"mem1": {0: b"".join(WORDS)}})
                               for programs in tiles]))
    return machine, machine.start(**options)


def send(cycle, mask, **fields):
    return cycle, "SEND", {"links": mask, "source_last": 1, **fields}


def arrivals(result):
    return events(result.arrivals)


@pytest.mark.parametrize("link, flits, latency", [(0, 1, 5), (1, 3, 2), (2, 8, 1)])
def test_vector_arrives_flits_and_latency_behind_the_send(link, flits, latency):
    machine, result = run(
        {"mem1.read": reads((10, 3)), f"link{link}.send": timed(send(10, 1 << link))},
        # RECV one cycle behind the arrival; on E2 one cycle later; mem2 is one hop east
        {f"link{link}.recv": timed((10 + flits + latency + 1, "RECV", {"east_en": 1, "east": 2})),
         "mem2.write": timed((10 + flits + latency + 3, "WRITE",
                              {"source": 2, "source_last": 1, "address": 9}))})
    assert arrivals(result) == [(10 + flits + latency, 1, link, WORDS[3])]
    assert result.faults == [{}, {}, {}]
    assert machine.sram(1)["mem2"][9].tobytes() == WORDS[3]


def test_recv_in_the_cycle_of_the_arrival_underflows_and_the_vector_stays():
    machine, result = run(
        {"mem1.read": reads((10, 3)), "link0.send": timed(send(10, 1))},
        {"link0.recv": timed((16, "RECV", {"east_en": 1}), (30, "RECV", {"east_en": 1})),
         "mem2.write": timed((18, "WRITE", {"source_last": 1}),
                             (32, "WRITE", {"source_last": 1, "address": 1}))})
    assert arrivals(result) == [(16, 1, 0, WORDS[3])]
    assert result.faults == [{}, {Fault.FIFO_UNDERFLOW: (16, "link0.recv")}, {}]
    assert machine.sram(1)["mem2"][:2].tobytes() == bytes(8) + WORDS[3]


def test_send_may_follow_when_the_link_is_free_and_not_before():
    # 3 cycles for each on link 1
    _, result = run({"mem1.read": reads((10, 0), (13, 1), (15, 2)),
                     "link1.send": timed(send(10, 2), send(13, 2), send(15, 2))}, {})
    assert arrivals(result) == [(15, 1, 1, WORDS[0]), (18, 1, 1, WORDS[1])]
    # the late one is dropped, but has taken its value
    assert result.faults == [{Fault.LINK_BUSY: (15, "link1.send")}, {}, {}]


def test_quad_send_and_recv_move_four_streams_in_order():
    programs = {"mem1.read": reads((10, 0), (12, 1), (14, 2), (16, 3)),
                "link0.send": timed(*(send(10 + 2 * i, 1) for i in range(4)))}
    second = {"link0.recv": timed((30, "RECV", {"quad": 1, "west_en": 1, "west": 6})),
              # W4 .. W7 are at vxm in 32, at mem1 in 33
              "mem1.write": timed((33, "WRITE", {"source": 4, "source_west": 1, "address": 1})),
              "mem0.write": timed((34, "WRITE", {"source": 7, "source_west": 1, "address": 1}))}
    machine, result = run(programs, second)
    assert [row[0] for row in arrivals(result)] == [16, 18, 20, 22]
    assert machine.sram(1)["mem1"][1].tobytes() == WORDS[0]
    assert machine.sram(1)["mem0"][1].tobytes() == WORDS[3]
    assert result.faults[1] == {Fault.STREAM_LOST: (36, "mxm0 W4")}


def test_quad_send_occupies_the_link_four_times():
    # ACC in 20 is on E4 .. E7 at position 0 in 24, at c2c, 5 hops east, in 29
    programs = {"mxm0.act": timed((20, "ACC", {"east_en": 1, "east": 5, "mode": 0})),
                "link1.send": timed(send(29, 2, source=7, quad=1), send(40, 2), send(41, 2)),
                "mem1.read": reads((40, 1), (41, 2))}
    _, result = run(programs, {})
    # 3 cycles each from 29 on, latency 2; busy to 40
    zeros = bytes(8)
    assert arrivals(result) == [(34, 1, 1, zeros), (37, 1, 1, zeros), (40, 1, 1, zeros),
                                (43, 1, 1, zeros)]
    assert result.faults[0] == {Fault.LINK_BUSY: (40, "link1.send")}
    # the fifth came to a FIFO of 4
    assert result.faults[1] == {Fault.FIFO_OVERFLOW: (46, "link1.recv")}


def test_one_send_leaves_on_several_links_each_at_its_own_pace():
    _, result = run({"mem1.read": reads((10, 0), (13, 1)),
                     # link 0 is free in 11, but 1 and 2 are not: 1 is free in 13, 2 in 18
                     "link2.send": timed(send(10, 0b1111)), "link0.send": timed(send(13, 0b0011))},
                    {})
    assert arrivals(result) == [
        (15, 1, 1, WORDS[0]), (16, 1, 0, WORDS[0]), (18, 1, 1, WORDS[1]),
        (19, 1, 0, WORDS[1]), (19, 1, 2, WORDS[0])]
    # the host's link: 2 cycles and a latency of 3
    assert events(result.host) == [(15, 0, HOST, WORDS[0])]
    assert result.faults == [{}, {}, {}]


def test_send_on_several_links_is_dropped_on_all_if_one_is_busy():
    _, result = run({"mem1.read": reads((10, 0), (12, 1), (20, 2)),
                     "link1.send": timed(send(10, 0b010)),
                     "link0.send": timed(send(12, 0b011), send(20, 0b011))}, {})
    assert arrivals(result) == [(15, 1, 1, WORDS[0]), (25, 1, 1, WORDS[2]), (26, 1, 0, WORDS[2])]
    assert result.faults == [{Fault.LINK_BUSY: (12, "link0.send")}, {}, {}]


def test_lower_queue_wins_and_sends_come_before_forwards():
    # tile 1 has a vector in the FIFO of link 0 in 16; its FORWARD, of a queue before link1.send,
    # meets that one's SEND on link 1
    _, result = run({"mem1.read": reads((10, 0)), "link0.send": timed(send(10, 1))},
                    {"link0.recv": timed((20, "FORWARD", {"links": 2})),
                     "mem1.read": reads((20, 5), (30, 6)),
                     "link1.send": timed(send(20, 2)),
                     "host.send": timed(send(30, 1, source_last=0)),
                     "link0.send": timed(send(30, 1))})
    assert arrivals(result) == [(16, 1, 0, WORDS[0]), (24, 2, 1, WORDS[5]), (38, 2, 0, WORDS[6])]
    assert result.faults[1] == {Fault.LINK_BUSY: (20, "link0.recv")}
    # in 30 the host's SEND loses, but that was not the first


def test_forward_cuts_through_to_the_next_tile():
    machine, result = run(
        {"mem1.read": reads((10, 4)), "link0.send": timed(send(10, 1))},
        # arrives in 16; FORWARD in 17 on link 0 (1 cycle, latency 7) and link 1 (3, latency 1)
        {"link0.recv": timed((17, "FORWARD", {"links": 3}))},
        {"link0.recv": timed((26, "RECV", {"east_en": 1})),
         "mem3.write": timed((29, "WRITE", {"source_last": 1}))})
    assert arrivals(result) == [(16, 1, 0, WORDS[4]), (21, 2, 1, WORDS[4]), (25, 2, 0, WORDS[4])]
    assert machine.sram(2)["mem3"][0].tobytes() == WORDS[4]
    assert result.faults == [{}, {}, {}]


def test_recv_that_passes_on_is_on_streams_and_links():
    machine, result = run(
        {"mem1.read": reads((10, 4)), "link0.send": timed(send(10, 1))},
        # arrives in 16; RECV in 17: on W6 in 18 and in mem1, two hops west, in 20; on link 0 (1
        # cycle, latency 7) and link 1 (3, latency 1) as FORWARD
        {"link0.recv": timed((17, "RECV", {"links": 3, "west_en": 1, "west": 6})),
         "mem1.write": timed((20, "WRITE", {"address": 9, "source": 6, "source_west": 1,
                                            "source_last": 1}))},
        {"link0.recv": timed((26, "RECV", {"links": 0, "east_en": 1})),
         "mem3.write": timed((29, "WRITE", {"source_last": 1}))})
    assert arrivals(result) == [(16, 1, 0, WORDS[4]), (21, 2, 1, WORDS[4]), (25, 2, 0, WORDS[4])]
    assert machine.sram(1)["mem1"][9].tobytes() == machine.sram(2)["mem3"][0].tobytes() == WORDS[4]
    assert result.faults == [{}, {}, {}]


def test_recv_that_meets_a_busy_link_is_on_the_streams_only():
    machine, result = run(
        {"mem1.read": reads((10, 4)), "link0.send": timed(send(10, 1))},
        {"link0.recv": timed((17, "RECV", {"links": 3, "west_en": 1, "west": 6})),
         "mem1.read": reads((16, 5)), "link1.send": timed(send(16, 2)),
         "mem1.write": timed((20, "WRITE", {"address": 9, "source": 6, "source_west": 1,
                                            "source_last": 1}))}, {})
    assert arrivals(result) == [(16, 1, 0, WORDS[4]), (20, 2, 1, WORDS[5])]
    assert machine.sram(1)["mem1"][9].tobytes() == WORDS[4]
    assert result.faults == [{}, {Fault.LINK_BUSY: (17, "link0.recv")}, {}]


def test_forward_of_nothing_sends_zeros():
    _, result = run({}, {"link0.recv": timed((17, "FORWARD", {"links": 1}))}, {})
    assert arrivals(result) == [(25, 2, 0, bytes(8))]
    assert result.faults == [{}, {Fault.FIFO_UNDERFLOW: (17, "link0.recv")}, {}]


def test_dropped_forward_has_taken_its_vector():
    _, result = run({"mem1.read": reads((10, 0), (11, 1)),
                     "link0.send": timed(send(10, 1), send(11, 1))},
                    {"link0.recv": timed((20, "FORWARD", {"links": 2}),
                                         (21, "FORWARD", {"links": 2}),
                                         (30, "FORWARD", {"links": 2}))})
    assert arrivals(result)[2:] == [(24, 2, 1, WORDS[0]), (34, 2, 1, bytes(8))]
    assert result.faults[1] == {Fault.LINK_BUSY: (21, "link0.recv"),
                                Fault.FIFO_UNDERFLOW: (30, "link0.recv")}


def test_quad_recv_from_too_few_takes_none():
    host = [(0, cycle, WORDS[cycle // 10]) for cycle in (0, 10, 20)]
    _, result = run({"host.recv": timed((30, "RECV", {"quad": 1}), (31, "RECV", {}),
                                        (32, "RECV", {}), (33, "RECV", {}), (34, "RECV", {}))},
                    host_input=host)
    assert result.faults[0] == {Fault.FIFO_UNDERFLOW: (30, "host.recv")}
    _, result = run({"host.recv": timed((31, "RECV", {}), (32, "RECV", {}), (33, "RECV", {}),
                                        (34, "RECV", {}))}, host_input=host)
    assert result.faults[0] == {Fault.FIFO_UNDERFLOW: (34, "host.recv")}


@pytest.mark.parametrize("taken, lost", [(24, False), (25, True)])
def test_fifo_is_full_by_what_it_held_at_the_start_of_the_cycle(taken, lost):
    """Four vectors are in the FIFO when the fifth arrives in 25; one is taken in 24, or in 25."""
    host = [(0, cycle, WORDS[cycle // 5]) for cycle in (5, 10, 15, 20, 25)]
    _, result = run({"host.recv": timed((taken, "RECV", {}))}, host_input=host)
    assert len(result.arrivals) == (4 if lost else 5)
    assert result.faults[0] == ({Fault.FIFO_OVERFLOW: (25, "host.recv")} if lost else {})


def test_host_vectors_arrive_and_leave():
    # in 7 in the FIFO; FORWARD in 8 back to the host: 2 cycles, latency 3
    _, result = run({"host.recv": timed((8, "FORWARD", {"links": 1 << HOST}))}, {},
                    host_input=[(0, 7, WORDS[2])])
    assert arrivals(result) == [(7, 0, HOST, WORDS[2])]
    assert events(result.host) == [(13, 0, HOST, WORDS[2])]


def test_send_on_a_port_without_link_occupies_it():
    _, result = run({}, {"mem1.read": reads((10, 0), (11, 1)),
                         "link2.send": timed(send(10, 4), send(11, 4))})
    assert len(result.arrivals) == 0
    assert result.faults == [{}, {Fault.LINK_BUSY: (11, "link2.send")}, {}]
