"""SYNC: queues with their barrier, against a model that moves what an interpreter gives."""

from dataclasses import replace
from typing import NamedTuple

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl.arch.config import PortConfig
from hdl.arch.encoding import encode
from hdl.arch.presets import NANO
from hdl.arch.timing import ICU_LEAD, NOTIFY_TO_ISSUE, SYNC_TO_ISSUE
from hdl.barrier import Barrier
from hdl.icu import Icu
from tests.hdl.icu_model import interpret, random_program
from tests.support.pysim import run

CFG = replace(NANO, icu_words=64, sync=True, ports=(PortConfig(fifo=4),) * 2)
KINDS = ("mem_read", "mem_write", "mxm_act", "send", "alu")
#: Cycles from `go` to the first issue: fetch, then the lead.
GO_TO_ISSUE = 1 + ICU_LEAD


class Queues(wiring.Component):
    """One queue of each of `KINDS` at one barrier."""

    def __init__(self):
        self.icus = [Icu(CFG, kind) for kind in KINDS]
        self.barrier = Barrier(CFG, len(KINDS))
        super().__init__({"go": In(1), "notify": In(len(CFG.ports))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.barrier = self.barrier
        m.d.comb += self.barrier.notify.eq(self.notify)
        for number, icu in enumerate(self.icus):
            m.submodules[f"icu_{number}"] = icu
            wiring.connect(m, icu.barrier, getattr(self.barrier, f"queue{number}"))
            m.d.comb += [icu.go.eq(self.go), icu.steps.eq(1)]
        return m


class Seen(NamedTuple):
    """(cycle, word) of every issue, by queue; number of faults, by queue."""
    issues: list
    faults: list


def execute(programs, notified, limit, starts=1):
    """Run the words of each queue; ``notified`` are (cycle, link), cycles counted as issues are.

    A run that does not end has issues up to ``limit``.
    """
    queues, found = Queues(), []

    async def bench(ctx):
        for icu, words in zip(queues.icus, programs, strict=True):
            ctx.set(icu.load.word_en, 1)
            for address, word in enumerate(words):
                ctx.set(icu.load.address, address)
                ctx.set(icu.load.data, word)
                await ctx.tick()
            ctx.set(icu.load.word_en, 0)
        for _ in range(starts):
            issues, faults = [[] for _ in KINDS], [0] * len(KINDS)
            for cycle in range(-GO_TO_ISSUE, limit):
                ctx.set(queues.go, cycle == -GO_TO_ISSUE)
                ctx.set(queues.notify, sum(1 << link for at, link in notified if at == cycle))
                for number, icu in enumerate(queues.icus):
                    faults[number] += ctx.get(icu.fault)
                    if ctx.get(icu.issue.valid):
                        issues[number].append((cycle, ctx.get(icu.issue.word)))
                await ctx.tick()
            found.append(Seen(issues, faults))

    run(queues, bench)
    return found


def expected(programs, notified):
    """(cycle, word) of every issue, by queue, and the cycle in which each SYNC is taken."""
    queues = [interpret(CFG, kind, words) for kind, words in zip(KINDS, programs, strict=True)]
    assert not any(queue.fault for queue in queues)
    messages = [sorted(at for at, to in notified if to == link) for link in range(len(CFG.ports))]
    shifts, taken = [[0] for _ in queues], []
    for number, (_, links) in enumerate(queues[0].syncs):
        parked = [queue.syncs[number][0] + shift[-1]
                  for queue, shift in zip(queues, shifts, strict=True)]
        due = [max(parked) + SYNC_TO_ISSUE - 1]
        due += [messages[link].pop(0) + NOTIFY_TO_ISSUE - 1
                for link in range(len(CFG.ports)) if links >> link & 1]
        taken.append(max(due))
        for queue, shift in zip(queues, shifts, strict=True):
            shift.append(max(due) - queue.syncs[number][0])
    issues = [[(issue.cycle + shift[sum(at < issue.cycle for at, _ in queue.syncs)], issue.word)
               for issue in queue.issues] for queue, shift in zip(queues, shifts, strict=True)]
    return issues, taken


def words(kind, *lines):
    return [encode(CFG, kind, op, **fields) for op, fields in lines]


UNIT = {"mem_read": "READ", "mem_write": "WRITE", "mxm_act": "ABC", "send": "SEND", "alu": "ADD"}
HALT = ("HALT", {})


def everywhere(lines):
    """The same words in every queue, with `UNIT` in place of the opcode ``unit``."""
    return [words(kind, *((UNIT[kind] if op == "unit" else op, fields) for op, fields in lines))
            for kind in KINDS]


def test_all_queues_go_on_in_one_cycle_behind_the_last():
    programs = [words(kind, ("NOP", {"wait": late}), ("SYNC", {"wait": number}),
                      (UNIT[kind], {}), HALT)
                for number, (kind, late) in enumerate(zip(KINDS, (3, 9, 0, 5, 1), strict=True))]
    [seen] = execute(programs, [], 40)
    # the last parks in 10
    assert [[cycle for cycle, _ in issues] for issues in seen.issues] == \
        [[10 + SYNC_TO_ISSUE + wait] for wait in range(len(KINDS))]
    assert seen.faults == [0] * len(KINDS)


@pytest.mark.parametrize(("at", "first"), [
    (-2, 1 + SYNC_TO_ISSUE), (0, 0 + NOTIFY_TO_ISSUE), (1, 1 + NOTIFY_TO_ISSUE),
    (20, 20 + NOTIFY_TO_ISSUE)])
def test_notification_before_and_behind_the_parking(at, first):
    programs = everywhere([("NOP", {}), ("SYNC", {"links": 2}), ("unit", {}), HALT])
    [seen] = execute(programs, [(at, 1), (3, 0)], 40)
    assert [[cycle for cycle, _ in issues] for issues in seen.issues] == [[first]] * len(KINDS)


def test_without_its_message_nothing_goes_on():
    programs = everywhere([("SYNC", {"links": 3}), ("unit", {}), HALT])
    [seen] = execute(programs, [(5, 0), (9, 0), (12, 0)], 200)
    assert not any(seen.issues)


def test_two_syncs_back_to_back_take_a_message_each():
    programs = everywhere([("SYNC", {"links": 1}), ("SYNC", {"links": 1}), ("unit", {}), HALT])
    [seen] = execute(programs, [(-3, 0), (-2, 0)], 40)
    assert [issues[0][0] for issues in seen.issues] == [2 * SYNC_TO_ISSUE] * len(KINDS)
    [seen] = execute(programs, [(-3, 0)], 200)
    assert not any(seen.issues)


def test_halted_queues_hold_up_nobody():
    programs = everywhere([("SYNC", {}), ("unit", {}), HALT])
    programs[1] = words(KINDS[1], HALT)
    programs[3] = words(KINDS[3], ("NOP", {"wait": 9}), HALT)
    [seen] = execute(programs, [], 60)
    # the HALT in 10 stops its queue behind it
    assert [[cycle for cycle, _ in issues] for issues in seen.issues] == \
        [[11 + SYNC_TO_ISSUE], [], [11 + SYNC_TO_ISSUE], [], [11 + SYNC_TO_ISSUE]]


def test_unequal_masks_are_a_fault_and_the_union_counts():
    programs = everywhere([("SYNC", {"links": 3}), ("unit", {}), HALT])
    programs[2] = words(KINDS[2], ("SYNC", {"links": 2}), (UNIT[KINDS[2]], {}), HALT)
    [seen] = execute(programs, [(4, 1), (8, 0)], 60)
    assert [issues[0][0] for issues in seen.issues] == [8 + NOTIFY_TO_ISSUE] * len(KINDS)
    assert seen.faults == [0, 0, 1, 0, 0]


def random_queue(rng, kind, masks):
    """A program with SYNCs of ``masks``; the second and the third are two iterations of a LOOP."""
    def some():
        return random_program(rng, CFG, kind, length=2)[:-1]

    def sync(mask, **fields):
        return encode(CFG, kind, "SYNC", links=mask, wait=int(rng.choice([0, 0, 1, 4])), **fields)

    found = [*some(), sync(masks[0]), *some(), encode(CFG, kind, "LOOP", count=2)]
    # what the loop holds besides: a unit word, so that no random LOOP is too deep in it
    found += [encode(CFG, kind, UNIT[kind]), sync(masks[1], ends=1), sync(masks[3]), *some()]
    return [*found, encode(CFG, kind, "HALT")]


def test_random_programs_wait_as_the_model_says(rng):
    for _ in range(25):
        masks = [int(mask) for mask in rng.integers(0, 4, 4)]
        masks[2] = masks[1]
        while True:
            programs = [random_queue(rng, kind, masks) for kind in KINDS]
            if max(map(len, programs)) <= CFG.icu_words:
                break
        notified = {(int(rng.integers(-3, 150)), link) for link in (0, 1)
                    for mask in masks if mask >> link & 1}
        for link in (0, 1):     # as many messages as SYNCs ask for, no two in one cycle
            needed = sum(mask >> link & 1 for mask in masks)
            while sum(to == link for _, to in notified) < needed:
                notified.add((int(rng.integers(-3, 150)), link))
        issues, taken = expected(programs, notified)
        last = max([taken[-1], *(cycle for queue in issues for cycle, _ in queue)])
        if last > 2500:
            continue
        first, again = execute(programs, notified, max(last, 160) + 30, starts=2)
        assert first.issues == issues
        assert again == first
        assert first.faults == [0] * len(KINDS)
