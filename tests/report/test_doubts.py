"""Examples whose right answer may be wrong, in a report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from textgrad_engine.report.doubts import note_of
from textgrad_engine.train.doubtful import Doubtful


@pytest.mark.parametrize(("found", "told"), [(3, True), (4, True), (5, False)])
def test_sets_that_are_named_by_positions_are_counted_both(found: int, told: bool) -> None:
    """A tenth of all that was tried on is few, and two sets of 20 are 40, whatever they are called."""
    names = tuple(str(number) for number in range(20))
    doubtful = tuple(Doubtful(name, "val" if name == "0" else "train", "no", 4, 4) for name in names[:found])
    steps = (SimpleNamespace(examples=names),)
    result: Any = SimpleNamespace(doubtful=doubtful, best_val=SimpleNamespace(ids=names), steps=steps)
    assert bool(list(note_of(result))) is told
