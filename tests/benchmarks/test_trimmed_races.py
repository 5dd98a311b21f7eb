"""How often trimmed patches win that are no better: the simulation behind the note in `optim.search.race`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "trimmed_races.py"


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("trimmed_races", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trimmed_races"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["trimmed_races"]


def test_what_is_simulated_is_worth_what_it_says(script: Any) -> None:
    """Over many examples edits that are worth nothing leave the score as it is, and a good one gains."""
    kind = script.Kind(edits=4, flips=0.05, size=6000, accuracy=0.6, gain=0.08)
    known = script.Known(kind, 1)
    base = sum(known.scores((script.SEED_TEXT,), range(kind.size))) / kind.size
    for left in ((0,), (0, 1, 2), (3,), (1, 2, 3)):
        text = "\n".join([script.SEED_TEXT, *map(str, left)])
        change = sum(known.scores((text,), range(kind.size))) / kind.size - base
        assert kind.difference(left) == pytest.approx(0.08 if 3 in left else 0.0)
        assert change == pytest.approx(kind.difference(left), abs=0.02)
    bad = script.Kind(edits=4, flips=0.02, size=10, accuracy=0.6, harm=0.1)
    assert bad.difference((0,)) == pytest.approx(-0.1)
    assert -0.1 < bad.difference((0, 1, 2)) < -0.08


def test_how_often_trimmed_patches_win_by_luck(script: Any) -> None:
    """Up to three times as often as they do as they are, which is why a win is not what a search claims."""
    kinds = [script.Kind(8, 0.02, size, right) for size in script.SIZES for right in script.ACCURACIES]
    won = {
        trimming: sum(script.tried(kind, seed, trimming=trimming).won for kind in kinds for seed in range(48))
        for trimming in (True, False)
    }
    runs = 48 * len(kinds)
    assert won[False] / runs <= 0.30
    assert won[True] / runs <= 0.63
    assert won[True] > won[False]


def test_trimming_saves_a_good_edit_from_a_bad_one(script: Any) -> None:
    """What it is there for: what breaks as much as the good edit repairs goes, and the good one wins more often."""
    kind = script.Kind(4, 0.01, 96, 0.6, gain=0.1, harm=0.1)
    patches = {on: [script.tried(kind, seed, trimming=on) for seed in range(60)] for on in (True, False)}
    brought = {
        on: sum(kind.difference(each.left) for each in found if each.won) / len(found) for on, found in patches.items()
    }
    assert brought[True] > 1.5 * brought[False]


def test_it_prints_a_line_for_each_kind(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what the note and the documentation state."""
    monkeypatch.setattr(script, "SIZES", (48,))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--runs", "3", "--edits", "2", "3", "--flips", "0.05"])
    script.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert "won: mean" in head
    assert [line.split()[:2] for line in lines] == [["2", "0.05"], ["3", "0.05"]]
