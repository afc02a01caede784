import gc
import json
import re
import warnings

import pytest
from amaranth.hdl import Cat, Module, Signal, UnusedElaboratable, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.emit import emit, once
from sim.build import build_model, run_cocotb
from tests.support.pysim import run

WIDTH = 8
START = 0xA5


class Step(wiring.Component):
    """A register that adds ``by`` while enabled, and keeps its last values in a memory."""

    def __init__(self, by):
        self._by = by
        super().__init__({"en": In(1), "back": In(3), "value": Out(WIDTH, init=START),
                          "past": Out(WIDTH)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.past_values = memory = Memory(shape=unsigned(WIDTH), depth=8, init=[])
        write, read = memory.write_port(), memory.read_port()
        now = Signal(3)
        m.d.sync += now.eq(now + 1)
        m.d.comb += [write.en.eq(1), write.addr.eq(now), write.data.eq(self.value),
                     read.addr.eq(now - self.back), self.past.eq(read.data)]
        with m.If(self.en):
            m.d.sync += self.value.eq(self.value + self._by)
        return m


class Parity(wiring.Component):
    """A unit without registers: it has no clock to connect."""

    a: In(WIDTH)
    odd: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.odd.eq(self.a.xor())
        return m


class Group(wiring.Component):
    """Steps of two kinds and a parity for each of them."""

    def __init__(self, count):
        self._count = count
        super().__init__({"en": In(count), "back": In(3), "value": Out(WIDTH * count),
                          "past": Out(WIDTH * count), "odd": Out(count)})

    def elaborate(self, platform):
        m = Module()
        for i in range(self._count):
            m.submodules[f"step_{i}"] = step = once(platform, f"step_{1 + i % 2}", Step, 1 + i % 2)
            m.submodules[f"parity_{i}"] = parity = once(platform, "parity", Parity)
            m.d.comb += [step.en.eq(self.en[i]), step.back.eq(self.back), parity.a.eq(step.value),
                         self.value.word_select(i, WIDTH).eq(step.value),
                         self.past.word_select(i, WIDTH).eq(step.past), self.odd[i].eq(parity.odd)]
        return m


def outputs_in_pysim(count, stimulus):
    dut, found = Group(count), []

    async def bench(ctx):
        for en, back in stimulus:
            ctx.set(dut.en, en)
            ctx.set(dut.back, back)
            found.append([ctx.get(dut.value), ctx.get(dut.past), ctx.get(dut.odd)])
            await ctx.tick()

    run(dut, bench)
    return found


def test_both_forms_agree(rng, seed, tmp_path):
    count = 3
    stimulus = [(int(rng.integers(1 << count)), int(rng.integers(1, 8))) for _ in range(60)]
    texts = emit(Group(count), "group", simulation=True)
    model = build_model("emit-group", {f"{name}.sv": text for name, text in texts.items()},
                        top="group")
    (tmp_path / "stimulus.json").write_text(json.dumps(stimulus))
    run_cocotb(model, "tests.hdl.tb_emit", 1, run_dir=tmp_path, seed=seed)
    expected = outputs_in_pysim(count, stimulus)
    found = json.loads((tmp_path / "outputs.json").read_text())
    # The memory has no contents of its own: its first 8 words are whatever the simulator has.
    assert [row[0::2] for row in found] == [row[0::2] for row in expected]
    assert [row[1] for row in found[9:]] == [row[1] for row in expected[9:]]
    assert len({row[0] for row in found}) > 20


def test_initial_values_come_from_the_seed_until_reset(tmp_path):
    texts = emit(Group(1), "group", simulation=True)
    model = build_model("emit-single", {f"{name}.sv": text for name, text in texts.items()},
                        top="group")
    first = set()
    for seed in (1, 2, 3):
        directory = tmp_path / str(seed)
        directory.mkdir()
        (directory / "stimulus.json").write_text(json.dumps([(0, 1)]))
        run_cocotb(model, "tests.hdl.tb_emit", 1, run_dir=directory, seed=seed)
        before = json.loads((directory / "before_reset.json").read_text())
        first.add(tuple(before))
        [[value, _, _]] = json.loads((directory / "outputs.json").read_text())
        assert value == START
    assert len(first) == 3


def test_export_keeps_initial_values():
    initial = rf"reg \[7:0\] value = 8'h{START:02x};"
    assert re.search(initial, emit(Group(1), "group")["step_1"])
    assert not re.search(initial, emit(Group(1), "group", simulation=True)["step_1"])


def test_text_of_units_does_not_grow_with_instances():
    few, many = emit(Group(2), "group"), emit(Group(20), "group")
    assert list(few) == list(many) == ["step_1", "parity", "step_2", "group"]
    assert all(few[name] == many[name] for name in few if name != "group")
    assert len(re.findall(r"^module ", "\n".join(many.values()), re.M)) == 4


def test_unit_without_registers_gets_no_clock():
    text = emit(Group(1), "group")["parity"]
    assert "clk" not in text and "rst" not in text


class Table(wiring.Component):
    """A memory with contents, or without."""

    def __init__(self, contents):
        self._contents = contents
        super().__init__({"address": In(4), "value": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = Memory(shape=unsigned(16), depth=16, init=self._contents)
        port = table.read_port()
        m.d.comb += [port.addr.eq(self.address), self.value.eq(port.data)]
        return m


@pytest.mark.parametrize("simulation", [False, True])
def test_only_contents_that_were_given_are_written_out(simulation):
    given = emit(Table([0, 0xBEEF]), "table", simulation=simulation)["table"]
    assert "16'hbeef" in given
    none = emit(Table([]), "table", simulation=simulation)["table"]
    assert "initial" not in none


class Spread(wiring.Component):
    """Every bit of a value many times over."""

    value: In(1 << 12)
    same: Out(1 << 15)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.same.eq(Cat(bit.replicate(8) for bit in self.value))
        return m


def test_no_line_is_too_long_for_verilator():
    text = emit(Spread(), "spread")["spread"]
    assert len(text) > 1 << 17 and max(map(len, text.splitlines())) < 20_000


def test_unit_that_is_too_wide_is_part_of_what_it_is_placed_in(monkeypatch):
    # a step has 4 bits of inputs and 16 of outputs, a parity 8 and 1
    monkeypatch.setattr("hdl.emit._MOST_PORT_BITS", 15)
    texts = emit(Group(2), "group")
    assert list(texts) == ["parity", "group"]
    assert len(re.findall(r"^module \\group\.\S*step\S* \(", texts["group"], re.M)) == 2


class Clash(wiring.Component):
    """Two units under one name."""

    en: In(1)
    value: Out(WIDTH)

    def elaborate(self, platform):
        m = Module()
        for by in (1, 2):
            m.submodules[f"step_{by}"] = step = once(platform, "step", Step, by)
            m.d.comb += step.en.eq(self.en)
        m.d.comb += self.value.eq(step.value)
        return m


def refusal(component):
    """With what message `emit` refuses a component; what that leaves unused is collected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        try:
            emit(component, "refused")
            return None
        except ValueError as error:
            return str(error)
        finally:
            del component
            gc.collect()


def test_one_name_for_two_units_is_refused():
    assert refusal(Clash()) == ("Module name step must stand for one unit, but Step differs from "
                                "the unit that has it")
