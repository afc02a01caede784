"""What a ``waves`` build dumps, against what its trace port recorded in the same run."""

import re

import numpy as np
import pytest

from hdl.arch import isa
from hdl.arch.encoding import decode, to_text
from hdl.arch.presets import NANO
from hdl.arch.queues import link_names, queues
from sim.build.model import BUILD_ROOT
from sim.commands.hello import hello_program
from sim.commands.waves import offer_waves, show_waves
from sim.conformance import check
from sim.rtl.build import build_rtl
from sim.rtl.probes import queue_signal, stream_signals
from sim.rtl.run import VCD, run_rtl
from sim.rtl.top import TOP
from sim.waves.gtkw import tile_path, write_view
from sim.waves.header import read_header
from tests.sim.waves.reading import icu, issues, recorded_issues, samples

FIRST, LAST = 12, 30        #: a window in the middle of the run
TILE = 0


@pytest.fixture(scope="module")
def program():
    return hello_program(3)[0]


@pytest.fixture(scope="module")
def model(program):
    return build_rtl(program.system, kind="waves", tile=TILE)


@pytest.fixture(scope="module")
def traced(program, model, tmp_path_factory):
    """The run, and the directory with its waves."""
    directory = tmp_path_factory.mktemp("waves")
    result = run_rtl(model, program.system, program.binary, run_dir=directory, seed=5,
                     waves=(FIRST, LAST))
    return result.runs[0], directory


def in_window(table):
    return table[(table["tile"] == TILE) & (table["cycle"] >= FIRST) & (table["cycle"] <= LAST)]


def test_window_is_what_is_dumped(traced):
    assert [cycle for cycle, in samples(traced[1])] == list(range(FIRST, LAST + 1))
    times = [int(line[1:]) for line in (traced[1] / VCD).read_text().splitlines()
             if line.startswith("#")]
    assert len(times) == 2 * (LAST - FIRST + 1)         # both edges of every cycle
    assert np.all(np.diff(times) == 1)


def test_waves_show_the_issues_of_the_trace_port(program, traced):
    run, directory = traced
    found = issues(directory, NANO, TILE)
    assert found == recorded_issues(run.events, TILE, FIRST, LAST)
    assert len({unit for _, unit, *_ in found}) > 3     # of many queues
    assert np.any(run.events.issues["cycle"] < FIRST)
    assert np.any(run.events.issues["cycle"] > LAST)


def test_waves_show_writes_and_arrivals(traced):
    run, directory = traced
    writes, arrivals = [], []
    for unit, name in enumerate(NANO.slices("mem")):
        part = f"{tile_path(TILE)}.{name}.written__"
        writes += [(cycle, unit, address, data.to_bytes(NANO.lanes, "little"))
                   for cycle, valid, address, data in samples(
                       directory, part + "valid", part + "address", part + "data") if valid]
    for unit in range(len(link_names(NANO))):
        part = f"{tile_path(TILE)}.arrivals_{unit}__"
        arrivals += [(cycle, unit, data.to_bytes(NANO.lanes, "little")) for cycle, valid, data
                     in samples(directory, part + "valid", part + "data") if valid]
    for found, table, fields in ((writes, run.events.writes, ["cycle", "unit", "address"]),
                                 (arrivals, run.events.arrivals, ["cycle", "unit"])):
        recorded = [(*map(int, event[fields].tolist()), event["data"].tobytes())
                    for event in in_window(table)]
        assert recorded
        assert sorted(found) == sorted(recorded)


def test_probes_show_words_that_issue_and_vectors_that_arrive(traced):
    probes = []         # (valid, bit of it), (data, offset, width), probe
    for queue in queues(NANO):
        issue = f"{icu(TILE, queue)}.issue__"
        probes.append(((f"{issue}valid", 0), (f"{issue}word", 0, isa.word_bits(NANO, queue.kind)),
                       f"{TOP}.{queue_signal(queue.name)}"))
    width = 8 * NANO.lanes
    for name in NANO.floorplan:
        for path, (direction, stream) in stream_signals(NANO, name).items():
            port = f"{tile_path(TILE)}.stream_{name}.in_{direction}__"
            probes.append(((f"{port}valid", stream), (f"{port}data", width * stream, width),
                           f"{TOP}.{path}"))
    names = [name for (valid, _), (data, *_), probe in probes for name in (valid, data, probe)]
    shown = dict.fromkeys((True, False), 0)
    for _, *values in samples(traced[1], *names):
        for ((_, bit), (_, offset, width), _), valid, data, value in zip(
                probes, values[::3], values[1::3], values[2::3], strict=True):
            part = data >> offset & (1 << width) - 1
            assert value == (part if valid >> bit & 1 else 0)
            shown[value != 0] += 1
    assert all(shown.values())


