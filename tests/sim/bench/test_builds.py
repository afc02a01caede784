import fcntl

import pytest

from sim.bench.builds import drop_older
from sim.build import Model


@pytest.fixture
def builds(tmp_path):
    """Directories of builds of two names."""
    names = [f"config-1-2-{'0' * 15}{number}" for number in range(3)]
    names += [f"config-1-{'a' * 16}", f"config-1-22-{'b' * 16}", f"config-1-2-{'c' * 15}"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.lock").touch()
    return tmp_path, names


def model(path, name):
    return Model("config-1-2", "top", path / name, False, 0.0, True)


def test_other_builds_of_the_name_are_removed(builds):
    path, names = builds
    drop_older(model(path, names[1]))
    left = [names[1], *names[3:]]
    assert {file.name for file in path.iterdir()} == {*left, *(f"{name}.lock" for name in left)}


def test_build_that_is_being_made_stays(builds):
    path, names = builds
    with open(path / f"{names[0]}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        drop_older(model(path, names[1]))
    assert (path / names[0]).is_dir()
    assert not (path / names[2]).exists()
