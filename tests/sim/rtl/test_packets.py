"""A program behind the conventional network, on RTL: an exchange between all tiles of a ring.

In every step each tile announces a message to each other tile, sends it, waits in a SYNC for those
of all others, and stores what they brought.
"""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import PortConfig, all_to_all
from hdl.arch.encoding import encode
from hdl.arch.packets import NetworkFault, around
from hdl.arch.presets import NANO
from hdl.arch.queues import queue_index, queues
from hdl.arch.timing import SYNC_TO_ISSUE
from sim.rtl.build import build_rtl
from sim.rtl.run import run_rtl

TILES, LINKS = 4, 3
TILE = replace(NANO, sync=True, ports=(PortConfig(bytes=2, fifo=4),) * LINKS)
SYSTEM = all_to_all(TILE, TILES)
NETWORK = around(SYSTEM, latency=3, depth=12, outbox=16)
ALL = (1 << LINKS) - 1
VECTORS, FLITS = 2, 2       # of a message, of a vector
STEPS, STORE = 3, 20        # STORE: first word of what is received
#: Cycle of a step in which every queue has its SYNC, and the cycles from its release to the next
#: step.
PARK, REST = 12, 20
#: Table: steps read the next words, and write to the next ones.
TABLE = [(0, 0, 0), (0, 3, VECTORS), (0, 3, VECTORS * LINKS)]
#: By queue, what it issues in a step: (cycle, opcode, fields) before the SYNC, and behind it with
#: the cycle counted from the release.
READ = {"east_en": 1, "east": 5, "address_terms": (1,)}
BEFORE = {
    "mem0.read": [(0, "READ", READ), (FLITS, "READ", {**READ, "address": 1})],
    "link0.send": [(2, "POST", {"links": ALL, "vectors": VECTORS}),
                   # written in 1 at mem0 (2), at c2c (5) in 4
                   (4, "SEND", {"links": ALL, "source": 5, "source_last": 1}),
                   (4 + FLITS, "SEND", {"links": ALL, "source": 5, "source_last": 1})],
    **{name: [] for name in ("link0.recv", "link1.recv", "link2.recv", "mem1.write")}}
BEHIND = {
    "mem0.read": [], "link0.send": [],
    **{f"link{k}.recv": [(1 + 2 * k + v, "RECV", {"west_en": 1, "west": 2})
                         for v in range(VECTORS)] for k in range(LINKS)},
    # written a cycle behind the RECV at c2c (5), at mem1 (3) two later
    "mem1.write": [(4 + i, "WRITE", {"source": 2, "source_west": 1, "source_last": 1,
                                     "address": STORE + i, "address_terms": (2,)})
                   for i in range(LINKS * VECTORS)]}


def queue_words(kind, before, behind):
    """Words of a queue: a LOOP over the steps with a SYNC in each."""
    lines = [(-1, "LOOP", {"count": 0}), *before, (PARK, "SYNC", {"links": ALL}),
             *((PARK + at, op, fields) for at, op, fields in behind)]
    words = []
    for (at, op, fields), (then, *_) in zip(lines, [*lines[1:], (PARK + REST,)], strict=True):
        ends = {"ends": 1} if then == PARK + REST else {}
        if op != "LOOP" or then == 0:
            words.append(encode(TILE, kind, op, wait=then - at - 1, **fields, **ends))
        else:       # what idles before the first word does so in every step
            words += [encode(TILE, kind, op, **fields), encode(TILE, kind, "NOP", wait=then - 1)]
    return [*words, encode(TILE, kind, "HALT")]


def program():
    kinds = {queue.name: queue.kind for queue in queues(TILE)}
    words = {name: queue_words(kinds[name], BEFORE[name], BEHIND[name]) for name in BEFORE}
    return SystemBinary([TileBinary(words=words,
                                    tables={"mem0.read": TABLE, "mem1.write": TABLE},
                                    sram={"mem0": {0: contents(tile).tobytes()}})
                         for tile in range(TILES)], steps=STEPS)


def contents(tile):
    """What a tile sends: words of mem0."""
    return np.random.default_rng(tile).integers(0, 256, (STEPS * VECTORS, TILE.lanes), np.uint8)


@pytest.fixture(scope="module")
def model():
    return build_rtl(SYSTEM, packets=NETWORK)


