"""What the tests of bridges run: a nano tile behind a line, a product, and an echo by hand."""

from dataclasses import replace

import numpy as np

from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import single
from hdl.arch.encoding import encode
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from hdl.arch.timing import timing
from sim.products import compile_product

CFG = replace(NANO, mem_words=32, icu_words=32)
SYSTEM = single(CFG)
DIVISOR = 4
BUFFER = 256
SIZE = 8        #: of the product
ECHOED = 3      #: vectors


def product(seed):
    """A program and the vector that it computes."""
    return compile_product(SYSTEM, SIZE, SIZE, np.random.default_rng(seed))


def echo():
    """Takes `ECHOED` vectors from the host, sends each back, and writes it into mem2."""
    write = timing(CFG)["recv", "RECV"].t_d + CFG.hops("c2c", "mem2")
    done = {
        "host.recv": (0, "RECV", {"east_en": 1, "east": 2, "links": 1 << len(CFG.ports)}, {}),
        "mem2.write": (write, "WRITE", {"address": 5, "source": 2, "source_last": 1},
                       {"address_stride": 1}),
    }
    kinds = {queue.name: queue.kind for queue in queues(CFG)}
    flits = CFG.host.flits(CFG.lanes)
    tile = TileBinary()
    for name, (start, op, fields, strides) in done.items():
        kind = kinds[name]
        tile.words[name] = [
            *([encode(CFG, kind, "NOP", wait=start - 1)] if start else []),
            encode(CFG, kind, op, wait=flits - 1, **fields),
            encode(CFG, kind, "REPEAT", count=ECHOED - 1, interval=flits, **strides),
            encode(CFG, kind, "HALT")]
    return SystemBinary([tile])
