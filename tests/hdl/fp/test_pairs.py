"""Every arithmetic unit in Verilator, 16 lanes a cycle: random and structured operand pairs.

Expected values are computed here in float64 and integers, where the operations are exact or one
rounding away from the result; the emulator's functions have to agree with them too.
"""

from pathlib import Path

import numpy as np
import pytest

from hdl.emit import emit
from hdl.fp.add import FpAdd
from hdl.fp.compare import CompareOp, FpCompare
from hdl.fp.convert import FpToInt, IntFormat, IntToFp
from hdl.fp.integer import IntAdd
from hdl.fp.mul import FpMul
from sim.build import build_model, run_cocotb
from sim.emulator import fp
from tests.hdl.fp import stimulus

LANES = 16
RANDOM_PAIRS = 1_000_000        # a pass; an operation is in at least one
STRUCTURED_PAIRS = 1_000_000      # a pass

UNITS = {
    "fp_add": FpAdd, "fp_mul": FpMul, "fp_compare": FpCompare, "fp_to_int": FpToInt,
    "int_to_fp": IntToFp, "acc_to_fp": lambda: IntToFp(width=40),
    "int_add": IntAdd,
}
#: What the units with several operations do in each pass.
PASSES = [
    ("add", CompareOp.MAX, IntFormat.INT32),
    ("sub", CompareOp.MIN, IntFormat.INT8),
    ("add", CompareOp.LT, IntFormat.LIMBS),
    ("sub", CompareOp.LE, IntFormat.INT32),
    ("add", CompareOp.EQ, IntFormat.LIMBS),
]
EMULATED = {
    "add": fp.add, "sub": fp.sub, "mul": fp.mul, CompareOp.MAX: fp.max_, CompareOp.MIN: fp.min_,
    CompareOp.LT: fp.cmp_lt, CompareOp.LE: fp.cmp_le, CompareOp.EQ: fp.cmp_eq,
    IntFormat.INT32: lambda a, b: fp.to_int32(a),
    IntFormat.INT8: lambda a, b: fp.to_int8(a),
    IntFormat.LIMBS: lambda a, b: fp.to_limbs(a),
    "from_int32": lambda a, b: fp.from_int32(a.view(np.int32)),
    "accumulator": lambda a, b: fp.acc_to_fp32(accumulator(a, b)),
    "int32 add": lambda a, b: fp.add_int32(a.view(np.int32), b.view(np.int32)),
    "int32 sub": lambda a, b: fp.sub_int32(a.view(np.int32), b.view(np.int32)),
}


@pytest.fixture(scope="module")
def model():
    sources = {"pairs.sv": Path(__file__).with_name("pairs.sv").read_text()}
    depths = set()
    for name, unit in UNITS.items():
        component = unit()
        depths.add(component.depth)
        sources[f"{name}.v"] = emit(component, name, simulation=True)[name]
    return build_model("fp-pairs", sources, top="pairs"), depths.pop()


@pytest.mark.parametrize("number", range(len(PASSES)))
def test_units_equal_ieee_arithmetic(model, number, seed, tmp_path):
    model, depth = model
    add, compare, fmt = PASSES[number]
    rng = np.random.default_rng([seed, number])
    a, b = np.concatenate([stimulus.random_patterns(rng, RANDOM_PAIRS),
                           stimulus.pairs(rng, STRUCTURED_PAIRS)], axis=1)
    control = (add == "sub") | compare.value << 1 | fmt.value << 4
    write_operands(tmp_path / "operands.bin", control, a, b, idle=depth + 1)
    run_cocotb(model, "tests.hdl.fp.tb_files", 1, run_dir=tmp_path, seed=seed)
    (tmp_path / "operands.bin").unlink()        # large
    results = read_results(tmp_path / "results.bin", idle=depth + 1)
    operations = [add, "mul", compare, fmt, "from_int32", "accumulator", f"int32 {add}"]
    for operation, observed in zip(operations, results, strict=True):
        expected = expect(operation, a, b)
        check(operation, a, b, observed, expected)
        emulated = EMULATED[operation](a.view(np.float32), b.view(np.float32)).view(np.uint32)
        check(f"emulated {operation}", a, b, emulated, expected)


