"""benchmarks/waiting_programs.py: programs that wait ask the same as one that does not, and end alike."""

from __future__ import annotations

import pytest

from .foreign import benchmark_module


def test_programs_that_wait_ask_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The ratio of their times says something only then."""
    benchmark_module("waiting_programs").main(["--latency", "0.001", "--optimizer", "TGD"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [" ".join(row[1:-5]) for row in rows] == ["only asks", "reads its answer", "looks up first"]
    assert len({tuple(row[-2:]) for row in rows}) == 1
    assert int(rows[0][-2]) > 100
