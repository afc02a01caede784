"""Programs for two nano tiles, assembled by hand, with plans worked out from the documented timing.

Tile 0 reads words of mem0 and puts them on an eastward stream; its link sends them to tile 1 and
its mem2 writes them.  Tile 1 receives them, and its mem1 writes them, in even steps only.  All of
it in two nested loops with a REPEAT inside.
"""

import numpy as np

from hdl.arch import isa
from hdl.arch.binary import SystemBinary, TileBinary
from hdl.arch.config import pair
from hdl.arch.encoding import crc16, encode
from hdl.arch.presets import NANO
from hdl.arch.queues import queue_index, queues
from hdl.arch.timing import timing
from hdl.arch.trace import ISSUE, arrival_record, write_record
from sim.events import Events

LATENCY = 5
SYSTEM = pair(NANO, latency=LATENCY)
INNER = 3           #: iterations of the inner loop
PERIOD = 9          #: its period
GAP = 2             #: between the issues of a word and of its REPEAT: the flits of a vector
STEP = 2 + INNER * PERIOD - 1   #: period of the step loop: its inner LOOP takes one cycle
#: Table: inner iterations advance by two words, steps by six (modulo 4 steps); entry 3 is the
#: predicate of even steps.
TABLE = [(0, 0, 0), (0, 3, 2), (0, 3, 6), (0, 1, 0)]


def looped(kind, start, op, **fields):
    """Words that issue ``op`` in cycle ``start`` + 2 and again ``GAP`` later, in both loops."""
    strides = {f"{index.name}_stride": 1 for index in isa.KINDS[kind].indices}
    waiting = [encode(NANO, kind, "NOP", wait=start - 1)] if start else []
    return waiting + [
        encode(NANO, kind, "LOOP", count=0),
        encode(NANO, kind, "LOOP", count=INNER),
        encode(NANO, kind, op, wait=GAP - 1, **fields),
        encode(NANO, kind, "REPEAT", count=1, ends=2, wait=PERIOD - GAP - 1, **strides),
        encode(NANO, kind, "HALT")]


def _copy():
    """(tile, queue, start, op, fields) of every queue that does something."""
    hops, t_d = NANO.hops, timing(NANO)
    east = t_d["mem_read", "READ"].t_d
    send = east + hops("mem0", "c2c")
    receive = send + NANO.port(0).flits(NANO.lanes) + LATENCY + 1
    write = receive + t_d["recv", "RECV"].t_d + hops("c2c", "mem1")
    index = {"address": 1, "address_terms": (2, 1)}
    return [
        (0, "mem0.read", 0, "READ", {**index, "east_en": 1, "east": 5}),
        (0, "mem2.write", east + hops("mem0", "mem2"), "WRITE",
         {**index, "address": 20, "source": 5, "source_last": 1}),
        (0, "link0.send", send, "SEND", {"links": 1, "source": 5}),
        (1, "link0.recv", receive, "RECV", {"west_en": 1, "west": 3}),
        (1, "mem1.write", write, "WRITE",
         {**index, "address": 30, "source": 3, "source_west": 1, "source_last": 1, "predicate": 3}),
    ]


def copy_binary(first_step=0, steps=4):
    """The program, with known words in mem0 of tile 0."""
    kinds = {queue.name: queue.kind for queue in queues(NANO)}
    tiles = [TileBinary(), TileBinary()]
    for tile, queue, start, op, fields in _copy():
        tiles[tile].words[queue] = looped(kinds[queue], start, op, **fields)
        tiles[tile].tables[queue] = TABLE
    tiles[0].sram["mem0"] = {0: bytes(range(30 * NANO.lanes))}
    return SystemBinary(tiles, first_step=first_step, steps=steps)


def copy_plan(first_step, steps):
    """Every event of the program, from its timing and not from its words."""
    kinds = {queue.name: queue for queue in queues(NANO)}
    binary = copy_binary()
    issues, writes, arrivals = [], [], []
    for tile, name, start, op, fields in _copy():
        queue = kinds[name]
        word = binary.tiles[tile].words[name][-3]
        crc = crc16(word, isa.word_bytes(NANO, queue.kind))
        for step in range(first_step, first_step + steps):
            for inner in range(INNER):
                for repeat in range(2):
                    cycle = start + 2 + (step - first_step) * STEP + inner * PERIOD + repeat * GAP
                    address = 0
                    if "address" in fields:
                        address = fields["address"] + 2 * inner + 6 * (step & 3) + repeat
                    issues.append((cycle, tile, queue_index(NANO)[name], crc, address))
                    if op == "WRITE" and not (fields.get("predicate") and step % 2):
                        writes.append((cycle + 1, tile, queue.unit, address))
                    if op == "SEND":
                        arrivals.append((cycle + 2 + LATENCY, 1, 0))
    return Events(np.array(issues, ISSUE), np.array(writes, write_record(NANO)[:-1]),
                  np.array(arrivals, arrival_record(NANO)[:-1]))
