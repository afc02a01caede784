"""Host commands of a binary, executed by a model of a tile that knows the command layout only."""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch import isa
from hdl.arch.binary import BinaryError, SystemBinary, TileBinary
from hdl.arch.config import pair, single
from hdl.arch.encoding import EncodingError, decode, encode
from hdl.arch.presets import DEMO, FPGA, NANO
from hdl.arch.queues import queues
from sim.image import garbage, initial_sram
from sim.rtl.loader import Loader
from tests.sim.rtl.tile_model import TileModel

CONFIGS = [NANO, replace(FPGA, mem_words=300, ports=NANO.ports),
           replace(DEMO, mem_words=130, icu_words=200)]


def random_tile(rng, cfg):
    """A binary with words in some queues, tables, and runs of SRAM contents."""
    tile = TileBinary()
    for queue in queues(cfg)[::2]:
        bits = isa.word_bits(cfg, queue.kind)
        count = int(rng.integers(1, 6)) if queue.unit else cfg.icu_words
        tile.words[queue.name] = [int.from_bytes(rng.bytes(-(-bits // 8)), "little")
                                  & (1 << bits) - 1 for _ in range(count)]
        step = isa.table_layout(cfg, queue.kind)["step"].width
        tile.tables[queue.name] = [(0, 0, 0)] + [
            (int(rng.integers(32)), int(rng.integers(1 << isa.COUNTER_BITS)),
             int(rng.integers(-(1 << step - 1), 1 << step - 1))) for _ in range(rng.integers(8))]
    for name in cfg.slices("mem")[1:3]:
        tile.sram[name] = {3: rng.bytes(5 * cfg.lanes), cfg.mem_words - 2: rng.bytes(2 * cfg.lanes)}
    return tile


@pytest.fixture(params=CONFIGS, ids=["nano", "fpga", "demo"])
def loaded(request, rng):
    """System, binary, SRAM contents, and the model of each tile behind loading."""
    system = pair(request.param)
    binary = SystemBinary([random_tile(rng, system.tile), TileBinary()])
    sram = initial_sram(system, binary, 5)
    loader = Loader(system, binary, sram)
    models = [TileModel(system.tile), TileModel(system.tile)]
    for batch in (loader.load_sram(), loader.load_program()):
        for model, commands in zip(models, batch, strict=True):
            model.play(commands)
    return system.tile, binary, sram, loader, models


def test_every_sram_word_is_written_and_read_back(loaded):
    cfg, binary, sram, loader, models = loaded
    for tile, model in enumerate(models):
        slices = len(cfg.slices("mem"))
        assert len(model.sram) == slices * cfg.mem_words
        for unit in range(slices):
            for address in (0, 2, 3, 7, 8, cfg.mem_words - 3, cfg.mem_words - 1):
                assert model.sram[unit, address] == sram[tile][unit, address].tobytes()
    rows = [np.frombuffer(b"".join(model.play(batch)), np.uint8).reshape(cfg.mem_words, -1)
            for model, batch in zip(models, loader.read_sram(), strict=True)]
    for expected, observed in zip(sram, loader.rows_to_sram(rows), strict=True):
        np.testing.assert_array_equal(observed, expected)


def test_images_lie_over_garbage(loaded):
    cfg, binary, sram, _, _ = loaded
    name = cfg.slices("mem")[1]
    run = binary.tiles[0].sram[name][3]
    assert sram[0][1, 3:8].tobytes() == run
    np.testing.assert_array_equal(sram[0][1, :3], garbage(5, 0, 1, cfg.mem_words, cfg.lanes)[:3])
    np.testing.assert_array_equal(sram[1][1], garbage(5, 1, 1, cfg.mem_words, cfg.lanes))


def test_words_of_every_queue(loaded):
    cfg, binary, _, _, models = loaded
    for tile, model in zip(binary.tiles, models, strict=True):
        for queue in queues(cfg):
            given = tile.words.get(queue.name, [encode(cfg, queue.kind, "HALT")])
            found = [model.words[queue.name, i] for i in range(len(given))]
            assert found == given
            # Behind them: a word that no queue has, or nothing where the memory is full.
            behind = [address for name, address in model.words
                      if name == queue.name and address >= len(given)]
            assert behind == [len(given)][:cfg.icu_words - len(given)]
            for address in behind:
                with pytest.raises(EncodingError, match="has no opcode"):
                    decode(cfg, queue.kind, model.words[queue.name, address])


def test_tables_are_written_whole(loaded):
    cfg, binary, _, _, models = loaded
    for tile, model in zip(binary.tiles, models, strict=True):
        for queue in queues(cfg):
            given = tile.tables.get(queue.name, [])
            given = [*given, *[(0, 0, 0)] * (8 - len(given))]
            assert [model.tables[queue.name, i] for i in range(8)] == given


def test_start_and_clear(loaded):
    *_, loader, models = loaded
    for batch in (loader.start([100, 0xFFFFFFFF], 7, 3), loader.clear()):
        for model, commands in zip(models, batch, strict=True):
            model.play(commands)
    assert [model.starts for model in models] == [[(100, 7, 3)], [(0xFFFFFFFF, 7, 3)]]
    assert [model.clears for model in models] == [1, 1]


@pytest.mark.parametrize(("arguments", "message"), [
    (([1 << 32], 0, 1), "START.time must be in 0..4294967295, not 4294967296"),
    (([-1], 0, 1), "START.time must be in"),
    (([5], 1 << 20, 1), "START.first_step must be in 0..1048575"),
    (([5], 0, 1 << 20), "START.steps must be in"),
])
def test_start_out_of_range_is_refused(arguments, message):
    binary = SystemBinary([TileBinary()])
    loader = Loader(single(NANO), binary, initial_sram(single(NANO), binary, 1))
    with pytest.raises(ValueError, match=message):
        loader.start(*arguments)


def test_binary_that_does_not_fit_is_refused():
    with pytest.raises(BinaryError, match="needs 2 tiles, the machine has 1"):
        initial_sram(single(NANO), SystemBinary([TileBinary(), TileBinary()]), 1)
    with pytest.raises(BinaryError, match="needs 2 tiles, the machine has 1"):
        Loader(single(NANO), SystemBinary([TileBinary(), TileBinary()]), [])


def test_garbage_depends_on_seed_tile_and_slice_alone():
    base = garbage(1, 0, 0, 64, 4)
    np.testing.assert_array_equal(garbage(1, 0, 0, 64, 4), base)
    np.testing.assert_array_equal(garbage(1, 0, 0, 32, 4), base[:32])
    for other in ((2, 0, 0), (1, 1, 0), (1, 0, 1)):
        assert (garbage(*other, 64, 4) != base).mean() > 0.9
    counts = np.bincount(garbage(1, 0, 0, 4096, 16).ravel(), minlength=256)
    assert counts.min() > 150       # 256 expected of each value
