"""Named configurations."""

from .config import AluConfig, PortConfig, TileConfig

__all__ = ["NANO", "DEMO", "FPGA", "FULL", "PRESETS", "preset"]

#: 4 lanes: hello, unit tests, formal proofs, netlist mutation.
NANO = TileConfig(
    lanes=4, streams=8, mem_words=64, accumulators=4, activations=4, icu_words=64, loop_levels=3,
    floorplan=("mxm0", "sxm0", "mem0", "mem1", "vxm", "c2c", "mem2", "mem3"),
    alus=(AluConfig(), AluConfig(features=("add", "mul", "special"))),
    ports=(PortConfig(bytes=2, fifo=4),), host=PortConfig(bytes=2, fifo=4))

#: 16 lanes: `make sim` and the regressions.
DEMO = TileConfig()

#: 4 lanes with unequal ALUs and no links but the host's: board bring-up on an ECP5 of 84,000 LUTs.
#: With `AluConfig.depth` and ``reduce_depth`` above 6 the operands have a cycle for themselves.
FPGA = TileConfig(
    lanes=4, streams=8, mem_words=2048, accumulators=32, activations=32, icu_words=2048,
    loop_levels=2,
    floorplan=("mxm0", "sxm0", "mem0", "mem1", "mem2", "mem3", "vxm", "c2c",
               "mem4", "mem5", "mem6", "mem7"),
    alus=tuple(AluConfig(features=features, depth=7)
               for features in (("mul",), ("add",), ("mul", "special"))),
    reduce_depth=7,
    ports=(), host=PortConfig(bytes=2, fifo=8))

#: 320 lanes, 20 superlanes: as wide as the real ones, with short memories so that it can be built
#: and simulated.
FULL = TileConfig(lanes=320, mem_words=256, icu_words=128, ports=(PortConfig(bytes=16),) * 3,
                  host=PortConfig(bytes=16))

PRESETS = {"nano": NANO, "demo": DEMO, "fpga": FPGA, "full": FULL}


def preset(name):
    """Look a preset up; raises ValueError naming the ones that exist."""
    if name not in PRESETS:
        raise ValueError(f"Preset must be one of {', '.join(PRESETS)}, not {name!r}")
    return PRESETS[name]
