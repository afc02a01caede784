"""Wires that a ``waves`` build adds to its top, for the reader of the waves.

``issue.<queue>``
    the instruction word while it issues, otherwise 0, which is no word that issues;
``at_<slice>.east<s>``, ``at_<slice>.west<s>``
    the vector that arrives on stream ``s`` at the position of the slice, 0 without one.
"""

from hdl.arch import isa
from hdl.arch.queues import queues

__all__ = ["probes_verilog", "queue_signal", "stream_signals"]


def queue_signal(queue):
    """Path of the wire of a queue, by the name of the queue."""
    return f"issue.{queue.replace('.', '_')}"


def stream_signals(cfg, name):
    """Path of the wire of every stream that can arrive at slice ``name``: path to (direction,
    stream)."""
    position = cfg.position(name)
    arriving = {"east": position > 0, "west": position < len(cfg.floorplan) - 1}
    return {f"at_{name}.{direction}{stream}": (direction, stream)
            for direction, any_ in arriving.items() if any_ for stream in range(cfg.streams)}


def _block(wires):
    """A named block; ``wires`` are (path, width, expression) of one scope."""
    lines = [f"  if (1) begin : {wires[0][0].partition('.')[0]}"]
    for path, width, value in wires:
        name = path.partition(".")[2]
        lines.append(f"    wire [{width - 1}:0] {name} = {value};")
    return [*lines, "  end"]


def probes_verilog(cfg, tile):
    """Verilog of the wires, for the top module; ``tile`` is the path of the visible tile."""
    wires = []
    for queue in queues(cfg):
        icu = f"{tile}.icu_{queue.name.replace('.', '_')}"
        width = isa.word_bits(cfg, queue.kind)
        wires.append((queue_signal(queue.name), width,
                      f"{icu}.issue__valid ? {icu}.issue__word : {width}'d0"))
    lines = _block(wires)
    width = 8 * cfg.lanes
    for name in cfg.floorplan:
        wires = []
        for path, (direction, stream) in stream_signals(cfg, name).items():
            streams = f"{tile}.stream_{name}.in_{direction}"
            wires.append((path, width, f"{streams}__valid[{stream}] ? "
                                       f"{streams}__data[{width * stream} +: {width}] : "
                                       f"{width}'d0"))
        lines += _block(wires)
    return "\n".join(lines)
