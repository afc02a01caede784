"""What the tests of all formats share."""

import pytest

from compiler.model.checkpoint import load
from compiler.model.config import ModelError


@pytest.fixture
def failure():
    """Call a function that must raise ModelError; its message, which is one line."""

    def call(function, *arguments):
        with pytest.raises(ModelError) as caught:
            function(*arguments)
        message = str(caught.value)
        assert message and message.isprintable()
        return message

    return call


@pytest.fixture
def flip(rng):
    """Flip single bits of a file and load the model each time: a ModelError or a model.

    Takes the file, how many flips, the path of the model, and the end of the part to flip bits in;
    gives how often the model was refused.
    """

    def use(model):
        tokenizer = load(model).tokenizer
        tokenizer.decode(tokenizer.encode("the cat"))

    def run(path, count, model, end=None):
        data = path.read_bytes()
        refused = 0
        for _ in range(count):
            damaged = bytearray(data)
            damaged[rng.integers(len(data) if end is None else end)] ^= 1 << rng.integers(8)
            path.write_bytes(damaged)
            try:
                use(model)
            except ModelError as error:
                assert str(error).isprintable()
                refused += 1
        path.write_bytes(data)
        use(model)
        return refused

    return run
