"""benchmarks/few_examples.py: what it prints of a cut and of folds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "few_examples.py"


def test_it_prints_what_each_cut_shows() -> None:
    """A gain that 15 test examples do not show, and five folds of all do."""
    asked = [sys.executable, SCRIPT, "--cut", "20/15/15", "folds", "--gain", "0.3", "--seeds", "1"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    head, cut, folds = (line.split() for line in done.stdout.splitlines())
    assert head == ["cut", "gain", "found", "better", "worse", "held", "calls"]
    assert (cut[0], folds[0], folds[3]) == ("20/15/15", "folds", "1.00")
    assert int(cut[-1]) * 3 < int(folds[-1])
