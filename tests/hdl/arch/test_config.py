"""Configurations: checks, presets, topologies, JSON."""

import json
from dataclasses import FrozenInstanceError, replace

import pytest

from hdl.arch.config import (
    AluConfig,
    Link,
    PortConfig,
    SystemConfig,
    TileConfig,
    all_to_all,
    dragonfly,
    pair,
    ring,
    single,
)
from hdl.arch.manifest import system_from_json, system_to_json
from hdl.arch.presets import DEMO, NANO, PRESETS, preset
from hdl.arch.queues import queue_index, queues


@pytest.mark.parametrize("change,message", [
    ({"lanes": 0}, "Lane count must be 4, 8 or a multiple of 16, not 0"),
    ({"lanes": 20}, "Lane count must be 4, 8 or a multiple of 16, not 20"),
    ({"streams": 6}, "Stream count must be a positive multiple of 4, not 6"),
    ({"mem_words": 1}, "SRAM slice must have at least 2 words, not 1"),
    ({"accumulator_bits": 20}, "Accumulator width must be 24 to 48 bits, not 20"),
    ({"icu_words": 4}, "Queue must hold at least 8 words, not 4"),
    ({"loop_levels": 0}, "Loop levels must be 1 to 6, not 0"),
    ({"floorplan": ("mem0", "c2c", "foo")}, "Floorplan slice must be one of .* not 'foo'"),
    ({"floorplan": ("mem1", "c2c")}, "Floorplan must name its mem slices mem0 .* not mem1"),
    ({"floorplan": ("mem0", "mem0", "c2c")}, "Floorplan must name its mem slices mem0, mem1"),
    ({"floorplan": ("mem0", "vxm", "vxm", "c2c")}, "Floorplan must name its vxm slices vxm from"),
    ({"floorplan": ("c2c",)}, "Floorplan must have at least one mem slice"),
    ({"floorplan": ("mem0",)}, "Floorplan must have one c2c slice"),
    ({"ports": (), "sync": True}, "Tile with sync must have at least one link port"),
])
def test_wrong_tiles_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(DEMO, **change)


@pytest.mark.parametrize("make,message", [
    (lambda: AluConfig(features=("div",)), "ALU features must be among add, mul, special"),
    (lambda: AluConfig(depth=1), "ALU depth must be at least 2 cycles, not 1"),
    (lambda: PortConfig(bytes=0), "Link width must be at least 1 byte a cycle, not 0"),
    (lambda: PortConfig(fifo=6), "Link FIFO depth must be a power of two"),
    (lambda: Link(source=0, source_port=0, target=1, target_port=0, latency=0),
     "Link latency must be at least 1 cycle, not 0"),
    (lambda: SystemConfig(tile=DEMO, tiles=0), "Tile count must be at least 1, not 0"),
    (lambda: ring(DEMO, 2), "Ring must have at least 3 tiles, not 2: use pair for 2"),
    (lambda: dragonfly(DEMO, 1, 4), "Dragonfly must have at least 2 groups of at least 1 tile"),
    (lambda: all_to_all(NANO, 4), "Tile has 1 link ports, but a link uses port 1"),
    (lambda: pair(DEMO).restrict(3), "Program can use 1 to 2 tiles of this system, not 3"),
])
def test_wrong_parts_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_links_must_join_different_tiles_ports_of_one_width_and_be_alone_on_them():
    one = Link(source=0, source_port=0, target=1, target_port=0)
    with pytest.raises(ValueError, match="Link must join two of the 2 tiles, not 0 and 0"):
        SystemConfig(tile=DEMO, tiles=2, links=(replace(one, target=0),))
    with pytest.raises(ValueError, match="Two links share one source port"):
        SystemConfig(tile=DEMO, tiles=2, links=(one, replace(one, target_port=1)))
    uneven = replace(DEMO, ports=(PortConfig(bytes=8), PortConfig(bytes=4)))
    with pytest.raises(ValueError, match="ports of 8 and 4 bytes: both ends must be of one width"):
        SystemConfig(tile=uneven, tiles=2, links=(replace(one, target_port=1),))


def test_configurations_are_frozen_and_digests_tell_them_apart():
    with pytest.raises(FrozenInstanceError):
        DEMO.lanes = 4
    assert len({cfg.digest for cfg in PRESETS.values()}) == len(PRESETS)
    assert replace(DEMO).digest == DEMO.digest
    assert replace(DEMO, mem_words=8).digest != DEMO.digest
    assert pair(DEMO, latency=3).digest != pair(DEMO, latency=4).digest


def test_presets_are_found_by_name():
    assert preset("nano") is NANO
    with pytest.raises(ValueError,
                       match="Preset must be one of nano, demo, fpga, full, not 'huge'"):
        preset("huge")


