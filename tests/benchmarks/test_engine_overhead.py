"""The benchmark of the engine runs, and prints what the issue asks for; how fast it is, no test says."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "engine_overhead.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("engine_overhead", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "engine_overhead", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.gc, "collect", lambda: 0)  # for figures, of which no test says anything
    return module


def lines_of(
    script: Any, repeats: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--repeats", str(repeats)])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 80
    assert lines[0].split() == ["microseconds", "forward", "backward"]
    assert lines[1].split() == ["size", *["passed", "CPU", "quiet", "CPU"] * 2]
    assert re.fullmatch(r"beside, a turn of a plain loop took \d+ to \d+ ns, \d+ in the median", lines[-1])
    return lines[2:-1]


def test_it_prints_microseconds_forward_and_backward_and_the_growth_of_every_shape(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chain, calls that share a prompt, leaves in a sum: a row for each size, then an exponent for each column."""
    assert [len(shape.sizes) >= 2 and 500 in shape.sizes for shape in script.SHAPES] == [True] * 3
    assert [shape.goal for shape in script.SHAPES] == [25, 25, 60]
    small = [replace(shape, sizes=[3, 6], theirs=lambda: None) for shape in script.SHAPES]
    monkeypatch.setattr(script, "SHAPES", small)
    rows = lines_of(script, 1, monkeypatch, capsys)
    assert len(rows) == 12
    for number, shape in enumerate(small):
        head, first, second, growth = rows[4 * number : 4 * number + 4]
        assert head == f"{shape.name} (goal: {shape.goal:g})"
        for row, size in ((first, 3), (second, 6)):
            assert re.fullmatch(rf" +{size}(( +\d+\.\d){{2}} +(\d+\.\d|-)){{2}}", row)
        assert re.fullmatch(r" +exponent( +-?\d+\.\d\d( +(-?\d+\.\d\d|-)){2}){2}", growth)


def test_a_clock_that_ticks_rarely_gives_no_exponent(script: Any) -> None:
    """A run of a few calls takes no tick of it; what it gives of others is their slope."""
    assert math.isnan(script.exponent([3, 6], [0.0, 0.015]))
    assert script.exponent([3, 6], [0.1, 0.2]) == pytest.approx(1)


RUNS = [(3e-5, 6e-5, 9e-5, 12e-5), (2e-5, 5e-5, 7e-5, 20e-5), (4e-5, 4e-5, 8e-5, 11e-5), (9e-5, 9e-5, 9e-5, 9e-5)]


def test_the_quiet_runs_are_those_beside_which_a_plain_loop_was_quick(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs go on for as many quiet ones as are asked for; a loop that was slow before or after tells the others."""
    turns = iter([22, 40, 22, 22, 22, 22, 28, 24, 27])  # one before all, and two for each of four runs
    runs = iter(RUNS)
    monkeypatch.setattr(script, "turn", lambda: next(turns) * 1e-9)
    monkeypatch.setattr(script, "SHAPES", [script.Shape("shape", lambda size: next(runs), [1, 10], 25)])
    _, first, second, growth = lines_of(script, 1, monkeypatch, capsys)
    assert first.split() == ["1", "25.0", "55.0", "50.0", "80.0", "160.0", "200.0"]
    assert second.split() == ["10", "6.5", "6.5", "9.0", "8.5", "10.0", "9.0"]
    assert growth.split()[0] == "exponent"


def test_where_it_is_never_quiet_no_figure_is_given_for_quiet_runs(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After four times as many runs it is given up."""
    turns = iter([20, *[40] * 16])
    runs = iter(RUNS * 2)
    monkeypatch.setattr(script, "turn", lambda: next(turns) * 1e-9)
    monkeypatch.setattr(script, "SHAPES", [script.Shape("shape", lambda size: next(runs), [1, 10], 25)])
    _, first, second, growth = lines_of(script, 1, monkeypatch, capsys)
    assert first.split() == ["1", "35.0", "55.0", "-", "85.0", "115.0", "-"]
    assert second.split() == ["10", "3.5", "5.5", "-", "8.5", "11.5", "-"]
    assert growth.split() == ["exponent", "0.00", "0.00", "-", "0.00", "0.00", "-"]


def test_another_library_runs_in_turns_and_is_put_beside(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below each size stand its microseconds, and ours by its of runs that were next to each other."""
    order: list[str] = []

    def ours(size: int) -> tuple[float, ...]:
        order.append("ours")
        return (3e-5, 6e-5, 9e-5, 12e-5)

    def theirs(size: int) -> tuple[float, ...]:
        order.append("theirs")
        return (6e-5, 3e-5, 9e-5, 24e-5)

    monkeypatch.setattr(script, "turn", lambda: 2e-8)
    monkeypatch.setattr(script, "SHAPES", [script.Shape("shape", ours, [1, 10], 25, lambda: theirs)])
    _, first, their_first, share, *_, growth = lines_of(script, 2, monkeypatch, capsys)
    assert order == ["ours", "theirs"] * 4
    assert first.split() == ["1", "30.0", "60.0", "60.0", "90.0", "120.0", "120.0"]
    assert their_first.split() == ["textgrad", "60.0", "30.0", "30.0", "90.0", "240.0", "240.0"]
    assert share.split() == ["of", "its", "0.50", "2.00", "2.00", "1.00", "0.50", "0.50"]
    assert growth.split()[0] == "exponent"


@pytest.mark.skipif(importlib.util.find_spec("textgrad") is None, reason="textgrad is not installed")
def test_textgrad_runs_the_same(script: Any) -> None:
    """Its calls and their feedback, one by one."""
    assert all(seconds > 0 for seconds in script.with_textgrad()(3))
