"""Planned links without overlap at the grain of a vector."""

import numpy as np
import pytest

from compiler.plan import expand
from compiler.verify import verify
from hdl.arch.config import all_to_all, ring
from hdl.arch.presets import DEMO
from sim.bench.network.programs import COMPLETE, SCHEDULED, layer
from sim.emulate import run_emulator
from sim.report.slack import exchanges, products
from tests.compiler.packets.models import small_layer


@pytest.mark.parametrize("system", [
    *(all_to_all(DEMO, 4).restrict(tiles) for tiles in (2, 3, 4)), ring(DEMO, 4)],
    ids=["2", "3", "4", "ring of 4"])
def test_no_vector_leaves_before_its_tensor_is_complete(system):
    model, inputs = small_layer()
    made = {kind: layer(system, kind, model, inputs, positions=30, shards=1, search=False)
            for kind in (SCHEDULED, COMPLETE)}
    early = {kind: sum(product.leaves < product.done for product in
                       products(exchanges(case.program))) for kind, case in made.items()}
    assert early[SCHEDULED] > 0 and early[COMPLETE] == 0
    case = made[COMPLETE]
    verify(system, case.program.binary)
    observed, = run_emulator(system, case.program.binary, garbage=1)
    np.testing.assert_array_equal(observed.events.issues,
                                  expand(case.program.plan, len(inputs))["issues"])
    assert case.agrees(observed)
