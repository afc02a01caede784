"""Who may import whom: the arrows of docs/architecture.md, read from the source."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hdl", "compiler", "sim")

#: Layer to the layers it may import from.  A module belongs to the longest name that fits.
MAY_IMPORT = {
    "hdl.arch": {"hdl.arch"},
    "hdl": {"hdl", "hdl.arch"},
    "compiler": {"compiler", "hdl.arch"},
    "sim.emulator": {"sim.emulator", "hdl.arch"},
    "sim": {"sim", "sim.emulator", "hdl", "hdl.arch", "compiler"},
}


def layer_of(module):
    """The layer of a module of the project, None for any other."""
    fitting = [layer for layer in MAY_IMPORT if f"{module}.".startswith(f"{layer}.")]
    return max(fitting, key=len, default=None)


def module_name(root, path):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(root, name):
    path = root.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports(root, path):
    """(line, module) of every import in a file, relative ones resolved."""
    name = module_name(root, path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if is_module(root, full) else base
        elif isinstance(node, ast.Call):
            called = node.func
            called_name = getattr(called, "attr", getattr(called, "id", None))
            if called_name in ("import_module", "__import__"):
                yield node.lineno, "an import computed at run time"


def violations(root):
    """One line for every import that no arrow allows."""
    found = []
    for path in sorted(p for package in PACKAGES for p in (root / package).rglob("*.py")):
        name = module_name(root, path)
        layer = layer_of(name)
        for line, imported in imports(root, path):
            target = layer_of(imported)
            # A package's __init__ runs when any part of it is imported, also from another layer.
            allowed = set() if name in ("hdl", "sim") else MAY_IMPORT[layer]
            if imported == "an import computed at run time":
                bad = layer != "sim"
            else:
                bad = imported.split(".")[0] in (*PACKAGES, "tests") and target not in allowed
            if bad:
                found.append(f"{path.relative_to(root)}:{line}: {layer} imports {imported}")
    return found


def test_every_import_follows_an_arrow():
    assert violations(ROOT) == []


def test_the_packages_are_there():
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert files
    with_code = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert with_code <= {*PACKAGES, "tests"}, "a new package needs a row in MAY_IMPORT"


@pytest.mark.parametrize(
    ("file", "text", "imported"),
    [
        ("hdl/arch/isa.py", "import compiler", "compiler"),
        ("hdl/arch/isa.py", "from hdl import mem", "hdl.mem"),
        ("hdl/arch/isa.py", "from .. import mem", "hdl.mem"),
        ("hdl/arch/isa.py", "from ..mem import Mem", "hdl.mem"),
        ("hdl/arch/isa.py", "import tests.conftest", "tests.conftest"),
        ("hdl/arch/__init__.py", "from ..mem import Mem", "hdl.mem"),
        ("hdl/mem.py", "from compiler.lower import x", "compiler.lower"),
        ("hdl/mem.py", "import sim.build", "sim.build"),
        ("hdl/mem.py", "def f():\n    import sim", "sim"),
        ("hdl/__init__.py", "from hdl.mem import Mem", "hdl.mem"),
        ("compiler/lower.py", "import hdl", "hdl"),
        ("compiler/lower.py", "from hdl import mem as m", "hdl.mem"),
        ("compiler/lower.py", "from hdl.mem import Mem", "hdl.mem"),
        ("compiler/lower.py", "import sim", "sim"),
        ("compiler/lower.py", "importlib.import_module(name)", "an import computed at run time"),
        ("sim/emulator/core.py", "import hdl.mem", "hdl.mem"),
        ("sim/emulator/core.py", "from compiler import lower", "compiler.lower"),
        ("sim/emulator/core.py", "from ..build import model", "sim.build.model"),
        ("sim/emulator/core.py", "import sim", "sim"),
        ("sim/__init__.py", "from . import build", "sim.build"),
    ],
)
def test_forbidden_import_is_found(tmp_path, file, text, imported):
    make_tree(tmp_path)
    (tmp_path / file).write_text(text)
    assert len(violations(tmp_path)) == 1
    assert violations(tmp_path)[0].endswith(f"imports {imported}")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("hdl/arch/isa.py", "from . import config\nimport amaranth, dataclasses"),
        ("hdl/mem.py", "from hdl.arch import isa\nfrom .arch.isa import X\nfrom hdl import vxm"),
        ("compiler/lower.py", "from hdl import arch\nimport hdl.arch.isa\nfrom . import graph"),
        ("sim/emulator/core.py", "from hdl.arch import isa\nfrom . import lanes\nimport numpy"),
        ("sim/build/model.py", "import hdl.mem, compiler.lower\nfrom ..emulator import core"),
        ("sim/build/model.py", "import simpy, hdl2"),
    ],
)
def test_allowed_import_is_accepted(tmp_path, file, text):
    make_tree(tmp_path)
    (tmp_path / file).write_text(text)
    assert violations(tmp_path) == []


def make_tree(root):
    for file in (
        "hdl/__init__.py hdl/mem.py hdl/vxm.py hdl/arch/__init__.py hdl/arch/isa.py "
        "hdl/arch/config.py compiler/__init__.py compiler/lower.py compiler/graph.py "
        "sim/__init__.py sim/build/__init__.py sim/build/model.py "
        "sim/emulator/__init__.py sim/emulator/core.py sim/emulator/lanes.py"
    ).split():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
