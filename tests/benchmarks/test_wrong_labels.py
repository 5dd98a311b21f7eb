"""benchmarks/wrong_labels.py: what it prints of an optimizer."""

from __future__ import annotations

import pytest

from textgrad_engine import data

from .foreign import benchmark_module


def test_it_counts_wrong_answers_that_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """How many answers were made wrong, how many of these a run names, and how many in all."""
    script, load = benchmark_module("wrong_labels"), data.load
    monkeypatch.setattr(script.data, "load", lambda path: load(path)[:50])
    script.main(["--wrong", "0.1", "--seeds", "1", "--optimizer", "TGD"])
    head, row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head[:4] == ["optimizer", "wrong", "found", "named"]
    name, wrong, found, named, *_ = row
    assert (name, wrong) == ("TGD", "10")
    assert 3 < int(found) < int(wrong) < int(named)
