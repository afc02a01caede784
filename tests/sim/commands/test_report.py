"""``oncycle report``."""

from tests.sim.commands.models import save_model
from tests.sim.commands.programs import save_copy, save_matvec


def test_a_product(oncycle, rng, tmp_path):
    program = save_matvec(rng, tmp_path / "p.npz")
    code, output, _ = oncycle("report", tmp_path / "p.npz")
    lines = output.splitlines()
    cycles = program.plan.cycles(1)
    assert code == 0
    assert lines[0] == f"2 tiles of 4 lanes, {cycles} cycles a step (of a model: a token)"
    assert "bounds: none in this program" in lines
    rows = {line.split("  ")[0]: line.split() for line in lines if line}
    assert rows["mxm0.act"][1] == "5"           # two limbs of two vectors, and the result
    assert rows["link0 out"][2] == "4"          # two vectors of four bytes, two bytes a cycle
    assert rows["tile 1 link0 to tile 0 link0"][-4:-1] == ["5", "2", "4"]
    assert lines[-1].startswith(f"report: {cycles} cycles a step on 2 tiles; busiest ")
    assert any(" RECV to use" in line or "ready to SEND" in line for line in lines)
    sizes = [int(lines[at].split()[-1].replace(",", "")) for at, line in enumerate(lines)
             if line.startswith("tile ") and " link" not in line]
    whole, = (int(line.split()[2].replace(",", "")) for line in lines if line.startswith("all "))
    assert len(sizes) == 2 and sum(sizes) == whole


def test_loops(oncycle, rng, tmp_path):
    save_copy(rng, tmp_path / "p.npz")
    lines = oncycle("report", tmp_path / "p.npz")[1].splitlines()
    loop, = (line.split() for line in lines if line.startswith("loop"))
    assert loop[3] == "3"                       # runs
    assert int(loop[2]) * 3 == int(loop[4])
    assert loop[6] == str(2 * 2 * 4 * 2)        # tiles, words, slices, READ and WRITE


def test_a_model_with_its_bounds(oncycle, tmp_path):
    model = save_model(tmp_path / "model")
    code, output, _ = oncycle("report", "--model", model, "--tiles", 1, "--context", 16)
    assert code == 0
    lines = output.splitlines()
    assert sum(line.startswith("bounds: ") for line in lines) == 1
    assert sum(line.startswith("region ") for line in lines) == 4
    assert lines[-1].startswith("report: ")
    assert " on 1 tiles; busiest " in lines[-1]