def planned(tile, starts):
    """(queue, cycle) of every issue, from the cycle in which each step of a tile starts and that in
    which its SYNC is released."""
    found = []
    for start, release in starts:
        for name, number in queue_index(TILE).items():
            found += [(number, start + at) for at, _, _ in BEFORE.get(name, ())]
            found += [(number, release + at) for at, _, _ in BEHIND.get(name, ())]
    return sorted(found)


@pytest.mark.parametrize(("chunk", "depth", "handshake", "arbiter"), [
    (2, 12, 1, 0), (2, 10, 0, 3), (1, 6, 1, 200), (1, 12, 0, 1)])
def test_exchange_gives_the_right_words_and_issues_as_planned_behind_each_release(
        model, tmp_path, seed, chunk, depth, handshake, arbiter):
    knobs = NETWORK.knobs(chunk=chunk, depth=depth, handshake=handshake, arbiter=arbiter)
    latencies = [3 + link % 4 for link in range(len(NETWORK.links))]
    result = run_rtl(model, SYSTEM, program(), run_dir=tmp_path / "run", seed=seed, network=NETWORK,
                     knobs=knobs, latencies=latencies, runs=[(0, STEPS), (0, STEPS)], limit=5000)
    assert len(result.runs) == 2 and not result.network_faults()
    first_recv = queue_index(TILE)["link0.recv"]
    for observed in result.runs:
        assert not any(observed.faults) and not observed.running
        for tile in range(TILES):
            issues = observed.events.issues[observed.events.issues["tile"] == tile]
            recvs = sorted(issues["cycle"][issues["unit"] == first_recv])
            releases = [cycle - 1 for cycle in recvs[::VECTORS]]
            starts = [1, *(release + REST for release in releases[:-1])]
            assert sorted(zip(issues["unit"].tolist(), issues["cycle"].tolist(), strict=True)) == \
                planned(tile, list(zip(starts, releases, strict=True)))
            arrivals = observed.events.arrivals[observed.events.arrivals["tile"] == tile]
            for step, (start, release) in enumerate(zip(starts, releases, strict=True)):
                assert release == max(start + PARK + SYNC_TO_ISSUE - 1,
                                      *notified(arrivals, step, chunk))
            for link in range(LINKS):
                sent = contents((tile - link - 1) % TILES)
                for step in range(STEPS):
                    at = STORE + (step * LINKS + link) * VECTORS
                    np.testing.assert_array_equal(
                        observed.sram[tile][1, at:at + VECTORS],
                        sent[step * VECTORS:(step + 1) * VECTORS])


def notified(arrivals, step, chunk):
    """Cycle by link in which the message of a step allows the release: its last vector is there,
    or was announced by the header of its packet too late for that."""
    last = VECTORS * (step + 1) - 1
    flits = FLITS * min(chunk, VECTORS)
    return [max(int(arrival), int(arrival) - flits + 1 + 3)
            for arrival in (sorted(arrivals["cycle"][arrivals["unit"] == link])[last]
                            for link in range(LINKS))]


def test_what_the_network_cannot_take_is_a_fault(model, tmp_path, seed):
    binary = program()
    for tile in binary.tiles:
        tile.words["link1.send"] = [
            *[encode(TILE, "send", "POST", links=2, vectors=1)] * 20,
            encode(TILE, "send", "POST", links=4, vectors=5), encode(TILE, "send", "HALT")]
    result = run_rtl(model, SYSTEM, binary, run_dir=tmp_path / "run", seed=seed, network=NETWORK,
                     knobs=NETWORK.knobs(chunk=1), limit=300, read_sram=False)
    assert {(tile, fault) for _, tile, fault in result.network_faults()} >= \
        {(tile, fault) for tile in range(TILES) for fault in (NetworkFault.POSTS,
                                                              NetworkFault.LENGTH)}


def test_what_does_not_fit_the_network_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="Network and its knobs must be given together"):
        run_rtl(model, SYSTEM, program(), run_dir=tmp_path, network=NETWORK)
    with pytest.raises(ValueError, match="given for the 8 physical links, not for 12"):
        run_rtl(model, SYSTEM, program(), run_dir=tmp_path, network=NETWORK,
                knobs=NETWORK.knobs(chunk=1), latencies=[3] * 12)
    with pytest.raises(ValueError, match="Network must be one of the system that is built"):
        build_rtl(all_to_all(TILE, 3), packets=NETWORK)
