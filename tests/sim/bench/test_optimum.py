"""Small graphs: the bound is at most the exact optimum, that at most what the scheduler gives."""

import importlib.util

import pytest

from sim.bench import optimum
from sim.cli import main

GRAPHS = {name: graph for name, *graph in optimum.instances()}


def test_bound_optimum_and_schedule_are_in_order():
    pytest.importorskip("ortools", reason="needs OR-tools: make setup EXTRA=dev-optimum")
    for name, graph in GRAPHS.items():
        bound, ours = optimum.measure(*graph)
        # from twice as much, so that the solver has to find it
        best, proven = optimum.optimum(*graph, 2 * ours)
        assert proven and bound <= best <= ours, name


@pytest.mark.parametrize("name", GRAPHS)
def test_the_bound_is_no_longer_than_the_schedule(name):
    bound, ours = optimum.measure(*GRAPHS[name])
    assert 0 < bound <= ours


def test_there_are_graphs_enough_and_none_twice():
    assert len(GRAPHS) == len(list(optimum.instances())) >= optimum.BARS["instances"]


def test_without_the_extra_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["bench", "optimum"]) == 2
    assert "bench optimum needs OR-tools: make setup EXTRA=dev-optimum" in capsys.readouterr().err
