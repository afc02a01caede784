"""The tree of the reduction: its order and its delay, for any number of values."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.arch.ops import ReduceOp
from hdl.vxm.reduce import levels, reduce_controls, reduce_tree
from tests.support.exact import CORNERS
from tests.support.pysim import run


class Tree(wiring.Component):
    """A tree over ``count`` values, told its opcodes as the unit does."""

    def __init__(self, count, depth):
        self._count = count
        self._depth = depth
        super().__init__({"op": In(5), "values": In(32 * count), "r": Out(32)})

    def elaborate(self, platform):
        m = Module()
        controls = reduce_controls(m, self.op, levels(self._count), self._depth)
        values = [self.values.word_select(i, 32) for i in range(self._count)]
        m.d.comb += self.r.eq(reduce_tree(m, platform, values, controls, self._depth))
        return m


def reductions(count, depth, rows, ops):
    """Results of ``rows`` fed one a cycle, taken ``levels * depth`` cycles behind each."""
    dut, found, delay = Tree(count, depth), [], levels(count) * depth

    async def bench(ctx):
        found.clear()
        for cycle in range(len(rows) + delay):
            row, op = rows[cycle % len(rows)], ops[cycle % len(rows)]
            ctx.set(dut.op, op.value)
            ctx.set(dut.values, int.from_bytes(row.astype("<u4").tobytes(), "little"))
            if cycle >= delay:
                found.append(ctx.get(dut.r))
            await ctx.tick()

    run(dut, bench)
    return np.array(found, np.uint32)


def pairwise_sum(values):
    """float32 sum of neighbours, then of their sums: NumPy rounds every addition to float32."""
    while values.shape[1] > 1:
        if values.shape[1] % 2:
            values = np.concatenate([values[:, :-1:2] + values[:, 1::2], values[:, -1:]], axis=1)
        else:
            values = values[:, ::2] + values[:, 1::2]
    return values[:, 0]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 8, 16])
def test_sum_is_a_tree_of_neighbours(count, rng):
    rows = (rng.standard_normal((24, count)) * 2.0 ** rng.integers(-12, 13, (24, count)))
    rows = rows.astype(np.float32)
    found = reductions(count, 3, rows.view(np.uint32), [ReduceOp.SUM] * len(rows))
    expected = pairwise_sum(rows)
    np.testing.assert_array_equal(found.view(np.float32), expected)
    # the order matters for these rows: one after another gives something else
    if count > 3:
        one_by_one = np.add.accumulate(rows, axis=1)[:, -1]
        assert (one_by_one != expected).any()


@pytest.mark.parametrize("depth", [1, 2, 6, 7])
def test_opcodes_follow_each_other_without_a_gap(depth, rng):
    count = 5
    rows = rng.standard_normal((30, count)).astype(np.float32)
    ops = [ReduceOp(int(op)) for op in rng.integers(ReduceOp.SUM.value, ReduceOp.MIN.value + 1, 30)]
    found = reductions(count, depth, rows.view(np.uint32), ops)
    expected = [{ReduceOp.SUM: pairwise_sum(row[None])[0], ReduceOp.MAX: row.max(),
                 ReduceOp.MIN: row.min()}[op] for row, op in zip(rows, ops, strict=True)]
    np.testing.assert_array_equal(found.view(np.float32), np.array(expected, np.float32))


@pytest.mark.parametrize("op", [ReduceOp.MAX, ReduceOp.MIN])
def test_largest_and_smallest_order_zeros_and_pass_on_nan(op, rng):
    zero, minus = 0x00000000, 0x80000000
    largest = op == ReduceOp.MAX
    rows = np.array([[minus, zero, minus, minus], [zero, minus, zero, zero],
                     [minus] * 4, [0x3F800000, 0x7F800001, zero, zero],
                     [0xFF800000, 0x7F800000, 0x00000001, minus]], np.uint32)
    found = reductions(4, 1, rows, [op] * len(rows)).tolist()
    assert found == [zero if largest else minus, zero if largest else minus, minus, 0x7FC00000,
                     0x7F800000 if largest else 0xFF800000]
    finite = [pattern for pattern in CORNERS if pattern & 0x7FFFFFFF <= 0x7F800000]
    rows = rng.choice(np.array(finite, np.uint32), (40, 8))
    found = reductions(8, 1, rows, [op] * len(rows)).view(np.float32)
    np.testing.assert_array_equal(found, (np.max if largest else np.min)(rows.view(np.float32), 1))
