"""cocotb modules are not collected by pytest: each must be named by a test that runs it."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent


def test_every_testbench_is_run_by_a_test():
    texts = [path.read_text() for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    modules = [
        ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
        for path in TESTS.rglob("tb_*.py")
    ]
    assert modules
    unused = [name for name in modules if not any(f'"{name}"' in text for text in texts)]
    assert unused == []
