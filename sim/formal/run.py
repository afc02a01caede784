"""Running proofs: the unit itself, what must be reachable, and its broken variants."""

import time
from typing import NamedTuple

from sim.formal.bench import Bench
from sim.formal.proofs import INDUCTION
from sim.formal.solver import cover, prepare, prove

__all__ = ["Result", "decide"]


class Result(NamedTuple):
    """What came of a proof.

    ``covers``: how many there are; ``broken``: broken variants refuted, of how many; ``seconds``:
    of everything.  ``trouble`` is empty where all is as it must be, else has a line for each thing
    that is not.
    """
    name: str
    method: str
    depth: int
    covers: int
    broken: tuple
    seconds: float
    trouble: list

    @property
    def verdict(self):
        return "FAILED" if self.trouble else "proved"


def _problem(proof, directory, mutation=None):
    bench = Bench()
    proof.build(bench, mutation=mutation)
    return prepare(bench, directory)


def decide(proof, root):
    """Prove ``proof`` and refute its broken variants.

    Parameters
    ----------
    proof : Proof
    root : Path
        Directory for a directory of the proof's name: what the solver gets, and counterexamples.

    Returns
    -------
    Result
    """
    start, trouble, found = time.monotonic(), [], 0
    problem = _problem(proof, root / proof.name)
    answer = prove(problem, proof.depth, induction=proof.method == INDUCTION)
    if not answer.holds:
        trouble.append(f"{answer.hint}: {answer.trace}")
    if not problem.covers:
        trouble.append("nothing is covered: the bench may be empty")
    else:
        reached = cover(problem, proof.reach)
        if not reached.holds:
            trouble.append(reached.hint)
    for number, mutation in enumerate(proof.broken, 1):
        broken = _problem(proof, root / f"{proof.name}-broken-{number}", mutation)
        if prove(broken, proof.depth, induction=proof.method == INDUCTION).holds:
            trouble.append(f"broken variant {number} passes: the proof does not see it")
        else:
            found += 1
    return Result(proof.name, proof.method, proof.depth, len(problem.covers),
                  (found, len(proof.broken)), time.monotonic() - start, trouble)
