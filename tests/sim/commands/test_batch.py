"""Several sequences at once, as a user asks for them."""

import re
from types import SimpleNamespace

import pytest

from compiler import program as program_file
from sim import model_check
from sim.commands.options import prompts_of
from sim.compiling import MAX_BATCH, machine
from tests.sim.commands.models import save_model

ZERO = "; 0 missing, 0 unplanned, 0 off-cycle, 0 wrong"
PROMPTS = ("the cat had", "a", "that bath")
EMULATOR = ("--engine", "emulator", "--context", 16, "--tokens", 3)


@pytest.fixture
def model(tmp_path):
    return save_model(tmp_path / "model")


def given(prompts):
    return [word for prompt in prompts for word in ("--prompt", prompt)]


@pytest.mark.parametrize(("batch", "tiles"), [(2, 1), (3, 3)])
def test_each_sequence_has_the_text_that_it_has_alone(oncycle, model, batch, tiles):
    common = ("run", "--model", model, "--tiles", tiles, *EMULATOR)
    code, output, _ = oncycle(*common, "--batch", batch, *given(PROMPTS[:batch]))
    assert code == 0
    lines = output.splitlines()
    assert lines[-1].endswith(ZERO)
    alone = [oncycle(*common, "--prompt", prompt)[1].splitlines()[:2] for prompt in PROMPTS[:batch]]
    assert len({tokens for _, tokens in alone}) == batch
    for number, (text, tokens) in enumerate(alone):
        assert lines[2 * number:2 * number + 2] == [f"sequence {number}: {text}", tokens]
    cost = re.fullmatch(rf"{batch} sequences of 3 new tokens on {tiles} tiles, ([\d,]+) cycles a "
                        r"step, ([\d,]+) a token, every step alike", lines[2 * batch])
    step, token = (int(number.replace(",", "")) for number in cost.groups())
    assert token == round(step / batch)


def test_one_prompt_is_for_all(oncycle, model):
    common = ("run", "--model", model, "--tiles", 1, *EMULATOR)
    code, output, _ = oncycle(*common, "--batch", 2, "--prompt", "that")
    first, tokens, second, others, *_ = output.splitlines()
    assert code == 0
    assert (first[12:], tokens) == (second[12:], others)


@pytest.mark.parametrize(("batch", "count"), [(None, 1), (1, 1), (3, 3), (MAX_BATCH, 8)])
def test_without_a_prompt_each_sequence_has_another(batch, count):
    prompts = prompts_of(SimpleNamespace(prompt=None, batch=batch))
    assert len(set(prompts)) == len(prompts) == count
    assert prompts[0] == "Then said David"


def test_check_compares_every_sequence_with_the_plain_model(oncycle, model, monkeypatch):
    monkeypatch.setattr(model_check, "_SECOND_PROMPT", "hat")
    arguments = ("check", "--model", model, "--tiles", "1,3", "--batch", 3, *EMULATOR,
                 *given(PROMPTS))
    code, output, _ = oncycle(*arguments)
    assert code == 0
    assert output.count("tokens equal the plain model's, logits equal the plain model's") == 4
    assert output.count("tiles, 3 sequences, seed 1, text ") == 4
    assert output.count(ZERO) == 4
    plain = [line for line in output.splitlines() if line.startswith("plain model: ")]
    begins = (*PROMPTS, "hat", *PROMPTS[:2])
    assert all(line.startswith(f"plain model: {prompt}")
               for line, prompt in zip(plain, begins, strict=True))
    monkeypatch.setattr(model_check, "of_sequence", lambda name, sequence: name)
    code, output, _ = oncycle(*arguments)
    assert code == 1
    assert output.count("tokens equal the plain model's, logits DIFFER from") == 4


def test_a_program_file_has_its_own_batch(oncycle, refusal, model, tmp_path):
    file = tmp_path / "p.npz"
    code, output, _ = oncycle("compile", "--model", model, "--tiles", 2, "--context", 16, "--batch",
                              MAX_BATCH, "-o", file)
    assert code == 0
    program = program_file.load(file)
    assert program.system == machine(MAX_BATCH).restrict(2)
    assert f"{program.plan.cycles(1):,} cycles a step of 8 tokens on 2 tiles" in output
    common = ("run", "--model", model, "--program", file, "--engine", "emulator", "--tokens", 1)
    code, output, _ = oncycle(*common, *given(PROMPTS[:2] * 4))
    assert code == 0
    assert output.count("sequence ") == MAX_BATCH
    assert refusal(*common, "--batch", 2, "--prompt", "a") == \
        "Program is for 8 sequences, not 2: leave --batch out, or compile it for as many"
    assert refusal(*common, "--turn", "a") == \
        "Turns are of one sequence, the program has 8: compile it without --batch"


@pytest.mark.parametrize(("command", "options", "message"), [
    ("run", ("--batch", 9), "argument --batch: must be 1 to 8 sequences, not '9'"),
    ("compile", ("--batch", 0), "argument --batch: must be a whole number of at least 1, not '0'"),
    ("run", ("--batch", 3, *given(PROMPTS[:2])), "There are 2 prompts for 3 sequences: give one "
     "for all, or one for each"),
    ("check", ("--batch", 1, *given(PROMPTS)), "There are 3 prompts for 1 sequences: give one"),
    ("run", given(PROMPTS * 3), "Sequences must be 1 to 8, not 9"),
    ("run", ("--batch", 2, "--turn", "a"), "Turns are of one sequence: leave --batch and further "
     "prompts out, or --turn, --prefill and --context-limit"),
    ("run", ("--prefill", "host", *given(PROMPTS)), "Turns are of one sequence: leave --batch"),
])
def test_what_does_not_go_together_is_refused(refusal, command, options, message):
    engine = ("--engine", "emulator") if command == "run" else ()
    assert message in refusal(command, *engine, *options)