def test_every_operation_is_in_a_pass():
    assert {add for add, _, _ in PASSES} == {"add", "sub"}
    assert {compare for _, compare, _ in PASSES} == set(CompareOp)
    assert {fmt for _, _, fmt in PASSES} == set(IntFormat)


def write_operands(path, control, a, b, *, idle):
    """Records of pairs.sv, and ``idle`` more that let the last results out."""
    records = len(a) // LANES
    assert records * LANES == len(a)
    words = np.zeros((records + idle, 2, LANES), ">u4")
    words[:records, 0] = b.reshape(-1, LANES)[:, ::-1]
    words[:records, 1] = a.reshape(-1, LANES)[:, ::-1]
    fields = np.zeros(records + idle, [("control", ">u2"), ("lanes", ">u4", (2, LANES))])
    fields["control"] = control
    fields["lanes"] = words
    path.write_bytes(fields.tobytes())


def read_results(path, *, idle):
    """Patterns of every unit (units, pairs)."""
    written = np.fromfile(path, "<u4").reshape(-1, len(UNITS), LANES)
    path.unlink()       # large
    # a record is in the operand registers after one edge; the edge at the end of the file is one
    return written[idle:-1].transpose(1, 0, 2).reshape(len(UNITS), -1)


def check(operation, a, b, observed, expected):
    wrong = np.flatnonzero(observed != expected)
    if wrong.size:
        i = wrong[0]
        pytest.fail(f"{wrong.size} of {a.size} wrong, first: {operation} of 0x{a[i]:08X}, "
                    f"0x{b[i]:08X} is 0x{expected[i]:08X}, not 0x{observed[i]:08X}")


def accumulator(a, b):
    """40-bit signed integers as pairs.sv forms them."""
    wide = a.view(np.uint32).astype(np.int64)
    return (b.view(np.uint32).astype(np.int64) << 56 >> 24) | wide


@np.errstate(all="ignore")
def expect(operation, a, b):
    """Patterns that IEEE arithmetic demands."""
    x, y = (v.view(np.float32).astype(np.float64) for v in (a, b))
    nan = np.isnan(x) | np.isnan(y)
    # float64 has more than twice the bits of binary32: rounding twice is rounding once
    if operation in ("add", "sub", "mul"):
        wide = {"add": x + y, "sub": x - y, "mul": x * y}[operation]
        return np.where(np.isnan(wide), 0x7FC00000, wide.astype(np.float32).view(np.uint32))
    if operation in (CompareOp.MAX, CompareOp.MIN):
        x, y = (np.where(v == 0, np.copysign(1e-300, v), v) for v in (x, y))
        chosen = np.where(x > y if operation == CompareOp.MAX else x < y, a, b)
        return np.where(nan, 0x7FC00000, chosen)
    if isinstance(operation, CompareOp):
        holds = {CompareOp.LT: x < y, CompareOp.LE: x <= y, CompareOp.EQ: x == y}[operation]
        return np.where(holds, 0x3F800000, 0)
    if isinstance(operation, IntFormat):
        low, high = {IntFormat.INT32: (-2**31, 2**31 - 1), IntFormat.INT8: (-128, 127),
                     IntFormat.LIMBS: (-32639, 32639)}[operation]
        x = np.clip(np.where(np.isnan(x), 0, x), low, high)
        whole = np.floor(x)
        up = (x - whole > 0.5) | ((x - whole == 0.5) & (whole % 2 == 1))
        value = (whole + up).astype(np.int64)
        if operation == IntFormat.LIMBS:
            limb = (value + 128) // 256
            value = limb % 256 * 256 + value % 256
        return value % 2**32
    if operation.startswith("int32"):
        return a + b if operation == "int32 add" else a - b
    integer = accumulator(a, b) if operation == "accumulator" else a.view(np.int32)
    return integer.astype(np.float64).astype(np.float32).view(np.uint32)   # exact in float64
