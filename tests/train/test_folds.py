"""Who works with what in a cross-validation: each example tests once, in one fold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from textgrad_engine.train.folds import parts_of

from .questions import program, rows


def names(some: Any) -> set[str]:
    return {row["id"] for row in some}


@pytest.mark.parametrize("val", [0.0, 0.4])
def test_each_example_tests_once_and_is_in_nothing_else_of_that_run(val: float) -> None:
    """Else the score is of a prompt that has seen the example."""
    examples = rows(23)
    *folds, final = parts_of(program(), examples, folds=5, val=val, seed=3)
    assert Counter(name for part in folds for name in names(part.test)) == Counter(names(examples))
    for part in folds:
        assert names(part.train) | names(part.val) | names(part.test) == names(examples)
        assert not names(part.test) & (names(part.train) | names(part.val))
        assert (part.val is part.train) == (val == 0)
    assert final.test is None
    assert names(final.train) | names(final.val) == names(examples)


def test_clusters_and_copies_stay_in_one_fold() -> None:
    """A question about a document that others were trained on is no new one; a copy is none either."""
    for examples, clusters in (
        (rows(24, page=lambda n: n // 4), "page"),
        (rows(24, q=lambda n: f"question {n // 4}?"), None),
    ):
        for part in parts_of(program(), examples, folds=3, clusters=clusters)[:-1]:
            tested = {int(name[1:]) // 4 for name in names(part.test)}
            assert len(tested) == 2
            assert len(part.test or ()) == 8
