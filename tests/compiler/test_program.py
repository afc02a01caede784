"""Program files: equal after loading, one clear error for anything else."""

import json
import os
import zipfile

import numpy as np
import pytest

from compiler import program as program_module
from compiler.assemble import assemble
from compiler.errors import ProgramError
from compiler.lower.copy import copy_program
from compiler.lower.matvec import matvec_program
from compiler.plan import expand
from compiler.program import Program, from_plan, load, save
from compiler.program_check import REGION
from hdl.arch.config import pair, single
from hdl.arch.presets import NANO


def _program(rng):
    system = pair(NANO, latency=5)
    plan, memory = matvec_program(system, rng.integers(-127, 128, (8, 8), dtype=np.int8),
                                  rng.integers(-32639, 32640, 8))
    binary, plan = assemble(plan)
    memory.fill(binary)
    return Program(system, plan, binary, memory.symbols)


def test_a_loaded_program_is_the_saved_one(tmp_path, rng):
    program = _program(rng)
    save(program, tmp_path / "p.npz")
    again = load(tmp_path / "p.npz")
    assert (again.system, again.binary, again.symbols) == \
        (program.system, program.binary, program.symbols)
    for steps in (1, 3):
        first, second = expand(program.plan, steps, 2), expand(again.plan, steps, 2)
        for name, table in first.items():
            np.testing.assert_array_equal(table, second[name])


def test_loops_and_predicates_survive(tmp_path, rng):
    system = single(NANO)
    plan, memory = copy_program(system, rng.integers(0, 256, (1, 4, 6, 4), dtype=np.uint8), 3, 2)
    binary, plan = assemble(plan)
    memory.fill(binary)
    save(Program(system, plan, binary, memory.symbols), tmp_path / "p.npz")
    again = load(tmp_path / "p.npz")
    for name, table in expand(plan, 5, 1).items():
        np.testing.assert_array_equal(table, expand(again.plan, 5, 1)[name])


def test_saving_is_reproducible(tmp_path):
    for name in ("a", "b"):
        save(_program(np.random.default_rng(3)), tmp_path / name)
    with np.load(tmp_path / "a") as a, np.load(tmp_path / "b") as b:
        assert a.files == b.files
        assert all((a[name] == b[name]).all() for name in a.files)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ProgramError, match="nowhere.npz does not exist"):
        load(tmp_path / "nowhere.npz")


