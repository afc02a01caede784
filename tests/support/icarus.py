"""Replays inputs in Icarus Verilog: four-state, so what nobody gave a value shows as unknown."""

import shutil
import subprocess
from typing import NamedTuple

__all__ = ["Bits", "replay_four_state"]

#: Two cycles of reset, as `tests.support.tb_replay` has them, then the inputs of a file.
_TESTBENCH = """\
`timescale 1ns/1ns
module testbench;
  reg clk = 0, rst = 1;
  reg [{width}-1:0] stimulus [0:{cycles}-1];
  reg [{width}-1:0] inputs = 0;
{wires}
  integer file, cycle;
  {top} dut (.clk(clk), .rst(rst), {connections});
  initial begin
    $readmemh("stimulus.hex", stimulus);
    file = $fopen("outputs.txt", "w");
    repeat (2) begin #1 clk = 1; #1 clk = 0; end
    rst = 0;
    for (cycle = 0; cycle < {cycles}; cycle = cycle + 1) begin
      inputs = stimulus[cycle];
      #1 $fdisplay(file, "%b", {{{outputs}}});
      clk = 1;
      #1 clk = 0;
    end
    $fclose(file);
    $finish;
  end
endmodule
"""


class Bits(NamedTuple):
    """A value of which some bits may be unknown: those set in ``unknown``, 0 in ``value``."""
    value: int
    unknown: int

    @classmethod
    def parse(cls, text):
        """From binary digits, ``x`` and ``z``, highest first."""
        return cls(int("".join("1" if digit == "1" else "0" for digit in text), 2),
                   int("".join("0" if digit in "01" else "1" for digit in text), 2))


def replay_four_state(recorder, texts, top, directory):
    """Outputs for the recorded inputs, by port and cycle.

    Registers and memories are unknown at first, and so they stay until reset, load or the design
    gives them a value.

    Parameters
    ----------
    recorder : tests.support.replay.Recorder
        Its inputs are given, cycle by cycle, from the first one behind reset on.
    texts : dict of str to str
        Verilog by unit.
    top : str
        Name of the top module.
    directory : pathlib.Path
        For the files of this run.

    Returns
    -------
    dict of str to list of Bits
    """
    if shutil.which("iverilog") is None:
        raise RuntimeError("iverilog is missing and the four-state tests need it: install iverilog")
    inputs, outputs = list(recorder.inputs), list(recorder.outputs)
    cycles = len(recorder.inputs[inputs[0]])
    connections, low = [], 0
    for port in inputs:
        connections.append(f".{port}(inputs[{low} +: {recorder.widths[port]}])")
        low += recorder.widths[port]
    lines = []
    for values in zip(*recorder.inputs.values(), strict=True):
        word, shift = 0, 0
        for port, value in zip(inputs, values, strict=True):
            word |= value << shift
            shift += recorder.widths[port]
        lines.append(f"{word:x}\n")
    (directory / "stimulus.hex").write_text("".join(lines))
    (directory / "testbench.v").write_text(_TESTBENCH.format(
        width=low, cycles=cycles, top=top, outputs=", ".join(outputs),
        wires="\n".join(f"  wire [{recorder.widths[port]}-1:0] {port};" for port in outputs),
        connections=", ".join([*connections, *(f".{port}({port})" for port in outputs)])))
    files = ["testbench.v"]
    for unit, text in texts.items():
        files.append(f"{unit}.v")
        (directory / files[-1]).write_text(text)
    _call(["iverilog", "-g2005", "-o", "simulation", "-s", "testbench", *files], directory)
    _call(["vvp", "-n", "simulation"], directory)
    found = {port: [] for port in outputs}
    for line in (directory / "outputs.txt").read_text().split():
        begin = 0
        for port in outputs:
            end = begin + recorder.widths[port]
            found[port].append(Bits.parse(line[begin:end]))
            begin = end
    return found


def _call(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode or said:
        raise RuntimeError(f"{command[0]} says: {said.strip().splitlines()[0] if said else 'no'}")
