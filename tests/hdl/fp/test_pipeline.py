# amaranth: UnusedElaboratable=no
import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hdl.fp.pipeline import Pipeline, add_carry, leading_zeros, shift_left, shift_right


class Helpers(wiring.Component):
    """The combinational helpers side by side."""

    def __init__(self, bits, amount_bits):
        super().__init__({
            "value": In(bits), "amount": In(amount_bits), "other": In(bits), "carry": In(1),
            "left": Out(bits), "right": Out(bits), "lost": Out(1), "zeros": Out(8),
            "total": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        right, lost = shift_right(m, "right_shifted", self.value, self.amount)
        m.d.comb += [
            self.left.eq(shift_left(m, "left_shifted", self.value, self.amount)),
            self.right.eq(right),
            self.lost.eq(lost),
            self.zeros.eq(leading_zeros(m, "zeros_counted", self.value)),
            self.total.eq(add_carry(self.value, self.other, self.carry)),
        ]
        return m


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 8, 24, 33, 40, 63, 64, 65, 127])
def test_shifts_count_and_addition_at_any_width(bits, rng):
    amount_bits = 7
    dut = Helpers(bits, amount_bits)

    async def bench(ctx):
        for _ in range(100):
            value = int.from_bytes(rng.bytes(16), "little") >> 128 - bits
            value >>= int(rng.integers(bits))
            other = int.from_bytes(rng.bytes(16), "little") >> 128 - bits
            amount = int(rng.integers(1 << amount_bits))
            carry = int(rng.integers(2))
            ctx.set(dut.value, value)
            ctx.set(dut.amount, amount)
            ctx.set(dut.other, other)
            ctx.set(dut.carry, carry)
            mask = (1 << bits) - 1
            assert ctx.get(dut.left) == value << amount & mask
            assert ctx.get(dut.right) == value >> amount
            assert ctx.get(dut.lost) == (value & (1 << amount) - 1 != 0)
            assert ctx.get(dut.total) == (value + other + carry) & mask
            if value:
                assert ctx.get(dut.zeros) == bits - value.bit_length()

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("stages", [1, 2, 5, 6])
@pytest.mark.parametrize("depth", range(1, 10))
def test_as_many_registers_as_the_depth(stages, depth):
    m = Module()
    pipe = Pipeline(m, stages=stages, depth=depth)
    registers = [pipe.domain(stage) for stage in range(1, stages + 1)].count("sync")
    assert registers == min(stages, depth)
    assert pipe.domain(stages) == "sync"


def test_registers_have_the_number_of_their_step():
    m = Module()
    pipe = Pipeline(m, stages=2, depth=2)
    assert pipe.reg(1, "sum", Signal(3)).name == "sum_s1"
    assert [held.name for held in pipe.carry(2, a=Signal(), b=Signal())] == ["a_s2", "b_s2"]
