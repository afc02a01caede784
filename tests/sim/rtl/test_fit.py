"""Programs of parts of a machine."""

from dataclasses import replace

import pytest

from hdl.arch.binary import BinaryError
from hdl.arch.config import Link, SystemConfig, all_to_all, pair, ring, single
from hdl.arch.presets import DEMO, NANO
from sim.rtl.fit import link_latencies

MACHINE = all_to_all(DEMO, 4, latency=(7, 8, 9))


def test_whole_machine_has_its_own_latencies():
    assert link_latencies(MACHINE, MACHINE) == [7, 8, 9] * 4


@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_part_of_a_machine_changes_its_own_links_only(tiles):
    part = MACHINE.restrict(tiles)
    assert len(part.links) == tiles * (tiles - 1)
    assert link_latencies(MACHINE, part) == [7, 8, 9] * 4
    given = list(range(20, 20 + len(part.links)))
    found = link_latencies(MACHINE, part, given)
    for link, latency in zip(MACHINE.links, found, strict=True):
        inside = max(link.source, link.target) < tiles
        assert latency == (given[part.links.index(link)] if inside else link.latency)


def test_latencies_of_the_program_win():
    assert link_latencies(pair(NANO, latency=5), pair(NANO, latency=30)) == [30, 30]


@pytest.mark.parametrize(("machine", "system", "message"), [
    (single(NANO), pair(NANO), "needs 2 tiles, the machine has 1"),
    (pair(NANO), single(DEMO), "was made for tiles of configuration [0-9a-f]{16}, the machine has"),
    (pair(DEMO), single(replace(DEMO, mem_words=32)), "was made for tiles of configuration"),
    (single(NANO), replace(single(NANO), host_latency=3), "a host link of 3 cycles"),
    (ring(DEMO, 4), SystemConfig(tile=DEMO, tiles=4, links=(
        Link(source=0, source_port=2, target=2, target_port=1),)),
     "needs a link from port 2 of tile 0 to port 1 of tile 2, which the machine lacks"),
])
def test_what_a_machine_lacks_is_named(machine, system, message):
    with pytest.raises(BinaryError, match=message):
        link_latencies(machine, system)


def test_other_number_of_latencies_is_a_fault_of_the_caller():
    with pytest.raises(ValueError):
        link_latencies(MACHINE, MACHINE, [1, 2, 3])
