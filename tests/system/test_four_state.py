# amaranth: UnusedElaboratable=no
"""The exported Verilog in a four-state simulator: what a run shows is known from the first cycle
behind reset on, and equals what Verilator shows, which starts from random contents."""

import re

import numpy as np
import pytest
from amaranth.hdl import Shape
from amaranth.lib import data

from hdl.arch.host import HostOp, command_layout
from hdl.export.verilog import verilog_2005
from hdl.system import TOP, System, system_verilog
from sim.emulate import run_emulator
from sim.image import initial_sram
from tests.support import icarus
from tests.support.icarus import replay_four_state
from tests.support.replay import Recorder, replay_verilog
from tests.system.smoke import SYSTEM, Commands, smoke_program

SEED = 1


@pytest.fixture(scope="module")
def run():
    """The program and its commands."""
    program = smoke_program(SYSTEM, np.random.default_rng(SEED))
    sram = initial_sram(SYSTEM, program.binary, SEED)
    return program, Commands(program, sram)


@pytest.fixture(scope="module")
def texts():
    """What an export of the system writes, without initial values."""
    return verilog_2005(System(SYSTEM), TOP, prefix="", initial=False)


@pytest.fixture(scope="module")
def two_state(run, tmp_path_factory):
    """Outputs on Verilator, of the Verilog that simulations are built from."""
    return replay_verilog(recorder(run[1].words), system_verilog(SYSTEM), TOP,
                          tmp_path_factory.mktemp("two_state"), SEED, hier_blocks=["tile"])


def recorder(words):
    """The inputs of a run: host commands by tile and cycle."""
    found = Recorder(System(SYSTEM))
    for port in found.inputs:
        found.inputs[port] = [0] * len(words[0])
    for link, config in enumerate(SYSTEM.links):
        found.inputs[f"latency{link}"] = [config.latency] * len(words[0])
    for tile, commands in enumerate(words):
        found.inputs[f"tile{tile}_command"] = commands
    return found


def looked_at(port, shape, values, cycle, rows):
    """Mask of the bits of an output that mean something in a cycle, for its values by cycle."""
    whole = (1 << Shape.cast(shape).width) - 1
    value = values[port][cycle]
    if port.endswith("read_data"):
        return whole if cycle in rows else 0
    if port.endswith("host_tx__data"):
        return whole if values[port.replace("data", "valid")][cycle] else 0
    if not isinstance(shape, data.ArrayLayout):
        return whole
    element, mask = shape.elem_shape, 0     # of the trace port: `valid` is its lowest bit
    for number in range(shape.length):
        low = element.size * number
        mask |= ((1 << element.size) - 1 if value >> low & 1 else 1) << low
    return mask


def differences(expected, found, rows):
    """(cycle, port) of every output that is unknown or another one, where it means something."""
    system = System(SYSTEM)
    shapes = {"__".join(map(str, path)): member.shape
              for path, member, _ in system.signature.flatten(system)}
    return sorted(
        (cycle, port) for port, values in found.items() for cycle, bits in enumerate(values)
        if (bits.unknown | bits.value ^ expected[port][cycle])
        & looked_at(port, shapes[port], expected, cycle, rows))


def test_nothing_unknown_shows_and_all_is_as_in_verilator(run, texts, two_state, tmp_path):
    program, commands = run
    found = replay_four_state(recorder(commands.words), texts, TOP, tmp_path)
    assert differences(two_state, found, commands.rows) == []
    emulator, = run_emulator(SYSTEM, program.binary, garbage=SEED)
    for tile, sram in enumerate(emulator.sram):
        rows = [found[f"tile{tile}_read_data"][cycle] for cycle in commands.rows]
        assert [row.value for row in rows] == [
            int.from_bytes(sram[:, address].tobytes(), "little") for address in range(len(rows))]
        issues = found[f"tile{tile}_issues"][commands.start:]
        assert sum(bool(bits.value) for bits in issues) > 20
        assert sum(bits.value for bits in found[f"tile{tile}_host_tx__valid"]) == 8
        assert not found[f"tile{tile}_errors"][-1].value


@pytest.mark.parametrize("unit", ["tile", "icu_send", "stream_mem", "link_2_bytes_64_cycles"])
def test_registers_without_reset_show(unit, run, texts, two_state, tmp_path):
    commands = run[1]
    text, count = re.subn(r"= rst \? \S+ : ", "= ", texts[unit])
    assert count
    found = replay_four_state(recorder(commands.words), texts | {unit: text}, TOP, tmp_path)
    assert differences(two_state, found, commands.rows)


def test_word_that_nobody_wrote_shows(run, texts, two_state, tmp_path):
    program, commands = run
    layout = command_layout(SYSTEM.tile)
    address = program.symbols["x@0"].address
    words = [list(tile) for tile in commands.words]
    cycle = next(cycle for cycle, word in enumerate(words[0])
                 if layout.from_bits(word).op == HostOp.SRAM
                 and layout.from_bits(word).address == address)
    words[0][cycle] = 0
    found = replay_four_state(recorder(words), texts, TOP, tmp_path)
    ports = {port for _, port in differences(two_state, found, commands.rows)}
    # the tile reads it back, and has passed it on
    assert {"tile0_read_data", "tile1_arrivals"} <= ports


def test_missing_simulator_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(icarus.shutil, "which", lambda _: None)
    with pytest.raises(RuntimeError, match="^iverilog is missing .*: install iverilog$"):
        replay_four_state(None, {}, TOP, tmp_path)
