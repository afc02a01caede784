"""``oncycle disasm``: text that assembles to the same words."""

import pytest

from hdl.arch import isa
from hdl.arch.presets import DEMO, FPGA, NANO
from hdl.arch.queues import queues
from sim.cli import main
from sim.commands.disasm import assemble, disassemble
from tests.sim.commands.programs import save_copy, save_matvec


@pytest.mark.parametrize("make", [save_matvec, save_copy])
def test_printed_program_assembles_to_the_same_words(rng, tmp_path, capsys, make):
    program = make(rng, tmp_path / "p.npz")
    assert main(["disasm", str(tmp_path / "p.npz")]) == 0
    kinds = {queue.name: queue.kind for queue in queues(NANO)}
    words, place = {}, None
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("# tile "):
            _, _, tile, queue = line.split()
            place = int(tile), queue
            words[place] = []
        elif not line.startswith("#"):
            words[place] += assemble(NANO, kinds[place[1]], [line])
    assert words == {(number, name): queue for number, tile in enumerate(program.binary.tiles)
                     for name, queue in tile.words.items()}


@pytest.mark.parametrize("cfg", [NANO, FPGA, DEMO])
def test_any_word_survives(rng, cfg):
    for kind in isa.KINDS:
        bits = isa.word_bits(cfg, kind)
        words = [int.from_bytes(rng.bytes(-(-bits // 8)), "little") & (1 << bits) - 1
                 for _ in range(200)]
        words += [word & ~31 | code for word in words[:40] for code in range(6)]
        assert assemble(cfg, kind, disassemble(cfg, kind, words)) == words


def test_one_queue_of_one_tile(rng, tmp_path, capsys):
    save_copy(rng, tmp_path / "p.npz")
    assert main(["disasm", str(tmp_path / "p.npz"), "--tile", "1", "--queue", "mem0.read"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("# tile")] == ["# tile 1 mem0.read"]
    assert lines[-1] == "halt"


@pytest.mark.parametrize(("arguments", "message"), [
    (["--tile", "2"], "oncycle disasm: Tile must be in 0..1, not 2\n"),
    (["--queue", "mem9.read"], "oncycle disasm: Queue must be one of mem0.read, "),
])
def test_what_does_not_exist_is_named(rng, tmp_path, capsys, arguments, message):
    save_copy(rng, tmp_path / "p.npz")
    assert main(["disasm", str(tmp_path / "p.npz"), *arguments]) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith(message)
    assert errors.count("\n") == 1
