"""Llama's published implementation, as recorded, against ours."""

from pathlib import Path

import numpy as np
import pytest

from compiler.model import checkpoint, fp32
from tests.models.record import HEADS, LLAMA_PLACES, LLAMA_TOKENS, llama_of


@pytest.mark.parametrize("head", HEADS)
def test_logits_recorded_from_transformers(tmp_path, head):
    llama_of(tmp_path, HEADS[head])
    with np.load(Path(__file__).with_name("llama.npz")) as recorded:
        expected = recorded[head]
    found = fp32.forward(checkpoint.load(tmp_path).weights, LLAMA_TOKENS)[list(LLAMA_PLACES)]
    assert np.ptp(expected) > 4
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-5)
