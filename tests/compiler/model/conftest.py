"""What the tests of all formats share."""

import pytest

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
    """Flip one bit after the other in a file; a call after each may only raise ModelError."""

    def run(path, count, load, end=None):
        data = path.read_bytes()
        refused = 0
        for _ in range(count):
            damaged = bytearray(data)
            damaged[rng.integers(len(data) if end is None else end)] ^= 1 << rng.integers(8)
            path.write_bytes(damaged)
            try:
                load()
            except ModelError as error:
                assert str(error).isprintable()
                refused += 1
        path.write_bytes(data)
        load()
        return refused

    return run
