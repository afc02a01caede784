"""The independent verifier: reads the finished binary and re-derives that it is legal.

It shares no code with the scheduler or the assembler; what it knows is the machine.  `verify` works
on affine sets, `verify_expanded` on every single issue; `verify_both` demands equal verdicts.  Both
decide the same, exactly, and name the same first fault:

- words: what the ICU refuses, table entries, streams, links that are not there;
- streams, link wires and FIFOs, RESULT operands, the SRAM ports: every cycle;
- SRAM words: each READ is behind the first WRITE of its word, or the word was loaded, and is never
  in the cycle of a WRITE of it; every address is in its slice, unless a predicate suppresses the
  WRITE;
- weights are complete when installed, sums begun and complete when read, accumulators and
  activations there.

What depends on data is beyond both: the word that a GATHER reads, and whether a value is the one
that was meant.  Of an ALU entry, a lane map and an activation they know that something was kept
before, not what.
"""

from .affine import verify
from .both import VerdictsDiffer, verify_both
from .expand import events
from .expanded import verify_expanded

__all__ = ["VerdictsDiffer", "events", "verify", "verify_both", "verify_expanded"]
