"""Several turns on one loaded machine: what the host writes before each, and how it is run."""

from dataclasses import dataclass

from compiler.program import Program
from sim.compiling import machine, model_program, quantised
from sim.decoding import batch_of, first_tokens, host_tokens, open_model, prompt_words
from sim.errors import UsageError
from sim.moving import differing_words, held_words, instruction_bytes
from sim.prefill import cache_words, host_caches, made_of

__all__ = ["PREFILL", "Session", "Turn", "open_session", "rooms"]

#: Who computes K and V of a prompt: the tiles, step by step, or the host.
PREFILL = ("tiles", "host")


@dataclass(frozen=True)
class Turn:
    """What one turn asks of the machine.

    Parameters
    ----------
    program : Program
    reload : bool
        Whether its words and tables must be loaded first, in place of those of another one.
    first_step, steps : int
    patches : list of (int, str, int, bytes)
        SRAM words that the host writes before the run: tile, slice, address, contents.
    written : dict of str to int
        Bytes that the host writes, by what they are.
    agreed : bool
        Whether the K and V that the host moves are those that the tiles held.
    """

    program: Program
    reload: bool
    first_step: int
    steps: int
    patches: list
    written: dict
    agreed: bool = True

    @property
    def words(self):
        """SRAM words that the host writes, on the tile that gets most of them."""
        lanes, found = self.program.system.tile.lanes, {}
        for tile, _, _, content in self.patches:
            found[tile] = found.get(tile, 0) + len(content) // lanes
        return max(found.values(), default=0)


class Session:
    """A text that grows by turns: a prompt, and the tokens that the machine puts behind it.

    `ask` and `answer` take turns.  K and V of all positions but the last stay in SRAM.

    Parameters
    ----------
    programs : list of Program
        By turn; those that follow have as much room or more.
    prompts : list of list of int
        By turn, none of them empty.
    tokens : int
        New tokens behind every prompt.
    prefill : str
        One of `PREFILL`.
    model : QuantisedModel, optional
        For the host's K and V; not needed where it computes none.

    Attributes
    ----------
    text : list of int
        Tokens so far.
    """

    def __init__(self, programs, prompts, tokens, prefill="tiles", model=None):
        self.text = []
        self._programs = programs
        self._prompts = prompts
        self._tokens = tokens
        self._prefill = prefill
        self._model = model
        self._number = 0
        self._sram = None

    @property
    def left(self):
        """Turns that have not been asked."""
        return len(self._prompts) - self._number

    def ask(self):
        """The next `Turn`."""
        program, prompt = self._programs[self._number], self._prompts[self._number]
        before = self._programs[max(0, self._number - 1)]
        self._number += 1
        held, begin = max(0, len(self.text) - 1), len(self.text)
        self.text = self.text + prompt
        moves = program is not before
        first_step, written, agreed = held, {}, True
        if self._prefill == "host":
            first_step = begin = len(self.text) - 1
        if moves:
            constants, context = differing_words(before, program)
            written = {"weights and constants": constants, "context": context}
        if moves or first_step > held:
            caches = host_caches(self._model, program.shards, self.text)
            if moves:
                agreed = held_words(program.system.tile, self._sram, cache_words(
                    before, self._model, caches, 0, held))
            written["K and V"] = cache_words(program, self._model, caches,
                                             0 if moves else held, first_step)
        written["tokens"] = prompt_words(program, self.text[begin:], len(self.text) - begin, begin)
        sizes = {"instructions": instruction_bytes(program.system, program.binary)} if moves else {}
        sizes |= {what: sum(len(content) for *_, content in words)
                  for what, words in written.items()}
        return Turn(program, moves, first_step, len(self.text) - first_step + self._tokens - 1,
                    [run for words in written.values() for run in words], sizes, agreed)

    def answer(self, seen):
        """Take what came of the turn, a `sim.events.Observation`; gives its new tokens."""
        tokens = host_tokens(seen.host)[-self._tokens:]
        self.text = self.text + tokens
        self._sram = seen.sram
        return tokens


def open_session(*, prompts, tokens, tiles, directory, context, limit=None, prefill="tiles",
                 system=None, program=None, report=None, calibration=None):
    """Compile what turns need.

    Parameters
    ----------
    prompts : list of str
        By turn.
    tokens : int
        New tokens wanted in every turn.
    limit : int, optional
        Positions up to which the session may move to programs with more room; ``context`` if None.
    prefill : str
        One of `PREFILL`.
    tiles, directory, context, system, program, report, calibration
        As of `sim.decoding.prepare`; ``context`` is what the session begins with.

    Returns
    -------
    (Session, Checkpoint)

    Raises
    ------
    UsageError
        When a turn does not fit, nothing is asked for, or the program is not that of such a model.
    ModelError, CompileError, BinaryError
        When the model, or the program, cannot be used.
    """
    if program is not None and batch_of(program) > 1:
        raise UsageError(f"Turns are of one sequence, the program has {batch_of(program)}: compile "
                         "it without --batch")
    system = system or machine()
    checkpoint, tiles, context = open_model(tokens, tiles, directory, context, system, program)
    texts = [first_tokens(checkpoint, prompts[0]),
             *(_next_tokens(checkpoint, number, prompt)
               for number, prompt in enumerate(prompts[1:], 2))]
    by_turn = rooms(texts, tokens, context, limit or context)
    made, shards = {} if program is None else {context: program}, None
    for room in dict.fromkeys(by_turn):
        if room not in made:
            made[room] = model_program(directory, tiles, room, system, checkpoint, report,
                                       calibration, shards)
        shards = made[room].shards
    model = None
    if prefill == "host" or len(set(by_turn)) > 1:
        model = quantised(checkpoint, directory, system.tile.lanes, calibration)
        if program is not None and not made_of(program, model):
            raise UsageError(f"Program was made of another model than {directory}, or with another "
                             "calibration text: the host's K and V would not be its own")
    return Session([made[room] for room in by_turn], texts, tokens, prefill, model), checkpoint


def _next_tokens(checkpoint, number, prompt):
    """Tokens of a prompt behind others: without the begin token."""
    tokens = checkpoint.tokenizer.encode(prompt)[checkpoint.tokenizer.bos is not None:]
    if not tokens:
        raise UsageError(f"Turn {number} must have at least one token")
    return tokens


def rooms(texts, tokens, context, limit):
    """Positions of the program of each turn: from ``context`` on doubled until the turn fits, up to
    ``limit``.

    Raises
    ------
    UsageError
        When a turn does not fit.
    """
    found, needed = [], -1
    for number, text in enumerate(texts, 1):
        needed += len(text) + tokens
        while context < min(needed, limit):
            context = min(2 * context, limit)
        if context < needed:
            raise UsageError(f"Turn {number} needs {needed} positions, the context has {context}: "
                             "ask for fewer tokens, or raise --context or --context-limit")
        found.append(context)
    return found
