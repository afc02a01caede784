"""Replays in Verilog what a component was given in Amaranth's simulator."""

import json

from amaranth.hdl import Value
from amaranth.lib.wiring import In

from hdl.emit import emit
from sim.build import build_model, run_cocotb

__all__ = ["Recorder", "replay"]


class Recorder:
    """Values of all ports of a component, cycle by cycle, by their names in Verilog.

    Attributes
    ----------
    inputs, outputs : dict of str to list of int
    """

    def __init__(self, component):
        self._ports, self.inputs, self.outputs = [], {}, {}
        for path, member, value in component.signature.flatten(component):
            values = []
            (self.inputs if member.flow == In else self.outputs)["__".join(map(str, path))] = values
            self._ports.append((Value.cast(value), values))

    def sample(self, ctx):
        """Take the values of this cycle; call it once a cycle, when all inputs are set."""
        for port, values in self._ports:
            values.append(ctx.get(port))


def replay(recorder, component, name, directory, seed):
    """Outputs of ``component`` in Verilog for the recorded inputs, in the form of `Recorder.outputs`.

    The simulation starts from random contents and a reset.  ``name`` names module and build.
    """
    texts = emit(component, name, simulation=True)
    model = build_model(f"replay-{name}", {f"{unit}.sv": text for unit, text in texts.items()},
                        top=name)
    stimulus = {"inputs": {port: [hex(value) for value in values]
                           for port, values in recorder.inputs.items()},
                "outputs": list(recorder.outputs)}
    (directory / "stimulus.json").write_text(json.dumps(stimulus))
    run_cocotb(model, "tests.support.tb_replay", 1, run_dir=directory, seed=seed)
    found = json.loads((directory / "outputs.json").read_text())
    return {port: [int(value, 16) for value in values] for port, values in found.items()}
