"""benchmarks/few_examples.py: what it prints of a cut and of folds."""

from __future__ import annotations

import pytest

from .foreign import benchmark_module


def test_it_prints_what_each_cut_shows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A gain that 15 test examples do not show, and five folds of all do."""
    script = benchmark_module("few_examples")
    monkeypatch.setattr(script, "POPULATION", 200)
    script.main(["--cut", "20/15/15", "folds", "--gain", "0.3", "--seeds", "1"])
    head, cut, folds = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["cut", "gain", "found", "better", "worse", "held", "calls"]
    assert (cut[0], folds[0], folds[3]) == ("20/15/15", "folds", "1.00")
    assert int(cut[-1]) * 3 < int(folds[-1])
