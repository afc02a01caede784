"""``oncycle verilog``: the Verilog of a system, one file for each unit."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hdl.arch.config import all_to_all, single
from hdl.arch.presets import preset
from hdl.system import TOP, system_verilog
from sim.build.model import BUILD_ROOT
from sim.commands.options import add_preset, positive
from sim.errors import UsageError

__all__ = ["HELP", "add_arguments", "run"]

HELP = "write the Verilog of a system of tiles"


def add_arguments(parser):
    """See `sim.cli`."""
    add_preset(parser)
    parser.add_argument("--tiles", type=positive, default=1,
                        help="tiles, each linked with every other (default: %(default)s)")
    parser.add_argument("--trace", action="store_true", help="with the trace ports")
    parser.add_argument("--output", type=Path, help="directory (default: build/verilog/...)")


def run(options):
    """See `sim.cli`."""
    cfg = preset(options.preset)
    if options.tiles > len(cfg.ports) + 1:
        raise UsageError(f"A tile of {options.preset} has {len(cfg.ports)} link ports: at most "
                         f"{len(cfg.ports) + 1} tiles can be linked with each other, not "
                         f"{options.tiles}")
    system = all_to_all(cfg, options.tiles) if options.tiles > 1 else single(cfg)
    output = options.output or BUILD_ROOT / "verilog" / f"{options.preset}-{options.tiles}"
    try:
        output.mkdir(parents=True, exist_ok=True)
        sources = system_verilog(system, trace=options.trace, simulation=False)
        _write(output, sources)
    except OSError as error:
        raise UsageError(f"{output} cannot be written ({error.strerror}): name another directory "
                         "with --output") from None
    lines = sum(text.count("\n") for text in sources.values())
    print(f"{output}: {len(sources)} files, {lines:,} lines, top module {TOP}")
    return 0


def _write(output, sources):
    """Put a file for each unit into ``output``: all of them or, when it fails, none."""
    with TemporaryDirectory(dir=output, prefix=".new-") as place:
        for unit, text in sources.items():
            (Path(place) / f"{unit}.v").write_text(text)
        for unit in sources:
            (Path(place) / f"{unit}.v").replace(output / f"{unit}.v")
