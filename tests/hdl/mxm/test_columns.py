# amaranth: UnusedElaboratable=no
"""Read-out of a superlane from accumulators put into its file."""

import numpy as np
import pytest

from hdl.arch.timing import ACC_STAGES, adder_stages
from hdl.mxm.columns import MxmColumns
from tests.support.pysim import run

F32, RAW_HIGH, RAW_LOW, UNUSED = range(4)


def read_out(bits, values, mode):
    """32-bit patterns of ``values`` (any number), read back to back in ``mode``."""
    columns = 4
    values = [*values, *[0] * (-len(values) % columns)]
    entries = len(values) // columns
    dut = MxmColumns(rows=4, columns=columns, accumulators=entries, accumulator_bits=bits)
    found = []

    async def bench(ctx):
        found.clear()
        for entry in range(entries):
            word = 0
            for c, value in enumerate(values[entry * columns:(entry + 1) * columns]):
                word |= (value & (1 << bits) - 1) << c * bits
            ctx.set(dut.file[entry], word)
        for cycle in range(entries + 1 + ACC_STAGES):
            ctx.set(dut.read.valid, cycle < entries)
            # noise where nothing is read
            ctx.set(dut.read.mode.as_value(), mode if cycle < entries else (mode + 1) % 4)
            ctx.set(dut.read.accumulator, cycle % entries)
            if cycle > ACC_STAGES:
                found.append(ctx.get(dut.result))
            await ctx.tick()

    run(dut, bench)
    return [word >> 32 * c & 0xFFFFFFFF for word in found for c in range(columns)]


def corner_values(bits, rng):
    """Values on, beside and between the points where rounding turns, and at both ends."""
    top = bits - 1
    values = {0, 1, -1, 2**top - 1, -2**top, -2**top + 1, 2**top - 2}
    for exponent in range(top):
        for delta in (-1, 0, 1):
            values |= {2**exponent + delta, -(2**exponent) - delta}
    for shift in range(1, bits - 24):
        half = 1 << shift - 1
        for _ in range(8):
            kept = int(rng.integers(2**23, 2**24)) << shift
            values |= {kept + half + delta for delta in (-1, 0, 1)}
            values |= {-(kept + half + delta) for delta in (-1, 0, 1)}
        # a tie that carries into the exponent
        values |= {(2**24 - 1 << shift) + half, -((2**24 - 1 << shift) + half)}
    values |= {int(v) for v in rng.integers(-2**top, 2**top, 500)}
    return sorted(v for v in values if -2**top <= v < 2**top)


def fp32(value):
    # a double holds every accumulator exactly, so this rounds once, to nearest even
    return np.float32(float(value))


@pytest.mark.parametrize(("bits", "mode"), [(24, F32), (32, F32), (40, F32), (48, F32),
                                            (40, UNUSED)])
def test_f32_is_rounded_once_to_nearest_even(bits, mode, rng):
    values = corner_values(bits, rng)
    found = read_out(bits, values, mode)
    assert found[:len(values)] == [int(fp32(v).view(np.uint32)) for v in values]


@pytest.mark.parametrize("bits", [24, 40, 48])
def test_raw_halves(bits, rng):
    values = corner_values(bits, rng)
    assert read_out(bits, values, RAW_HIGH)[:len(values)] == [v >> 16 & 0xFFFFFFFF for v in values]
    assert read_out(bits, values, RAW_LOW)[:len(values)] == [v & 0xFFFF for v in values]


def test_raw_halves_join_to_f32(rng):
    values = corner_values(40, rng)
    highs, lows, wholes = (np.array(read_out(40, values, mode), np.uint32)
                           for mode in (RAW_HIGH, RAW_LOW, F32))
    with np.errstate(over="ignore"):
        joined = highs.view(np.int32).astype(np.float32) * np.float32(65536) \
            + lows.view(np.int32).astype(np.float32)
    assert joined.dtype == np.float32
    assert joined.view(np.uint32).tolist() == wholes.tolist()


def test_raw_halves_of_partial_sums_add_up(rng):
    shards = rng.integers(-2**36, 2**36, (4, 64))
    highs, lows = (np.array([read_out(40, row.tolist(), mode) for row in shards], np.uint32)
                   .view(np.int32) for mode in (RAW_HIGH, RAW_LOW))
    total = highs.sum(axis=0).astype(np.int64) * 65536 + lows.sum(axis=0)
    assert total.tolist() == shards.sum(axis=0).tolist()


@pytest.mark.parametrize("rows", [4, 8, 12, 16, 48, 80])
def test_sum_over_any_number_of_rows(rows, rng):
    # 80 rows are 5 arrays: they leave a stage of the adder tree with a group of one
    columns, count = 4, 6
    dut = MxmColumns(rows=rows, columns=columns, accumulators=count, accumulator_bits=40)
    block = rng.integers(-128, 128, (rows, columns))
    block[-4:], block[:4] = -128, 127
    vectors = rng.integers(-128, 128, (count, rows))
    vectors[0], vectors[1] = -128, 127
    found = []

    async def load(ctx):
        for r, row in enumerate(block & 255):
            ctx.set(dut.load.rows, 1 << r)
            number = int.from_bytes(bytes(row.tolist()), "little")
            ctx.set(dut.load.by_row, number << 8 * columns * (r % 4))
            await ctx.tick()
        ctx.set(dut.load.rows, 0)
        ctx.set(dut.install, 1)
        await ctx.tick()
        ctx.set(dut.install, 0)

    async def bench(ctx):
        found.clear()
        await load(ctx)
        delay = 1 + adder_stages(rows)
        for cycle in range(count + delay):
            vector = vectors[cycle] if cycle < count else rng.integers(-128, 128, rows)
            ctx.set(dut.vector, int.from_bytes(vector.astype(np.int8).tobytes(), "little"))
            ctx.set(dut.multiply, cycle < count)
            ctx.set(dut.update.valid, cycle >= delay)
            ctx.set(dut.update.clear, 1)
            ctx.set(dut.update.accumulator, max(0, cycle - delay))
            await ctx.tick()
        for entry in range(count):
            word = ctx.get(dut.file[entry])
            values = [word >> 40 * c & (1 << 40) - 1 for c in range(columns)]
            found.append([value - (value >> 39 << 40) for value in values])

    run(dut, bench)
    assert found == (vectors @ block).tolist()


def test_column_count_is_checked():
    with pytest.raises(ValueError, match=r"Column count must be a positive multiple of 4, not 6"):
        MxmColumns(rows=4, columns=6, accumulators=2, accumulator_bits=40)


def test_row_count_is_checked():
    with pytest.raises(ValueError, match="^Row count must be at most 16 or a multiple of it, not "
                                         "20$"):
        MxmColumns(rows=20, columns=4, accumulators=2, accumulator_bits=40)
