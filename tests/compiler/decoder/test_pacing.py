"""Jobs are taken in the order in which they become ready, those of earlier stages first."""

from dataclasses import replace

import pytest

from compiler.decoder.pacing import MIX, PROJECT, ROWS, Job, Pace, in_order
from hdl.arch.config import single
from hdl.arch.presets import DEMO
from hdl.arch.timing import adder_stages


def _job(stage, cycles, after=(), tile=0):
    return Job(tile, stage, cycles, None, list(after))


def test_a_chain_leaves_room_for_others_while_it_waits():
    first, second = _job(PROJECT, 10), _job(PROJECT, 10)
    mixed = _job(MIX, 5, [(first, 12)])
    row = _job(ROWS, 8, [(mixed, 20)])
    filler = _job(ROWS, 30)
    # 0 first, 10 second, 20 filler (nothing else is ready), 50 mixed (22), 75 row
    assert in_order([row, filler, mixed, first, second]) == [first, second, filler, mixed, row]


def test_of_ready_jobs_the_earlier_stage_goes_first():
    first = _job(PROJECT, 10)
    mixed, row = _job(MIX, 5, [(first, 3)]), _job(ROWS, 5, [(first, 3)])
    assert in_order([row, mixed, first]) == [first, mixed, row]


def test_other_tiles_are_waited_for():
    here, there = _job(PROJECT, 10), _job(PROJECT, 40, tile=1)
    row = _job(ROWS, 5, [(there, 7)])
    late = _job(ROWS, 5, [(here, 30)])
    assert in_order([row, late, there, here]) == [there, here, late, row]


def test_jobs_in_a_circle_are_refused():
    first = _job(PROJECT, 1)
    second = _job(PROJECT, 1, [(first, 1)])
    first.after.append((second, 1))
    with pytest.raises(ValueError, match="2 jobs wait for each other"):
        in_order([first, second])


def test_estimates_follow_the_configuration():
    pace = Pace(single(DEMO), 1)
    assert pace.chain(3, 1) - pace.chain(2, 0) == 6 + 4 * DEMO.reduce_depth
    products = 3 + adder_stages(16) + 4
    assert pace.chain(0) == products + 2 + 2 * max(DEMO.hops(mxm, "vxm")
                                                   for mxm in DEMO.slices("mxm"))
    assert Pace(single(DEMO), 2).chain(3, 1) == 2 * pace.chain(3, 1)
    one = replace(DEMO, floorplan=DEMO.floorplan[:-1])
    assert (pace.job(0, ROWS, 3, None).cycles, Pace(single(one), 1).job(0, ROWS, 3, None).cycles) \
        == (6, 12)
