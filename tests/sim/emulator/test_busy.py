"""Units that are busy in every cycle, on the emulator and on the naive machine."""

from dataclasses import replace

import numpy as np
import pytest

from hdl.arch import isa
from hdl.arch.binary import SystemBinary
from hdl.arch.config import AluConfig, single
from hdl.arch.presets import NANO
from hdl.arch.queues import queues
from tests.sim.emulator.support import tile_binary
from tests.sim.emulator.test_random import compare, random_fields


def busy_mxm(rng, lanes):
    """One tile whose MXM finds a vector on E7 and on W6 in every cycle, with random words."""
    cfg = replace(NANO, lanes=lanes, floorplan=("mem0", "mxm0", "mem1", "vxm", "c2c"),
                  accumulator_bits=24, mem_words=256, icu_words=512)
    weights, acts = [], []
    for _ in range(100):
        weights.append(("LW", {"row": int(rng.integers(lanes)), "columns": int(rng.integers(2)),
                               "source": 7, "wait": int(rng.integers(3))}))
        flags = {name: int(rng.random() < 0.4) for name in ("install", "buffered", "keep", "high")}
        acts.append(("ABC", {"accumulator": int(rng.integers(2)), "source": 6, "source_west": 1,
                             "activation": int(rng.integers(2)), "clear": int(rng.random() < 0.2),
                             "wait": int(rng.integers(2)), **flags}))
        if rng.random() < 0.4:
            acts.append(("ACC", {"accumulator": int(rng.integers(2)), "east_en": 1,
                                 "mode": int(rng.integers(3))}))
    writes = [("WRITE", {"address": i, "source": int(rng.integers(4)), "source_last": 1})
              for i in range(256)]
    every_cycle = ("REPEAT", {"count": 255, "interval": 1, "address_stride": 1})
    return single(cfg), SystemBinary([tile_binary(
        cfg, {"mem0.read": [("READ", {"east_en": 1, "east": 7}), every_cycle],
              "mem1.read": [("READ", {"west_en": 1, "west": 6}), every_cycle],
              "mxm0.weight": [("NOP", {"wait": 1}), *weights],
              "mxm0.act": [("NOP", {"wait": 1}), *acts],
              "mem1.write": [("NOP", {"wait": 9}), *writes]},
        sram={name: {0: rng.bytes(lanes * 256)} for name in ("mem0", "mem1")})])


def busy_vectors(rng, lanes):
    """One tile whose VXM finds fp32 values on E0 .. E3 and integers on E4 in every cycle, and whose
    SXM has what one ALU gives; every unit has a quad of streams for its results."""
    cfg = replace(NANO, lanes=lanes, streams=16, reduce_depth=2, mem_words=256, icu_words=512,
                  floorplan=(*(f"mem{i}" for i in range(5)), "vxm", "sxm0",
                             *(f"mem{i}" for i in range(5, 13)), "c2c"),
                  alus=(AluConfig(features=("add", "mul"), depth=3),
                        AluConfig(features=("add", "special"), depth=2)))
    every_cycle = ("REPEAT", {"count": 255, "interval": 1, "address_stride": 1})
    programs, sram = {}, {}
    special = np.array([0, 1 << 31, 0x7F800000, 0x7FC00000, 1, 0xFF800000, 0x80000001], np.uint32)
    values = (rng.standard_normal((256, lanes)) * 10.0 ** rng.integers(-3, 4, (256, lanes))).astype(
        np.float32).view(np.uint32)
    values = np.where(rng.random(values.shape) < 0.1, rng.choice(special, values.shape), values)
    for i in range(5):
        # all are at the VXM from cycle 9 on
        programs[f"mem{i}.read"] = [("NOP", {"wait": 9 - 1 - (5 - i) - 1}),
                                    ("READ", {"east_en": 1, "east": i}), every_cycle]
        sram[f"mem{i}"] = {0: (values >> 8 * i if i < 4 else values).astype(np.uint8).tobytes()}
    for queue in queues(cfg):
        # targets 8 (both ALUs, in turn), 12 (the SXM), westward 8 (reduction)
        turn = queue.unit if queue.kind == "alu" else 0
        lines = [("NOP", {"wait": 9 + turn})]
        for _ in range(110):
            if queue.kind not in ("alu", "reduce", "sxm"):
                break
            op = str(rng.choice([op.name for op in isa.formats(cfg, queue.kind)]))
            fields = random_fields(rng, cfg, queue.kind, op, 16)
            for name in ("a_source", "b_source"):
                if name in fields:
                    fields[name] = 4 if op == "FROM_INT8" else int(rng.integers(3))
                    fields |= {f"{name}_west": 0, f"{name}_last": 0}
                    if fields[name[0]] == 0 and op != "FROM_INT8":
                        fields[name] = 0
            if queue.kind == "sxm":
                fields |= {"source": 8 + int(rng.integers(4)), "source_west": 0, "source_last": 0}
            if "target" in fields:
                fields |= {"target": 12 if queue.kind == "sxm" else 8, "west_en": 0, "east_en": 1}
            if queue.kind == "reduce":
                fields |= {"west_en": 1, "east_en": 0}
            lines.append((op, {**fields, "wait": 1 if queue.kind == "alu" else 0}))
        if len(lines) > 1:
            programs[queue.name] = lines
    for i in range(13):
        if i < 4:
            stream, west = 8 + i, 1
        elif 5 <= i:
            stream, west = 8 + i - 5, 0
        else:
            continue
        programs[f"mem{i}.write"] = [("NOP", {"wait": 14}), (
            "WRITE", {"source": stream, "source_west": west}), every_cycle]
    return single(cfg), SystemBinary([tile_binary(cfg, programs, sram=sram)], first_step=77)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_busy_mxm_does_what_the_naive_one_does(rng, lanes):
    system, binary = busy_mxm(rng, lanes)
    result = compare(system, binary)
    values = [row["data"].tobytes() for row in result.writes]
    assert len(set(values)) > 20


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_busy_vector_units_do_what_the_naive_ones_do(rng, lanes):
    system, binary = busy_vectors(rng, lanes)
    result = compare(system, binary)
    values = {row["data"].tobytes() for row in result.writes}
    assert len(values) > 150
