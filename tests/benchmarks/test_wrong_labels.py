"""benchmarks/wrong_labels.py: what it prints of an optimizer."""

from __future__ import annotations

import pytest

from .foreign import benchmark_module


def test_it_counts_wrong_answers_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """More of those that are named are wrong than right, and a good part of the wrong ones is named."""
    benchmark_module("wrong_labels").main(["--wrong", "0.05", "--seeds", "1", "--optimizer", "TGD"])
    head, row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head[:4] == ["optimizer", "wrong", "found", "named"]
    name, wrong, found, named, *_ = row
    assert (name, wrong) == ("TGD", "10")
    assert int(named) / 2 < int(found) <= int(named)
    assert int(found) > 3
