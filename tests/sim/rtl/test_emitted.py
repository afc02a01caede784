"""Verilog that is converted once."""

import time
from dataclasses import replace

import pytest

from hdl.arch.config import all_to_all, pair, single
from hdl.arch.packets import around, direct
from hdl.arch.presets import NANO
from sim.rtl import emitted as module


@pytest.fixture
def calls(monkeypatch):
    """Arguments of the conversions that took place."""
    made = []
    monkeypatch.setattr(module, "_sources", lambda: ("as they are", 0))

    def convert(system, **options):
        made.append((system, options))
        return {"tile": f"module tile {len(made)};"}

    monkeypatch.setattr(module, "system_verilog", convert)
    monkeypatch.setattr(module, "packet_system_verilog", convert)
    return made


def test_equal_call_gives_what_the_first_one_left(calls, tmp_path):
    first = module.emitted(single(NANO), root=tmp_path, trace=True, max_latency=9)
    again = module.emitted(single(NANO), root=tmp_path, max_latency=9, trace=True)
    assert first == again == {"tile": "module tile 1;"}
    assert calls == [(single(NANO), {"trace": True, "max_latency": 9})]
    again["tile"] = "changed"
    assert module.emitted(single(NANO), root=tmp_path, trace=True, max_latency=9) == first


def test_other_system_options_and_sources_are_converted(calls, tmp_path, monkeypatch):
    module.emitted(single(NANO), root=tmp_path, trace=True)
    module.emitted(single(NANO), root=tmp_path, trace=False)
    module.emitted(pair(NANO), root=tmp_path, trace=True)
    module.emitted(pair(NANO, latency=3), root=tmp_path, trace=True)
    monkeypatch.setattr(module, "_sources", lambda: ("edited", 0))
    module.emitted(single(NANO), root=tmp_path, trace=True)
    assert len(calls) == 5


def test_networks_are_told_apart(calls, tmp_path):
    system = all_to_all(replace(NANO, sync=True, ports=NANO.ports * 3), 4)
    networks = [None, direct(system), around(system), around(system, depth=16),
                around(system, outbox=16), around(system, latency=3)]
    for network in [*networks, *networks]:
        module.emitted(system, packets=network, root=tmp_path, trace=True)
    assert [source for source, _ in calls] == [system, *networks[1:]]


def test_digest_covers_the_sources(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "BUILD_ROOT", tmp_path / "build")
    (tmp_path / "hdl").mkdir()
    digests = []
    for text in ("a = 1", "a = 2"):
        (tmp_path / "hdl" / "unit.py").write_text(text)
        module._sources.cache_clear()
        digests.append(module._sources()[0])
    module._sources.cache_clear()
    assert digests[0] != digests[1]


def test_sources_edited_since_the_start_are_not_kept(calls, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_sources", lambda: ("new", time.time() + 1))
    for _ in range(2):
        module.emitted(single(NANO), root=tmp_path)
    assert len(calls) == 2
    assert not list(tmp_path.iterdir())
