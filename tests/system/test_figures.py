"""What the project publishes, at full size: each command reaches its bars."""

import pytest

from sim.cli import main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["bound", "configs", "mutation", "hops", "collectives", "speedup",
                                  "context", "batch"])
def test_a_bench_reaches_its_bars(name):
    assert main(["bench", name]) == 0


def test_a_prompt_through_a_layer_reaches_its_bar():
    assert main(["bench", "prefill", "--tiles", "2", "--lanes", "32", "--batches", "8"]) == 0


def test_text_is_the_same_on_every_tile_count_and_from_every_initial_state():
    assert main(["check", "--tiles", "1,2,4", "--tokens", "64", "--seeds", "3"]) == 0
