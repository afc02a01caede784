"""LW, ABC and ACC against int64 products, at the distances of docs/architecture.md and one less."""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch.isa import AccMode
from hdl.arch.presets import DEMO, NANO
from hdl.arch.timing import timing
from tests.sim.emulator.support import lines_at, run_tile

#: NANO with the MXM in the middle: mem3 and mem4 are its neighbours.
FLOORPLAN = ("mem0", "mem1", "mem2", "mem3", "mxm0", "mem4", "vxm", "c2c")
CONFIGS = {lanes: replace(NANO, lanes=lanes, floorplan=FLOORPLAN, mem_words=256, icu_words=256)
           for lanes in (4, 8, 16)}


class Bench:
    """Moments at which operands reach mxm0, and at which results reach mem4."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.moments = {"mxm0.weight": [], "mxm0.act": [], "mem4.write": []}
        self.content = {}
        self.results = 0

    def feed(self, cycle, stream, vector, name):
        """Let ``vector`` be at mxm0 in ``cycle``, on an eastward stream, or on a westward one from
        mem4: READ is on the stream one cycle later."""
        rows = self.content.setdefault(name, [])
        direction = "west" if name == "mem4" else "east"
        self.moments.setdefault(f"{name}.read", []).append(
            (cycle - 1 - self.cfg.hops(name, "mxm0"), "READ",
             {"address": len(rows), f"{direction}_en": 1, direction: stream}))
        rows.append(np.asarray(vector, np.int8).tobytes())

    def load(self, cycle, row, vector, columns=0):
        """LW of one vector from E7."""
        self.feed(cycle, 7, vector, "mem3")
        self.moments["mxm0.weight"].append((cycle, "LW", {
            "row": row, "columns": columns, "source": 7, "source_last": 1}))

    def abc(self, cycle, vector=None, accumulator=0, activation=0, **flags):
        """ABC of a vector from W6, or of the buffer."""
        if vector is not None:
            self.feed(cycle, 6, vector, "mem4")
        self.moments["mxm0.act"].append((cycle, "ABC", {
            "source": 6, "source_west": 1, "source_last": 1, "buffered": int(vector is None),
            "accumulator": accumulator, "activation": activation, **flags}))

    def acc(self, cycle, accumulator=0, mode=AccMode.F32):
        """ACC onto E0 to E3, of which mem4 stores one a time: 4 ACCs show one accumulator."""
        plane = self.results % 4
        self.results += 1
        self.moments["mxm0.act"].append((cycle, "ACC", {"accumulator": accumulator,
                                                        "mode": mode.value, "east_en": 1}))
        # 4 cycles to the stream, one hop
        self.moments["mem4.write"].append((cycle + 5, "WRITE", {
            "address": 128 + self.results - 1, "source": plane}))

    def run(self, **options):
        """Results of the ACCs, 4 each, as an array (result, lanes) of uint32."""
        sram = {name: {0: b"".join(rows)} for name, rows in self.content.items()}
        self.machine, self.result = run_tile(
            self.cfg, {name: lines_at(moments) for name, moments in self.moments.items()},
            sram=sram, **options)
        rows = self.machine.sram(0)["mem4"][128:128 + self.results].astype(np.uint32)
        return sum(rows[plane::4] << 8 * plane for plane in range(4))


def full_block(bench, cycle, weights):
    """Load all rows from ``cycle`` on; gives the cycle of the last LW."""
    for row, vector in enumerate(weights):
        bench.load(cycle + row, row, vector)
    return cycle + len(weights) - 1


def read_all(bench, cycle, modes, accumulator=0):
    for mode in modes:
        for _ in range(4):
            bench.acc(cycle, accumulator, mode)
            cycle += 1
    return cycle


def total(high, low):
    """Exact sum from its two raw halves."""
    return high.view(np.int32).astype(np.int64) * 65536 + low.view(np.int32)


RAW = (AccMode.RAW_HIGH, AccMode.RAW_LOW)


@pytest.mark.parametrize("lanes", CONFIGS)
def test_product_at_the_tight_distances(rng, lanes):
    cfg = CONFIGS[lanes]
    weights, vector = rng.integers(-128, 128, (lanes, lanes)), rng.integers(-128, 128, lanes)
    bench = Bench(cfg)
    last = full_block(bench, 10, weights)
    bench.abc(last + 2, vector, install=1, clear=1)
    read_all(bench, last + 2 + timing(cfg)["mxm_act", "ABC"].t_d, (*RAW, AccMode.F32))
    high, low, fp = bench.run()
    product = vector @ weights
    np.testing.assert_array_equal(total(high, low), product)
    np.testing.assert_array_equal(low, product & 0xFFFF)
    np.testing.assert_array_equal(fp.view(np.float32), product.astype(np.float32))


def test_abc_issued_one_cycle_too_early_installs_without_the_last_row(rng):
    cfg = CONFIGS[4]
    weights, vector = rng.integers(1, 128, (4, 4)), rng.integers(1, 128, 4)
    bench = Bench(cfg)
    last = full_block(bench, 10, weights)
    bench.abc(last + 1, vector, install=1, clear=1)
    read_all(bench, last + 20, RAW)
    weights[3] = 0
    np.testing.assert_array_equal(total(*bench.run()), vector @ weights)


@pytest.mark.parametrize("early", [0, 1])
def test_next_lw_may_be_issued_one_cycle_before_the_install(rng, early):
    """Issued at ``j - 1`` it writes behind the copy; at ``j - 2`` before it."""
    cfg = CONFIGS[4]
    weights, vector = rng.integers(1, 128, (4, 4)), rng.integers(1, 128, 4)
    new = rng.integers(-128, 0, 4)
    bench = Bench(cfg)
    last = full_block(bench, 10, weights)
    install = last + 10
    bench.load(install - 1 - early, 2, new)
    bench.abc(install, vector, install=1, clear=1)
    read_all(bench, install + 10, RAW)
    if early:
        weights[2] = new
    np.testing.assert_array_equal(total(*bench.run()), vector @ weights)


def test_acc_one_cycle_too_early_sees_the_sum_before():
    cfg = CONFIGS[8]
    t_d = timing(cfg)["mxm_act", "ABC"].t_d
    bench = Bench(cfg)
    last = full_block(bench, 10, np.eye(8, dtype=int))
    bench.abc(last + 2, np.full(8, 3), install=1, clear=1)
    # 4 ACCs for the planes of the low half, each of another moment; all sums are below 256
    bench.abc(last + 20, np.full(8, 4))
    for cycle in (last + 2 + t_d - 1, last + 2 + t_d, last + 20 + t_d - 1, last + 20 + t_d):
        bench.moments["mxm0.act"].append((cycle, "ACC", {"mode": AccMode.RAW_LOW.value,
                                                         "east_en": 1}))
        bench.moments["mem4.write"].append((cycle + 5, "WRITE", {"address": 128 + bench.results}))
        bench.results += 1
    bench.run()
    assert bench.machine.sram(0)["mem4"][128:132, 0].tolist() == [0, 3, 3, 7]


@pytest.mark.parametrize("lanes", CONFIGS)
def test_limbs_blocks_and_vectors_add_up(rng, lanes):
    """Two blocks, two activation vectors in two limbs, an accumulator for each."""
    cfg = CONFIGS[lanes]
    blocks = rng.integers(-128, 128, (2, lanes, lanes))
    limbs = rng.integers(-128, 128, (2, 2, 2, lanes))       # block, vector, limb
    bench = Bench(cfg)
    expected = np.zeros((2, lanes), np.int64)
    last = full_block(bench, 20, blocks[0])
    for block in range(2):
        start = last + 2
        if block == 0:
            # the next block goes into the shadow while this one is used
            last = full_block(bench, start + 1, blocks[1])
        for n in range(4):
            vector, limb = divmod(n, 2)
            bench.abc(start + n, limbs[block, vector, limb], accumulator=3 - vector, high=limb,
                      clear=int(block == 0 and limb == 0), install=int(n == 0))
            expected[vector] += (256 if limb else 1) * (limbs[block, vector, limb] @ blocks[block])
    end = read_all(bench, last + 30, RAW, 3)
    read_all(bench, end, RAW, 2)
    found = bench.run(garbage=1)
    np.testing.assert_array_equal(total(found[0], found[1]), expected[0])
    np.testing.assert_array_equal(total(found[2], found[3]), expected[1])


def test_columns_load_the_transpose(rng):
    cfg = CONFIGS[8]
    weights, vector = rng.integers(-128, 128, (8, 8)), rng.integers(-128, 128, 8)
    bench = Bench(cfg)
    for column in range(8):
        bench.load(10 + column, column, weights[:, column], columns=1)
    bench.abc(19, vector, install=1, clear=1)
    read_all(bench, 40, RAW)
    np.testing.assert_array_equal(total(*bench.run()), vector @ weights)


@pytest.mark.parametrize("count_log2", [1, 2, 3])
@pytest.mark.parametrize("columns", [0, 1])
def test_lw_takes_aligned_streams_and_wraps_at_the_last_row(rng, count_log2, columns):
    """E4 .. E7 carry vectors of mem0 .. mem3; E5 is named, but they are taken from E4 on."""
    cfg = CONFIGS[8]
    vectors, vector = rng.integers(-128, 128, (4, 8)), rng.integers(-128, 128, 8)
    bench = Bench(cfg)
    for i in range(4):
        bench.feed(30, 4 + i, vectors[i], f"mem{i}")
    bench.moments["mxm0.weight"].append((30, "LW", {
        "row": 6, "count_log2": count_log2, "columns": columns, "source": 5, "source_last": 1}))
    bench.abc(40, vector, install=1, clear=1)
    read_all(bench, 60, RAW)
    block = np.zeros((8, 8), int)
    for i in range(1 << min(count_log2, 2)):
        block[(6 + i) % 8] = vectors[i]
    np.testing.assert_array_equal(total(*bench.run()), vector @ (block.T if columns else block))


def test_buffer_entry_is_taken_from_the_next_cycle_on(rng):
    cfg = CONFIGS[4]
    weights = rng.integers(-128, 128, (4, 4))
    first, second = rng.integers(-128, 128, (2, 4))
    bench = Bench(cfg)
    last = full_block(bench, 10, weights)
    bench.abc(last + 2, first, activation=2, keep=1, install=1, clear=1)
    bench.abc(last + 3, activation=2, accumulator=1, clear=1)
    bench.abc(last + 4, second, activation=2, keep=1, accumulator=2, clear=1)
    bench.abc(last + 5, activation=2, accumulator=1)
    read_all(bench, last + 20, RAW, 1)
    np.testing.assert_array_equal(total(*bench.run()), (first + second) @ weights)


def test_accumulator_wraps_at_its_width():
    cfg = replace(CONFIGS[4], accumulator_bits=24)
    bench = Bench(cfg)
    last = full_block(bench, 10, np.full((4, 4), -128))
    # each pass adds 4 * 128 * 128 * 256 = 2**24: exactly nothing is left of any number of them
    bench.abc(last + 2, np.full(4, -128), install=1, clear=1)
    bench.abc(last + 3, np.full(4, -128), high=1)
    bench.abc(last + 4, np.full(4, 64), high=1)     # -2**23: the least number
    read_all(bench, last + 30, RAW)
    np.testing.assert_array_equal(total(*bench.run()), 4 * 128 * 128 - 2**23)


def test_rounding_to_fp32_happens_once_to_nearest_even():
    """2**24 + 1 is a tie below an even neighbour, 2**24 + 3 one below the upper."""
    cfg = replace(CONFIGS[4], accumulator_bits=40)
    weights = np.zeros((4, 4), int)
    weights[0], weights[1] = (64, 64, -64, -64), (1, 3, -1, -3)
    bench = Bench(cfg)
    last = full_block(bench, 10, weights)
    bench.abc(last + 2, (64, 0, 0, 0), install=1, clear=1, high=1)      # 2**20
    for i in range(15):
        bench.abc(last + 3 + i, (64, 0, 0, 0), high=1)
    bench.abc(last + 20, (0, 1, 0, 0))
    read_all(bench, last + 40, (*RAW, AccMode.F32))
    high, low, fp = bench.run()
    assert total(high, low).tolist() == [2**24 + 1, 2**24 + 3, -2**24 - 1, -2**24 - 3]
    assert fp.view(np.float32).tolist() == [2.0**24, 2.0**24 + 4, -2.0**24, -2.0**24 - 4]


def test_many_products_in_one_accumulator(rng):
    """More than are kept before they are added up."""
    cfg = replace(CONFIGS[4], icu_words=2048, mem_words=2048)
    weights = rng.integers(-128, 128, (4, 4))
    vectors = rng.integers(-128, 128, (700, 4))
    bench = Bench(cfg)
    last = full_block(bench, 10, weights)
    for i, vector in enumerate(vectors):
        bench.feed(last + 2 + i, 6, vector, "mem4")
    flags = {"source": 6, "source_west": 1, "source_last": 1}
    bench.moments["mxm0.act"] += [(last + 2, "ABC", {**flags, "clear": 1, "install": 1}),
                                  (last + 3, "ABC", flags)]
    lines = [*lines_at(bench.moments["mxm0.act"]), ("REPEAT", {"count": 698, "interval": 1}),
             ("NOP", {"wait": 20}), ("ACC", {"mode": 2, "east_en": 1})]
    sram = {name: {0: b"".join(rows)} for name, rows in bench.content.items()}
    reads = [("NOP", {"wait": last + 2 - 3}), ("READ", {"west_en": 1, "west": 6}),
             ("REPEAT", {"count": 699, "interval": 1, "address_stride": 1})]
    cycle = last + 3 + 699 + 21
    machine, result = run_tile(cfg, {
        "mem3.read": lines_at(bench.moments["mem3.read"]), "mem4.read": reads,
        "mxm0.weight": lines_at(bench.moments["mxm0.weight"]), "mxm0.act": lines,
        "mem4.write": [("NOP", {"more": (cycle + 5) // 256, "wait": (cycle + 5) % 256 - 1}),
                       ("WRITE", {"address": 1000})]}, sram=sram)
    assert machine.sram(0)["mem4"][1000].tolist() == (vectors.sum(0) @ weights & 0xFF).tolist()
    assert len(result.writes) == 1


def test_garbage_is_seeded_and_shows_where_nothing_was_written(rng):
    cfg = CONFIGS[4]

    def accumulators(seed):
        bench = Bench(cfg)
        read_all(bench, 10, RAW)
        return total(*bench.run(garbage=seed))

    np.testing.assert_array_equal(accumulators(1), accumulators(1))
    assert (accumulators(1) != accumulators(2)).all()
    assert not accumulators(None).any()
    assert (np.abs(accumulators(3)) < 2**39).all()


def test_demo_delays_are_those_of_the_timing_table():
    """16 lanes: product, two stages of radix-4 sums, accumulator; ACC: entry and three stages."""
    assert timing(DEMO)["mxm_act", "ABC"].t_d == 5
    assert timing(DEMO)["mxm_act", "ACC"].t_d == 4
