"""Progress of another process."""

import time

import pytest

from sim.rtl.follow import follow


def test_every_line_is_shown_once_and_whole(tmp_path):
    path, lines = tmp_path / "progress", []
    path.write_text("left over from an earlier run\n")
    with follow(path, lines.append), open(path, "a", buffering=1) as file:
        file.write("one\ntwo, ")
        file.flush()
        time.sleep(1.2)         # two looks
        assert lines == ["one"]
        file.write("completed\n")
        file.write("three\n")
    assert lines == ["one", "two, completed", "three"]


def test_nothing_is_asked_for(tmp_path):
    with follow(tmp_path / "progress", None):
        (tmp_path / "progress").write_text("unseen\n")


def test_failure_in_the_block_ends_it(tmp_path):
    with pytest.raises(KeyError), follow(tmp_path / "progress", print):
        raise KeyError
