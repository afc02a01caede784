"""Replays in Verilog what a component was given in Amaranth's simulator."""

import json

from amaranth.hdl import Value
from amaranth.lib.wiring import In

from hdl.emit import emit
from sim.build import build_model, run_cocotb

__all__ = ["Recorder", "differing", "replay", "replay_verilog"]


class Recorder:
    """Values of all ports of a component, cycle by cycle, by their names in Verilog.

    Attributes
    ----------
    inputs, outputs : dict of str to list of int
    widths : dict of str to int
        Bits of each port.
    """

    def __init__(self, component):
        self._ports, self.inputs, self.outputs, self.widths = [], {}, {}, {}
        for path, member, value in component.signature.flatten(component):
            name, values = "__".join(map(str, path)), []
            (self.inputs if member.flow == In else self.outputs)[name] = values
            self.widths[name] = len(Value.cast(value))
            self._ports.append((Value.cast(value), values))

    def sample(self, ctx):
        """Take the values of this cycle; call it once a cycle, when all inputs are set."""
        for port, values in self._ports:
            values.append(ctx.get(port))


def replay(recorder, component, name, directory, seed):
    """Outputs of ``component`` in Verilog for the recorded inputs, as `Recorder.outputs` has them.

    The simulation starts from random contents and a reset.  ``name`` names module and build.
    """
    texts = emit(component, name, simulation=True)
    return replay_verilog(recorder, texts, name, directory, seed)


def replay_verilog(recorder, texts, top, directory, seed, hier_blocks=()):
    """The same of Verilog texts by unit, of which ``top`` is the top module; ``hier_blocks`` are
    compiled once each."""
    model = build_model(f"replay-{top}", {f"{unit}.sv": text for unit, text in texts.items()},
                        top=top, hier_blocks=hier_blocks)
    stimulus = {"inputs": {port: [hex(value) for value in values]
                           for port, values in recorder.inputs.items()},
                "outputs": list(recorder.outputs)}
    (directory / "stimulus.json").write_text(json.dumps(stimulus))
    run_cocotb(model, "tests.support.tb_replay", 1, run_dir=directory, seed=seed)
    found = json.loads((directory / "outputs.json").read_text())
    return {port: [int(value, 16) for value in values] for port, values in found.items()}


def differing(recorder, found):
    """Names of the outputs in which ``found`` differs from what was recorded.

    What has an enable beside it (member ``en``, ``valid``, ``east_en``, ``west_en``) counts only in
    the cycles in which that is set, and of ``data`` only the vectors that ``count_log2`` says.
    """
    names = []
    for name, expected in recorder.outputs.items():
        unit, _, member = name.rpartition("__")
        enables = [f"{unit}__{en}" for en in ("en", "valid", "east_en", "west_en")]
        enables = [recorder.outputs[en] for en in enables if en in recorder.outputs and unit]
        counts = recorder.outputs.get(f"{unit}__count_log2")
        for cycle, (a, b) in enumerate(zip(found[name], expected, strict=True)):
            if member not in ("en", "valid", "east_en", "west_en") and enables and \
                    not any(enable[cycle] for enable in enables):
                continue
            mask = -1
            if member == "data" and counts:
                mask = (1 << (recorder.widths[name] >> 2 - min(2, counts[cycle]))) - 1
            if (a ^ b) & mask:
                names.append(name)
                break
    return names
