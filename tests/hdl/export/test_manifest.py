"""The manifest against the Verilog, read by a reader of the test's own."""

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hdl.arch.config import PortConfig, pair, single
from hdl.arch.identity import isa_digest
from hdl.arch.presets import NANO
from hdl.export import ExportOptions
from hdl.export.docs import page_with_ports
from hdl.export.ports import PORTS
from tests.hdl.export.tools import export

ROOT = Path(__file__).parents[3]


def declared(text):
    """(direction, width) of the ports of a module by name, from its text."""
    found = {}
    for direction, high, name in re.findall(
            r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", text, re.M):
        found[name] = (direction, int(high or 0) + 1)
    header = re.search(r"^module \w+\(([^)]*)\);", text, re.M)[1]
    assert {name.strip() for name in header.split(",")} == set(found)
    return found


@pytest.fixture(scope="module", params=["tile", "system"])
def made(request, tmp_path_factory):
    if request.param == "tile":
        system, options = single(replace(NANO, sync=True)), ExportOptions(trace=True)
    else:
        system = pair(NANO, latency=3)
        options = ExportOptions(top="system", active_low=True, errors=False, prefix="my_")
    return export(tmp_path_factory.mktemp(request.param), system, options)


def manifest_of(found):
    return json.loads(found.text("manifest.json"))


def test_ports_are_those_of_the_verilog(made):
    listed = {port["name"]: (port["direction"], port["width"])
              for port in manifest_of(made)["ports"]}
    assert listed == declared(made.text(f"{made.top}.v"))
    assert all(port["meaning"] for port in manifest_of(made)["ports"])


def test_documented_ports_are_those_that_are_there(made):
    for name, port in declared(made.text(f"{made.top}.v")).items():
        name = re.sub(r"^tile\d_", "", name)
        name = re.sub(r"^(tx|rx|post|taken)\d", r"\1<k>", name)
        direction, bits, _ = PORTS[re.sub(r"^latency\d", "latency<j>", name)]
        assert direction == port[0]
        if bits.isdigit():
            assert int(bits) == port[1]


def test_docs_are_current():
    page = (ROOT / "docs" / "verilog.md").read_text()
    assert page_with_ports(page) == page, "run `python -m hdl.export.docs`"


def test_options_choose_the_ports(made):
    names = {port["name"] for port in manifest_of(made)["ports"]}
    if made.options.top == "tile":
        assert {"rst", "errors", "issues", "writes", "arrivals", "faults", "post0__valid",
                "rx1__data"} < names
        assert "rst_n" not in names
    else:
        assert {"rst_n", "latency1", "tile1_host_rx__data", "tile0_command"} < names
        assert not [name for name in names if re.search("errors|issues|faults|^rst$", name)]


def test_files_and_modules_are_those_that_are_there(made):
    files = manifest_of(made)["files"]
    assert [file["name"] for file in files] == made.modules
    for file in files:
        text = made.text(file["name"])
        assert file["sha256"] == hashlib.sha256(text.encode()).hexdigest()
        assert re.findall(r"^module (\S+)\(", text, re.M) == [file["name"].removesuffix(".v")]
        assert file["name"].startswith(made.options.prefix)


def test_it_names_configuration_and_reset(made):
    manifest = manifest_of(made)
    cfg = made.system.tile
    assert manifest["tile_digest"] == cfg.digest
    assert manifest["digest"] == (cfg if made.options.top == "tile" else made.system).digest
    assert manifest["preset"] == ("nano" if made.options.top == "system" else None)
    assert manifest["reset"]["active"] == ("low" if made.options.active_low else "high")


def test_fields_and_elements_divide_the_port(made):
    for port in manifest_of(made)["ports"]:
        size = port["width"]
        if port.get("elements"):
            size, rest = divmod(size, len(port["elements"]))
            assert rest == 0
        if port.get("fields"):
            at = 0
            for field in port["fields"]:
                assert field["lsb"] == at
                at += field["width"]
            assert at == size


def test_the_command_is_laid_out_as_documented(tmp_path):
    manifest = manifest_of(export(tmp_path, single(NANO), ExportOptions()))
    [command] = [port for port in manifest["ports"] if port["name"] == "command"]
    assert [(f["name"], f["lsb"], f["width"]) for f in command["fields"]] == [
        ("op", 0, 3), ("select", 3, 5), ("address", 8, 6), ("data", 14, 128)]


def test_equal_arguments_give_equal_bytes(tmp_path):
    for number in ("1", "2"):
        subprocess.run([sys.executable, "-m", "sim", "verilog", "--tiles", "2", "--reset", "async",
                        "-o", str(tmp_path / number)], cwd=ROOT, check=True, capture_output=True,
                       env={**os.environ, "PYTHONHASHSEED": number})
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / number).iterdir()}
                for number in ("1", "2"))
    assert one == two and len(one) > 30
    for name, content in one.items():
        for place in (tmp_path, ROOT):
            assert str(place).encode() not in content, name


def test_isa_digest_follows_encoding_and_timing_only():
    digest = isa_digest(NANO)
    assert re.fullmatch("[0-9a-f]{16}", digest)
    assert isa_digest(replace(NANO, host=PortConfig(bytes=2, fifo=8))) == digest
    for other in (replace(NANO, streams=12), replace(NANO, reduce_depth=5),
                  replace(NANO, loop_levels=2), replace(NANO, sync=True)):
        assert isa_digest(other) != digest