def test_run_is_that_of_the_fast_build(program, traced, tmp_path):
    fast = run_rtl(build_rtl(program.system), program.system, program.binary, run_dir=tmp_path,
                   seed=6, garbage=5)
    report = check(program.system, program.binary, emulator=fast.runs[0], rtl=traced[0])
    assert report.ok
    assert len(fast.runs[0].events.issues) == len(traced[0].events.issues) > 0


def test_every_run_has_its_window_and_nothing_lies_between(program, model, tmp_path):
    run_rtl(model, program.system, program.binary, run_dir=tmp_path, runs=[(0, 1), (0, 1)],
            waves=(3, 4))
    assert [cycle for cycle, in samples(tmp_path)] == [3, 4, 3, 4]


def test_window_ends_with_the_run(program, model, tmp_path):
    result = run_rtl(model, program.system, program.binary, run_dir=tmp_path,
                     waves=(result_end := program.plan.cycles(1), 100_000))
    cycles = [cycle for cycle, in samples(tmp_path)]
    assert cycles == list(range(result_end, cycles[-1] + 1))
    # Until nothing is under way; SRAM is read back behind it, word by word.
    assert result.records[0].cycles <= cycles[-1] < result.records[0].cycles + 200


def test_without_window_nothing_is_written(program, model, tmp_path):
    (tmp_path / VCD).write_text("of an earlier run")
    run_rtl(model, program.system, program.binary, run_dir=tmp_path)
    assert not (tmp_path / VCD).exists()


def test_fast_build_has_no_waves(program, tmp_path):
    with pytest.raises(ValueError, match='must be built with kind="waves"'):
        run_rtl(build_rtl(program.system), program.system, program.binary, run_dir=tmp_path,
                waves=(0, 1))


@pytest.mark.parametrize("waves", [(5, 4), (-1, 4), (0, 1 << 31)])
def test_impossible_window(program, model, tmp_path, waves):
    with pytest.raises(ValueError, match="Waves must be from a cycle"):
        run_rtl(model, program.system, program.binary, run_dir=tmp_path, waves=waves)


def test_view_names_signals_that_are_there(program, traced):
    vcd = traced[1] / VCD
    words = program.binary.tiles[TILE].words
    text = write_view(vcd, NANO, TILE, words).read_text().splitlines()
    names = set(read_header(vcd).names.values())
    rows = [line for line in text if not re.match(r"[\[@^*-]", line) and line]
    assert len(rows) > 100
    assert set(rows) <= names
    begins = [line for line, behind in zip(text[1:], text, strict=False)
              if behind in ("@800200", "@c00200")]
    ends = [line for line, behind in zip(text[1:], text, strict=False) if behind == "@1000200"]
    assert begins == ends
    assert {f"-{name}" for name in words} < set(begins)
    assert f"[timestart] {read_header(vcd).begin}" in text


def test_filters_translate_every_word_that_issues(program, traced):
    vcd = traced[1] / VCD
    words = program.binary.tiles[TILE].words
    text = write_view(vcd, NANO, TILE, words).read_text()
    for queue in queues(NANO):
        name = f"{TOP}.{queue_signal(queue.name)}"
        if not words.get(queue.name):
            assert name not in text
            continue
        used = re.search(rf"@2022\n\^\d+ (\S+)\n{re.escape(name)}\[", text)[1]
        with open(used) as file:
            shown = dict(line.rstrip("\n").split(" ", 1) for line in file)
        digits = -(-isa.word_bits(NANO, queue.kind) // 4)
        assert all(len(key) == digits for key in shown)
        assert shown["0" * digits] == "-"
        for _, word in samples(traced[1], name):
            if word:
                text_of_word = to_text(decode(NANO, queue.kind, word))
                assert shown[f"{word:0{digits}x}"] == re.sub(r" (wait|ends)=\d+", "", text_of_word)


def test_lines_for_the_user(program, traced):
    lines = show_waves(traced[1], program, TILE)
    size = (traced[1] / VCD).stat().st_size
    assert lines[0] == f"waves: {size:,} bytes, tile {TILE}"
    command, vcd, save = lines[1].removeprefix("open them: ").split()
    assert (command, vcd) == ("gtkwave", str((traced[1] / VCD).resolve()))
    assert save == vcd.replace(".vcd", ".gtkw")


def test_empty_waves_are_said_to_be_empty(program, model, tmp_path):
    run_rtl(model, program.system, program.binary, run_dir=tmp_path, waves=(90_000, 90_001))
    line, = show_waves(tmp_path, program, TILE)
    assert "did not come to the window" in line


def test_a_run_without_waves_ends_with_how_to_see_them():
    lines = offer_waves(BUILD_ROOT / "run" / "run", 1000)
    assert lines[0].startswith("see its waves: the same with WAVES=0:1000 (--waves 0:1000)")
    assert lines[0].endswith("gtkwave build/run/run/waves.vcd build/run/run/waves.gtkw")
    assert lines[1].startswith("look first at event_cycle")
