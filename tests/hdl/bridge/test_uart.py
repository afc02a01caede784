# amaranth: UnusedElaboratable=no
"""The serial line: every byte through, at rates that differ, and what is no byte."""

import pytest
from amaranth import Module

from hdl.bridge.uart import UartReceiver, UartTransmitter
from tests.support.pysim import run


class Receiver:
    """A `UartReceiver` whose line is driven with exact times, and what came of it."""

    def __init__(self, divisor):
        self.dut = UartReceiver(divisor)
        self.found = []

    async def watch(self, ctx):
        dut = self.dut
        async for _, _, valid, data in ctx.tick().sample(dut.valid, dut.data):
            if valid:
                self.found.append(data)

    async def levels(self, ctx, levels):
        """Drive (level, cycles) one behind the other."""
        for level, cycles in levels:
            ctx.set(self.dut.line, level)
            await ctx.tick().repeat(cycles)

    def run(self, levels):
        async def bench(ctx):
            await self.levels(ctx, [*levels, (1, 20 * 12)])

        run(self.dut, bench, background=[self.watch])
        return self.found


def bits_of(byte):
    return [0, *(byte >> i & 1 for i in range(8)), 1]


def stretched(values, divisor, rate):
    """Levels of bytes that follow each other without a pause; a bit takes ``divisor * rate``
    cycles, rounded to edges of the clock."""
    edges = [round(divisor * rate * i) for i in range(10 * len(values) + 1)]
    bits = [bit for byte in values for bit in bits_of(byte)]
    return [(bit, end - start) for bit, start, end in zip(bits, edges, edges[1:], strict=False)]


@pytest.mark.parametrize("divisor", [4, 5, 16])
def test_every_byte_goes_through_back_to_back(divisor):
    values = [*range(256)]
    m = Module()
    m.submodules.sender = sender = UartTransmitter(divisor)
    receiver = Receiver(divisor)
    m.submodules.receiver = receiver.dut
    m.d.comb += receiver.dut.line.eq(sender.line)

    async def bench(ctx):
        await ctx.tick().repeat(3)
        ctx.set(sender.bytes.valid, 1)
        for value in values:
            ctx.set(sender.bytes.payload, value)
            await ctx.tick().until(sender.bytes.ready)
        ctx.set(sender.bytes.valid, 0)
        await ctx.tick().repeat(12 * divisor)

    run(m, bench, background=[receiver.watch])
    assert receiver.found == values


@pytest.mark.parametrize("rate", [0.96, 1.0, 1.04])
def test_a_sender_may_be_faster_or_slower(rng, rate):
    values = rng.integers(0, 256, 60).tolist()
    assert Receiver(16).run([(1, 40), *stretched(values, 16, rate)]) == values


def test_a_rate_far_off_does_not_look_right(rng):
    values = rng.integers(0, 256, 30).tolist()
    assert Receiver(16).run([(1, 40), *stretched(values, 16, 1.6)]) != values


def test_a_glitch_is_no_start_bit():
    assert Receiver(16).run([(1, 40), (0, 5), (1, 100), *stretched([0x5A], 16, 1)]) == [0x5A]


def test_a_byte_without_a_stop_bit_is_dropped_and_the_next_is_read():
    broken = [(0, 16 * 9), (0, 16 * 3), (1, 30)]
    assert Receiver(16).run([(1, 40), *broken, *stretched([0xC3], 16, 1)]) == [0xC3]


@pytest.mark.parametrize("cls", [UartReceiver, UartTransmitter])
@pytest.mark.parametrize("divisor", [3, 0, -4, 4.0, "16"])
def test_divisor_is_checked(cls, divisor):
    with pytest.raises(ValueError, match="Divisor must be a whole number of at least 4 cycles"):
        cls(divisor)
