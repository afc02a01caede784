"""cocotb modules are not collected by pytest: each must be named by a test that runs it, or by what
tests share."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent


def test_every_testbench_is_run_by_a_test():
    texts = [path.read_text() for pattern in ("test_*.py", "support/*.py")
             for path in TESTS.rglob(pattern) if path != Path(__file__)]
    modules = [
        ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
        for path in TESTS.rglob("tb_*.py")
    ]
    assert modules
    unused = [name for name in modules if not any(f'"{name}"' in text for text in texts)]
    assert unused == []
