"""The builder refuses programs whose order would lose a value."""

import pytest

from compiler.errors import CompileError
from compiler.lower.builder import Builder
from compiler.lower.chain import At, Chain, Entry
from hdl.arch.config import single
from hdl.arch.presets import DEMO

X, Y = (At(("mem0", "mem1", "mem2", "mem3"), word) for word in (0, 1))


def _keep(builder, name, entry=1):
    chain = Chain(DEMO, name, 0)
    chain.alu("PASS", chain.read(X), on=0, keep=entry)
    builder.add(chain.cluster())


def _use(builder, entry=1):
    chain = Chain(DEMO, "use", 0)
    chain.write(chain.alu("MUL", chain.read(X), Entry(entry), on=0), Y)
    builder.add(chain.cluster())


def test_an_entry_that_nobody_has_read_is_not_kept_over():
    builder = Builder(single(DEMO))
    _keep(builder, "first")
    _keep(builder, "other entry", entry=2)
    with pytest.raises(CompileError, match="second: entry 1 of tile 0 alu0 holds what first kept"):
        _keep(builder, "second")


def test_an_entry_is_free_once_it_has_been_read():
    builder = Builder(single(DEMO))
    for _ in range(2):
        _keep(builder, "keep")
        _use(builder)
        _use(builder)
    # the second keep waits for both readers of the first
    assert sum(edge.target.cluster.name == "keep" and edge.source.cluster.name == "use"
               for edge in builder.edges) == 2


def test_more_sums_at_once_than_accumulators_are_refused():
    builder = Builder(single(DEMO))
    for _ in range(DEMO.accumulators):
        builder.accumulator(0, "mxm0")
    builder.accumulator(0, "mxm1")
    builder.check_accumulators()
    assert [builder.accumulator(0, "mxm0") for _ in range(3)] == [32, 33, 34]
    assert builder.accumulator(0, "mxm1") == 1
    with pytest.raises(CompileError, match="Tile 0 mxm0 needs 35 accumulators at once, it has 32: "
                                           "raise TileConfig.accumulators, or use more tiles"):
        builder.check_accumulators()
