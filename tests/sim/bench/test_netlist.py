import re

import numpy as np
import pytest

from hdl.arch.config import pair
from hdl.arch.presets import NANO
from sim.bench.netlist import MODES, _places, flat_tile, mutate

#: A tile as Yosys writes it: a sum, a multiplexer and a register in two units.
TILE = """autoidx 9
module \\tile
  wire width 4 input 1 \\a
  wire input 2 \\clk
  wire width 4 output 3 \\y
  wire width 4 \\mem0.sum
  wire width 4 \\mem0.held

  cell $add $flatten\\mem0.$1
    parameter \\A_SIGNED 0
    parameter \\A_WIDTH 4
    parameter \\B_SIGNED 0
    parameter \\B_WIDTH 3
    parameter \\Y_WIDTH 4
    connect \\A \\a
    connect \\B 3'101
    connect \\Y \\mem0.sum
  end

  cell $mux $flatten\\sxm0.$2
    parameter \\WIDTH 4
    connect \\A { \\a [1:0] \\mem0.sum [3:2] }
    connect \\B \\mem0.held
    connect \\S \\a [3]
    connect \\Y \\y
  end

  cell $dff $flatten\\mem0.$3
    parameter \\CLK_POLARITY 1'1
    parameter \\WIDTH 4
    connect \\CLK \\clk
    connect \\D \\mem0.sum
    connect \\Q \\mem0.held
  end
end
"""
#: Bits that can be changed: 4 + 3, 4 + 4 + 1, 4.
PLACES = 6


@pytest.fixture
def mutated(rng):
    return mutate(TILE, rng, PLACES)


def test_every_mutation_has_a_place_of_its_own(mutated):
    _, mutations = mutated
    assert [one.number for one in mutations] == list(range(1, PLACES + 1))
    assert len({(one.cell, one.port) for one in mutations}) == PLACES
    assert {one.unit for one in mutations} == {"mem0", "sxm0"}
    widths = {"$add $flatten\\mem0.$1": {"A": 4, "B": 3}, "$dff $flatten\\mem0.$3": {"D": 4},
              "$mux $flatten\\sxm0.$2": {"A": 4, "B": 4, "S": 1}}
    for one in mutations:
        assert 0 <= one.bit < widths[one.cell][one.port]
        assert one.mode in MODES


def connection(text, cell, port):
    """What a port of a cell is connected to."""
    body = text.partition(f"cell {cell}\n")[2].partition("\n  end\n")[0]
    return re.search(rf"^    connect \\{port} (.*)$", body, re.M)[1]


def test_every_mutation_sits_where_it_says(mutated):
    text, mutations = mutated
    for one in mutations:
        signal = connection(text, one.cell, one.port)
        assert re.findall(r"\$mutation_(\d+)_bit", signal) == [str(one.number)]
        # The bit has as many others above it as before.
        above = signal.partition(f"$mutation_{one.number}_bit")[0]
        assert above.endswith(f":{one.bit + 1}] ") or not above.strip(" {")
        old = connection(TILE, one.cell, one.port)
        assert f"  connect $mutation_{one.number}_in {old}\n" in text


def test_nothing_else_is_changed(mutated):
    text, mutations = mutated
    for one in mutations:
        text = text.replace(connection(text, one.cell, one.port),
                            connection(TILE, one.cell, one.port))
    begin = "  wire width 4 input 1"
    body = text[text.index(begin):text.index("  connect $mutation_1_in")]
    assert body.rstrip() + "\nend\n" == TILE[TILE.index(begin):]


def test_selector_is_a_new_input(mutated):
    text, _ = mutated
    assert "  wire width 3 input 4 \\mutant\n" in text
    compared = [connection(text, f"$eq $mutation_{number}_on_cell", "B") for number in range(1, 7)]
    assert compared == [f"3'{number:03b}" for number in range(1, 7)]


def test_every_width_is_that_of_the_connection(rng):
    rtlil = flat_tile(pair(NANO))
    for places in _places(rtlil).values():
        for index in rng.choice(len(places), min(40, len(places)), replace=False):
            begin, end, _, _, width = places[index]
            assert signal_width(rtlil, rtlil[begin:end]) == width


def signal_width(rtlil, signal):
    """Bits of a connection in RTLIL."""
    total = 0
    for part, high, low in re.findall(r"([^\s{}\[\]]+)(?: \[(\d+)(?::(\d+))?\])?", signal):
        if high:
            total += int(high) - int(low or high) + 1
        elif constant := re.match(r"(\d+)'", part):
            total += int(constant[1])
        elif part.isdigit():
            total += 32
        else:
            wire = re.search(rf"^  wire (?:width (\d+) )?.* ?{re.escape(part)}$", rtlil, re.M)
            total += int(wire[1] or 1)
    return total


def test_mutations_are_reproducible():
    made = [mutate(TILE, np.random.default_rng(seed), 3)[1] for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_text_of_something_else_is_refused(rng):
    with pytest.raises(ValueError, match="the tile and nothing else"):
        mutate(TILE + "module \\other\nend\n", rng, 1)
