"""The benchmark of guards where answers vary from time to time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_its_table_has_a_line_for_each_rule() -> None:
    """Without moods, guards that run again decide as those that run once."""
    command = [sys.executable, "moody_guards.py", "--seeds", "1:2", "--moods", "0", "--examples", "3"]
    done = subprocess.run(
        [*command, "--search", "PatchSearch"],
        cwd=BENCHMARKS,
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    head, *lines = [line.split() for line in done.stdout.splitlines()]
    assert head == ["mood", "guards", "way", "broken", "calls", "kept"]
    assert [line[:3] for line in lines] == [["PatchSearch", "0.00", told] for told in ("none", "0", "2")]
    none, once, again = (line[-4:] for line in lines)
    assert once == again
    assert float(none[0].rstrip("%")) > 0
