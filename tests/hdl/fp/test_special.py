# amaranth: UnusedElaboratable=no
"""exp2, reciprocal and reciprocal square root: corners in pysim, a dense sweep in Verilator.

Results must equal the emulator's bit for bit; how accurate those are is tested with the emulator.
"""

from pathlib import Path

import numpy as np
import pytest

from hdl.emit import emit
from hdl.fp.special import FpSpecial, SpecialOp
from sim.build import build_model, run_cocotb
from sim.emulator import fp_special
from tests.hdl.fp.harness import first_cycle, results
from tests.support import exact

LANES = 16
EMULATED = {
    SpecialOp.EXP2: fp_special.exp2,
    SpecialOp.RECIP: fp_special.recip,
    SpecialOp.RSQRT: fp_special.rsqrt,
}


def emulated(op, patterns):
    return EMULATED[op](np.array(patterns, np.uint32).view(np.float32)).view(np.uint32)


@pytest.mark.parametrize("op", SpecialOp)
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6, 7, 9])
def test_result_appears_after_depth_cycles(op, depth):
    dut = FpSpecial(depth=depth)
    assert dut.depth == depth
    assert first_cycle(dut, {"op": op, "a": exact.NAN}, {"op": op, "a": exact.ONE}) == depth


@pytest.mark.parametrize("op", SpecialOp)
def test_corners_and_every_exponent(op, rng):
    patterns = [*exact.CORNERS]
    for exponent in range(256):
        for sign in (0, exact.SIGN):
            fractions = (0, 1, 0x7FFFFF, int(rng.integers(2**23)))
            patterns += [sign | exponent << 23 | fraction for fraction in fractions]
    operands = [{"op": op, "a": a} for a in patterns]
    assert results(FpSpecial(), operands) == emulated(op, patterns).tolist()


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_operations_follow_each_other_without_a_gap_at_any_depth(depth, rng):
    ops = [list(SpecialOp)[i] for i in rng.integers(0, len(SpecialOp), 200)]
    patterns = [int(rng.integers(100, 140)) << 23 | int(rng.integers(2**23)) for _ in ops]
    operands = [{"op": op, "a": a} for op, a in zip(ops, patterns, strict=True)]
    expected = [int(emulated(op, [a])[0]) for op, a in zip(ops, patterns, strict=True)]
    assert results(FpSpecial(depth=depth), operands) == expected


@pytest.fixture(scope="module")
def model():
    unit = FpSpecial()
    sources = {
        "special.sv": Path(__file__).with_name("special.sv").read_text(),
        "fp_special.v": emit(unit, "fp_special", simulation=True)["fp_special"],
    }
    return build_model("fp-special", sources, top="special"), unit.depth


def sweep(op, count, rng):
    """``count`` arguments: the interesting range at an even distance, and random patterns."""
    dense = count * 7 // 8
    if op == SpecialOp.EXP2:
        # every binade from 2**-27 to 2**8, both signs
        pattern = np.linspace(100 << 23, 135 << 23, dense // 2, endpoint=False).astype(np.uint32)
        pattern = np.concatenate([pattern, pattern | np.uint32(exact.SIGN)])
    else:
        # every fraction at an even distance, exponents of both parities
        spread = np.linspace(0, 2 << 23, dense, endpoint=False).astype(np.uint32)
        pattern = spread + (rng.integers(0, 127, dense, np.uint32) << np.uint32(24))
        if op == SpecialOp.RECIP:
            pattern |= rng.integers(0, 2, dense, np.uint32) << np.uint32(31)
    random = rng.integers(0, 2**32, count - pattern.size, np.uint32)
    return np.concatenate([pattern, random])


def check_sweep(op, model, count, rng, seed, run_dir):
    model, depth = model
    a = sweep(op, count, rng)
    records = count // LANES
    fields = np.zeros(records + depth + 1, [("op", ">u2"), ("lanes", ">u4", LANES)])
    fields["op"] = op.value
    fields["lanes"][:records] = a.reshape(-1, LANES)[:, ::-1]
    (run_dir / "operands.bin").write_bytes(fields.tobytes())
    run_cocotb(model, "tests.hdl.fp.tb_files", 1, run_dir=run_dir, seed=seed)
    observed = np.fromfile(run_dir / "results.bin", "<u4")[(depth + 1) * LANES:-LANES]
    for name in ("operands.bin", "results.bin"):
        (run_dir / name).unlink()       # large
    expected = emulated(op, a)
    wrong = np.flatnonzero(observed != expected)
    if wrong.size:
        i = wrong[0]
        pytest.fail(f"{wrong.size} of {count} wrong, first: {op.name} of 0x{a[i]:08X} is "
                    f"0x{expected[i]:08X}, not 0x{observed[i]:08X}")


@pytest.mark.parametrize("op", SpecialOp)
def test_dense_sweep_equals_the_emulator(op, model, rng, seed, tmp_path):
    check_sweep(op, model, 2**20, rng, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("op", SpecialOp)
def test_denser_sweep_equals_the_emulator(op, model, rng, seed, tmp_path):
    check_sweep(op, model, 2**24, rng, seed, tmp_path)


def test_every_function_has_an_expectation():
    assert set(EMULATED) == set(SpecialOp)


def test_depth_is_checked():
    with pytest.raises(ValueError, match="Pipeline depth must be a positive integer, not 0"):
        FpSpecial(depth=0)
