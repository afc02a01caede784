"""``oncycle board``, with a bridge in Python behind a pseudo terminal."""

import os

import pytest

from compiler.program import save
from hdl.arch.config import pair, single
from hdl.arch.presets import FPGA, NANO
from sim.emulate import run_emulator
from sim.products import compile_product
from tests.sim.bridge.fake import FakeBridge

SEED = 5


@pytest.fixture
def program(rng, tmp_path):
    """A product of one nano tile, and its file."""
    program, _ = compile_product(single(NANO), 8, 8, rng)
    save(program, tmp_path / "product.npz")
    return program, tmp_path / "product.npz"


def executes(program, change=False, errors=0):
    """What a START does: as the emulator, but for a word of SRAM if there is to be a ``change``."""

    def execute(tile, first_step, steps):
        seen, = run_emulator(program.system, program.binary, garbage=SEED,
                             runs=[(first_step, steps)], limit=10_000)
        assert {queue for queue, _ in tile.words} >= set(program.binary.tiles[0].words)
        for unit, words in enumerate(seen.sram[0]):
            for address, word in enumerate(words):
                tile.sram[unit, address] = word.tobytes()
        if change:
            tile.sram[0, 7] = bytes(255 - byte for byte in tile.sram[0, 7])
        return program.plan.cycles(1), errors, b""

    return execute


def test_program_runs_and_equals_the_emulator(oncycle, program):
    program, path = program
    with FakeBridge(NANO, executes(program)) as bridge:
        code, output, errors = oncycle("board", path, "--port", bridge.path, "--seed", SEED,
                                       "--check")
    assert (code, output.splitlines()) == (0, [
        f"{program.plan.cycles(1):,} cycles, 0 vectors to the host",
        "compared with the emulator: all equal"])
    assert " 0 sent again" in errors


def test_lost_frames_are_sent_again(oncycle, program):
    program, path = program
    with FakeBridge(NANO, executes(program), lose={0, 4}) as bridge:
        code, _, errors = oncycle("board", path, "--port", bridge.path, "--seed", SEED)
        assert code == 0 and bridge.lost == 2
    assert " 2 sent again" in errors


def test_another_result_and_faults_are_shown(oncycle, program):
    program, path = program
    with FakeBridge(NANO, executes(program, change=True, errors=1)) as bridge:
        code, output, _ = oncycle("board", path, "--port", bridge.path, "--seed", SEED, "--check")
    assert code == 1
    assert "tile 0: STREAM_INVALID" in output
    assert "emulator: 1 other words of SRAM, other faults" in output


def test_program_of_another_configuration_is_refused(refusal, program):
    _, path = program
    with FakeBridge(FPGA) as bridge:
        line = refusal("board", path, "--port", bridge.path)
    assert line == (f"Program was made for tiles of configuration {NANO.digest}, the board has "
                    f"{FPGA.digest}: compile it for that, or configure the board anew")


def test_program_of_two_tiles_is_refused(refusal, rng, tmp_path):
    save(compile_product(pair(NANO), 8, 8, rng)[0], tmp_path / "two.npz")
    with FakeBridge(NANO) as bridge:
        line = refusal("board", tmp_path / "two.npz", "--port", bridge.path)
    assert line == "A board has 1 tile, the program is for 2: compile it with --tiles 1"


def test_what_is_no_line_is_refused(refusal, program, tmp_path):
    _, path = program
    missing = tmp_path / "ttyUSB7"
    assert refusal("board", path, "--port", missing).startswith(
        f"Serial line {missing} cannot be opened (No such file or directory): connect the board")
    assert refusal("board", path, "--port", path).startswith(f"{path} is no serial line")
    assert "115200" in refusal("board", path, "--port", missing, "--baud", 12345)


def test_line_without_an_answer_is_reported(refusal, program, monkeypatch):
    _, path = program
    monkeypatch.setattr("sim.bridge.port.SerialPort.patience", 0.01)
    master, slave = os.openpty()
    try:
        assert refusal("board", path, "--port", os.ttyname(slave)).startswith(
            f"Nothing answers at {os.ttyname(slave)}: ")
    finally:
        os.close(master)
        os.close(slave)