@pytest.mark.parametrize("tiles", [2, 3, 4])
def test_all_to_all_joins_every_two_tiles_once_each_way(tiles):
    links = all_to_all(DEMO, tiles).links
    assert sorted((link.source, link.target) for link in links) == \
        [(i, j) for i in range(tiles) for j in range(tiles) if i != j]


def test_sync_is_named_only_where_it_is():
    # digests from before tiles with it existed: programs and builds of then stay good
    digests = {"nano": "8aaf1638ce6eb67e", "demo": "e1316647ccd629af"}
    assert {name: PRESETS[name].digest for name in digests} == digests
    assert pair(NANO, 3).digest == "c02b2aa78b66e597"
    assert "sync" not in json.loads(system_to_json(pair(DEMO)))["tile"]
    with_sync = replace(DEMO, sync=True)
    assert with_sync.digest != DEMO.digest
    assert pair(with_sync).digest != pair(DEMO).digest


@pytest.mark.parametrize("groups,size", [(2, 1), (2, 2), (3, 2), (4, 2), (4, 4), (9, 3)])
def test_dragonfly_joins_groups_once_each_way_and_members_directly(groups, size):
    ports = size - 1 + -(-(groups - 1) // size)
    tile = replace(DEMO, ports=DEMO.ports[:1] * ports)
    links = dragonfly(tile, groups, size, 3, 7).links
    inside = {(link.source, link.target) for link in links
              if link.source // size == link.target // size}
    between = [(link.source // size, link.target // size) for link in links
               if link.source // size != link.target // size]
    assert inside == {(a, b) for a in range(groups * size) for b in range(groups * size)
                      if a != b and a // size == b // size}
    assert sorted(between) == [(a, b) for a in range(groups) for b in range(groups) if a != b]
    assert len(links) == len(inside) + len(between)
    assert {link.latency == (7 if link.source // size != link.target // size else 3)
            for link in links} == {True}
    # both ways between two groups are one port at each end
    ends = {(link.source, link.source_port): (link.target, link.target_port) for link in links}
    assert all(ends[(link.target, link.target_port)] == (link.source, link.source_port)
               for link in links if link.source // size != link.target // size)


def test_ring_leads_on_by_port_0_and_back_by_port_1():
    links = {(link.source, link.source_port): link.target for link in ring(DEMO, 4).links}
    assert all(links[i, 0] == (i + 1) % 4 and links[i, 1] == (i - 1) % 4 for i in range(4))


def test_restriction_keeps_the_links_inside():
    small = all_to_all(DEMO, 4).restrict(2)
    assert {(link.source, link.target) for link in small.links} == {(0, 1), (1, 0)}
    assert small.outgoing(0, 0).target == 1
    assert small.outgoing(0, 1) is None


def test_hops_follow_the_floorplan():
    assert DEMO.hops("mxm0", "mem3") == DEMO.hops("mem3", "mxm0") == 5
    assert DEMO.floorplan[DEMO.position("vxm")] == "vxm"


def test_queues_are_numbered_once_each():
    for cfg in PRESETS.values():
        names = [queue.name for queue in queues(cfg)]
        assert len(set(names)) == len(names)
        assert [queue_index(cfg)[name] for name in names] == list(range(len(names)))


@pytest.mark.parametrize("system", [single(NANO), pair(DEMO),
                                    all_to_all(DEMO, 4, latency=(1, 5, 9)),
                                    pair(replace(NANO, sync=True))])
def test_json_gives_back_an_equal_system(system):
    assert system_from_json(system_to_json(system)) == system


@pytest.mark.parametrize("damage", [
    lambda v: v.pop("tiles"), lambda v: v["tile"].update(lanes=7),
    lambda v: v["tile"].update(extra=1), lambda v: v.update(links=[3]),
    lambda v: v["tile"].update(alus=5), lambda v: v["tile"].update(lanes="x"),
    lambda v: v.update(tile=None), lambda v: v.update(tiles=1 << 20),
    lambda v: v["tile"].update(mem_words=1 << 40), lambda v: v["tile"].update(accumulators=2.5),
    lambda v: v["tile"].update(lanes=1 << 20), lambda v: v["links"][0].update(source=-1),
    lambda v: v["links"][0].update(latency=True), lambda v: v["tile"].update(sync=1)])
def test_damaged_json_is_refused(damage):
    values = json.loads(system_to_json(pair(DEMO)))
    damage(values)
    with pytest.raises(ValueError):
        system_from_json(json.dumps(values))


def test_tile_with_other_numbers_is_a_tile():
    assert TileConfig(lanes=320, streams=32).lanes == 320
