from dataclasses import replace

import pytest

from compiler.errors import AllocationError
from compiler.lower.layout import Memory
from hdl.arch.config import all_to_all
from hdl.arch.presets import DEMO


def test_what_does_not_fit_is_named_with_the_bytes_it_needs_and_the_bytes_there_are():
    memory = Memory(all_to_all(replace(DEMO, mem_words=64), 2))
    memory.place("first", 1, ("mem0", "mem1"), 24)
    with pytest.raises(AllocationError) as caught:
        memory.place("second", 1, ("mem1", "mem2", "mem3"), 100)
    assert str(caught.value) == (       # 16 bytes a word; the address is the same in all slices
        "second needs 4,800 bytes of SRAM (100 words in each of mem1, mem2, mem3 of tile 1), 1,920 "
        "of 3,072 are free: raise TileConfig.mem_words or use more tiles")
