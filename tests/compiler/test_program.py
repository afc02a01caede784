"""Program files: equal after loading, one clear error for anything else."""

import numpy as np
import pytest

from compiler.assemble import assemble
from compiler.errors import ProgramError
from compiler.lower.copy import copy_program
from compiler.lower.matvec import matvec_program
from compiler.plan import expand
from compiler.program import Program, load, save
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


def test_a_failed_save_leaves_nothing(tmp_path):
    program = _program(np.random.default_rng(1))
    program.symbols = {"bad": object()}
    with pytest.raises(TypeError):
        save(program, tmp_path / "p.npz")
    assert list(tmp_path.iterdir()) == []
