"""The proofs of `make formal`: some in every run of the tests, all in the slow ones."""

import pytest

from hdl.arch import isa
from hdl.arch.presets import NANO
from sim.cli import main
from sim.formal.proofs import BOUNDED, PROOFS
from sim.formal.queues import DEPTH, LONGEST
from sim.formal.run import decide

#: Those that take a few seconds, of every kind.
QUICK = ("mem-data", "link-transmit", "link-receive", "stream-data-mem3")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PROOFS])
def test_proof_holds_and_refutes_its_broken_variants(name, tmp_path):
    found = decide(PROOFS[name], tmp_path)
    assert found.trouble == []
    assert found.covers > 0
    assert found.broken[0] == found.broken[1] > 0


def test_every_queue_kind_and_slice_is_there():
    assert {f"icu-{what}-{kind}" for what in ("data", "spec") for kind in isa.KINDS} <= set(PROOFS)
    kinds = {name.split("-")[2].rstrip("0123456789") for name in PROOFS if "stream-kept" in name}
    assert kinds == {name.rstrip("0123456789") for name in NANO.floorplan}


def test_bounded_proofs_last_for_two_of_the_longest_instruction():
    bounded = [proof for proof in PROOFS.values() if proof.method == BOUNDED]
    assert [proof.depth for proof in bounded] == [DEPTH]
    assert DEPTH >= 2 * LONGEST


def test_list_shows_every_proof(capsys):
    assert main(["formal", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(PROOFS)


def test_unknown_proof_ends_in_one_line(capsys):
    assert main(["formal", "nonsense"]) == 2
    assert capsys.readouterr().err == (
        "oncycle formal: No proof is named nonsense: oncycle formal --list shows all\n")
