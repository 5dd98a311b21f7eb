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
    assert "forward µs" in lines[0]
    assert "backward µs" in lines[0]
    rows = lines[2:]
    assert len(rows) == 9
    for number, (name, _, shown, goal) in enumerate(small):
        first, second, growth = rows[3 * number : 3 * number + 3]
        for row, size in ((first, shown[0]), (second, shown[1])):
            assert re.fullmatch(rf"{name} +{size}( +\d+\.\d){{4}} +{goal:g}", row)
        assert re.fullmatch(r"  growth exponent( +-?\d+\.\d\d){4}", growth)
