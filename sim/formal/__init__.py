"""Proofs about the hardware: two copies whose data differ, and hardware beside a specification.

`sim.formal.proofs` lists them, `sim.formal.bench` is what they are written with, and
`sim.formal.solver` decides them.
"""