def test_damage_anywhere_is_one_clear_error(tmp_path, rng):
    path = tmp_path / "p.npz"
    save(_program(rng), path)
    whole = path.read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ProgramError, match="compile it again"):
            load(path)
    loaded = 0
    for _ in range(60):
        broken = bytearray(whole)
        broken[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            load(path)
            loaded += 1         # a flipped bit in a time stamp or the like harms nothing
        except ProgramError as error:
            assert "\n" not in str(error)
    assert loaded < 30


@pytest.mark.parametrize("change", [
    lambda a: a.pop("header"), lambda a: a.pop("plan/issues"),
    lambda a: a.update(system=np.frombuffer(b"{}", np.uint8)),
    lambda a: a.update({"words/0/mem9.read": np.zeros((1, 6), np.uint8)}),
    lambda a: a.update({"words/7/mem0.read": np.zeros((1, 6), np.uint8)}),
    lambda a: a.update({"sram/0/mem0/63": np.zeros((2, 4), np.uint8)}),
    lambda a: a.update({"table/0/mem0.read": np.ones((1, 3), np.int64)}),
    lambda a: a.update({"words/0/mem0.read": np.full((1, 6), 255, np.uint8)}),
    lambda a: a.update({"header": np.array([{}], object)}),
])
def test_wrong_contents_are_refused(tmp_path, rng, change):
    save(_program(rng), tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as file:
        arrays = {name: file[name] for name in file.files}
    change(arrays)
    np.savez(tmp_path / "q.npz", **arrays)
    with pytest.raises(ProgramError, match="Cannot read program .* compile it again"):
        load(tmp_path / "q.npz")


def _file_with(tmp_path, program, change):
    """A program file whose arrays, by name, ``change`` has changed."""
    save(program, tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as file:
        arrays = {name: file[name].copy() for name in file.files}
    change(arrays)
    np.savez(tmp_path / "q.npz", **arrays)
    return tmp_path / "q.npz"


def _put(name, field, index, value):
    def change(arrays):
        arrays[name][field][index] = value
    return change


def _json(name, **changes):
    def change(arrays):
        values = json.loads(arrays[name].tobytes())
        if name == "symbols":
            values["source@0"].update(changes)
        else:
            values.update(changes)
        arrays[name] = np.frombuffer(json.dumps(values).encode(), np.uint8)
    return change


def _array(name, value):
    return lambda arrays: arrays.update({name: value})


@pytest.mark.parametrize(("change", "message"), [
    (_array("table/0/mem0.read", np.zeros((0, 3), np.int64)), "must have 1 to 8 entries"),
    (_array("table/0/mem0.read", np.zeros(3, np.int64)), "the wrong shape"),
    (_array("table/0/mem0.read", np.zeros((1, 4), np.int64)), "the wrong shape"),
    (_array("table/0/mem0.read", np.full((1, 3), np.nan)), "elements of a wrong type"),
    (_array("table/0/mem0.read", np.array([[0, 0, 0], [99, 0, 0]])), "not a shift, a mask"),
    (_array("table/0/mem0.read", np.array([[0, 0, 0], [0, 1, 1 << 40]])), "not a shift, a mask"),
    (_array("words/0/mem0.read", np.zeros(6, np.uint8)), "the wrong shape"),
    (_array("words/0/mem0.read", np.array(1, np.uint8)), "damaged"),
    (_array("words/0/mem0.read", np.zeros((1, 6), np.int64)), "elements of a wrong type"),
    (_array("words/-1/mem0.read", np.zeros((1, 6), np.uint8)), "of a tile it lacks"),
    (_array("words/0/mem0.read", np.zeros((99, 6), np.uint8)), "holds 64 words, not 99"),
    (_array("sram/0/mem0/-4", np.zeros((1, 4), np.uint8)), "leave its 64 words"),
    (_array("sram/0/mem0/4", np.zeros((1, 5), np.uint8)), "the wrong shape"),
    (_json("symbols", address="x"), "symbol 'source@0' is no piece of SRAM"),
    (_json("symbols", address=60), "symbol 'source@0' is no piece of SRAM"),
    (_json("symbols", tile=7), "symbol 'source@0' is no piece of SRAM"),
    (_json("symbols", slices=["mem9"]), "symbol 'source@0' is no piece of SRAM"),
    (_json("symbols", words=1 << 60), "symbol 'source@0' is no piece of SRAM"),
    (_json("system", tiles=1 << 30), "damaged"),
    (_array("bounds", np.frombuffer(b'[[[1, 1, 0, "x"]], 1, "x", 1]', np.uint8)), "no cycles"),
    (_array("plan/regions", np.zeros(0, REGION)), "begin with a root"),
    (_put("plan/regions", "parent", 2, 2), "region 2 of its plan lies in none before it"),
    (_put("plan/regions", "parent", 2, -1), "region 2 of its plan lies in none before it"),
    (_put("plan/regions", "count", 2, 1 << 40), "region 2 of its plan has 1099511627776 runs"),
    (_put("plan/regions", "count", 2, 0), "region 2 of its plan has 0 runs"),
    (_put("plan/regions", "count", 2, -1), "region 2 of its plan has -1 runs"),
    (_put("plan/regions", "count", 1, 3), "region 1 of its plan has 3 runs"),
    (_put("plan/regions", "period", 1, 1 << 62), "outside of all time"),
    (_put("plan/issues", "region", 0, 99), "in no region"),
    (_put("plan/issues", "tile", 0, 99), "on a tile it lacks"),
    (_put("plan/issues", "queue", 0, 999), "for no queue"),
    (_put("plan/issues", "start", 0, -1), "outside of all time"),
    (_put("plan/issues", "word", 0, 0), "its plan issues a NOP"),
    (_put("plan/issues", "word", 0, 255), "has no opcode 31"),
    (_array("plan/issues", np.zeros(4)), "elements of a wrong type"),
    (_put("plan/terms", "issue", 0, 1 << 20), "a term of no instruction"),
    (_put("plan/terms", "index", 0, 5), "a term of no index"),
    (_put("plan/terms", "level", 0, 5), "a term of no loop around the instruction"),
    (_put("plan/terms", "level", 0, -5), "a term of no loop around the instruction"),
])
def test_contents_that_would_break_something_later_are_named(tmp_path, rng, change, message):
    plan, memory = copy_program(
        pair(NANO), rng.integers(0, 256, (2, 4, 6, 4), dtype=np.uint8), 3, 2)
    path = _file_with(tmp_path, from_plan(plan, memory), change)
    with pytest.raises(ProgramError) as caught:
        load(path)
    assert str(caught.value).startswith(f"Cannot read program {path}: ")
    assert message in str(caught.value)


def test_files_that_claim_too_much_are_refused_unread(tmp_path, rng):
    path = tmp_path / "p.npz"
    save(_program(rng), path)
    with np.load(path) as file:
        dtype = file["plan/issues"].dtype
    for count in (10**6, 10**15):
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "q.npz", "w") as new:
            for name in old.namelist():
                if name != "plan/issues.npy":
                    new.writestr(name, old.read(name))
            with new.open("plan/issues.npy", "w") as file:
                np.lib.format.write_array_header_1_0(file, {
                    "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False,
                    "shape": (count,)})
        with pytest.raises(ProgramError, match="damaged"):
            load(tmp_path / "q.npz")


def test_a_file_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch, rng):
    save(_program(rng), tmp_path / "p.npz")
    monkeypatch.setattr(program_module, "_MOST_BYTES", 1000)
    with pytest.raises(ProgramError, match="it would unpack to [0-9]+ bytes"):
        load(tmp_path / "p.npz")


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "fifo")        # opening it would wait for ever
    for path in (tmp_path, tmp_path / "fifo"):
        with pytest.raises(ProgramError, match="is not a file"):
            load(path)


def test_a_failed_save_leaves_nothing(tmp_path):
    program = _program(np.random.default_rng(1))
    program.symbols = {"bad": object()}
    with pytest.raises(TypeError):
        save(program, tmp_path / "p.npz")
    assert list(tmp_path.iterdir()) == []
