"""The benchmark of the engine runs, and prints what the issue asks for; how fast it is, no test says."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "engine_overhead.py"


def test_it_prints_microseconds_forward_and_backward_and_the_growth_of_every_shape(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chain, calls that share a prompt, leaves in a sum: a row for each size, then an exponent for each column."""
    spec = importlib.util.spec_from_file_location("engine_overhead", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    sizes = {name: sizes for name, _, sizes, _ in script.SHAPES}
    assert [len(sizes[name]) >= 2 and 500 in sizes[name] for name in sizes] == [True] * 3
    small = [(name, shape, [3, 6], goal) for name, shape, _, goal in script.SHAPES]
    monkeypatch.setattr(script, "SHAPES", small)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--repeats", "1"])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["microseconds", "forward", "backward"]
    assert lines[1].split() == ["size", *["passed", "CPU", "least", "CPU"] * 2]
    assert max(map(len, lines)) < 80
    assert re.fullmatch(r"beside, a turn of a plain loop took \d+ to \d+ ns, \d+ in the median", lines[-1])
    rows = lines[2:-1]
    assert len(rows) == 12
    for number, (name, _, shown, goal) in enumerate(small):
        head, first, second, growth = rows[4 * number : 4 * number + 4]
        assert head == f"{name} (goal: {goal:g})"
        for row, size in ((first, shown[0]), (second, shown[1])):
            assert re.fullmatch(rf" +{size}( +\d+\.\d){{6}}", row)
        assert re.fullmatch(r" +exponent( +-?\d+\.\d\d){6}", growth)


def test_the_least_is_the_least(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of several runs: medians of what passed and of the CPU, and the least CPU, each by the size."""
    spec = importlib.util.spec_from_file_location("engine_overhead", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    runs = iter([(3e-5, 6e-5, 9e-5, 12e-5), (2e-5, 5e-5, 7e-5, 20e-5), (4e-5, 4e-5, 8e-5, 11e-5)] * 2)
    monkeypatch.setattr(script, "SHAPES", [("shape", lambda size: next(runs), [1, 10], 25)])
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--repeats", "3"])
    script.main()
    _, _, _, first, second, growth, _ = capsys.readouterr().out.splitlines()
    assert first.split() == ["1", "30.0", "50.0", "40.0", "80.0", "120.0", "110.0"]
    assert second.split() == ["10", "3.0", "5.0", "4.0", "8.0", "12.0", "11.0"]
    assert growth.split() == ["exponent", *["0.00"] * 6]
