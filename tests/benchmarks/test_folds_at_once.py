"""benchmarks/folds_at_once.py: runs that go on at once ask the same, and find the same."""

from __future__ import annotations

import pytest

from .foreign import benchmark_module


def test_runs_at_once_ask_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The ratio of their times says something only then."""
    benchmark_module("folds_at_once").main(["--latency", "0", "--folds", "2", "--optimizer", "TGD"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[1] for row in rows] == ["1", "3"]
    assert len({tuple(row[-2:]) for row in rows}) == 1
    assert int(rows[0][-2]) > 100
