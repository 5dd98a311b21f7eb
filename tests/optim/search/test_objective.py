"""What texts cost, and scores of several at once; the objective itself is in `tests/train/test_objective.py`."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.errors import BadRequest
from textgrad_engine.optim.search.objective import (
    after_costs,
    costs_of,
    handicap_of,
    rows_of,
    slower_by,
    tokens_of,
    worths,
)


class Charged:
    """Texts "slow" take three seconds, others one; with them no time is known of the second example."""

    def __init__(self, tokens_weight: float = 0.0, latency_weight: float = 0.0) -> None:
        self.tokens_weight, self.latency_weight = tokens_weight, latency_weight

    def latencies(self, texts: Any, positions: Any, split: str = "val") -> list[float | None]:
        slow = "slow" in texts
        return [None if slow and position == 1 else 3.0 if slow else 1.0 for position in positions]


def charged(**weights: float) -> Any:
    return Charged(**weights)


def test_a_thousand_tokens_cost_their_weight() -> None:
    """Each example pays for the texts; new ones for what they have more, and fewer tokens are to their credit."""
    texts, longer = ("Be brief.",), ("Be brief and polite, always.",)
    mine, more = tokens_of(texts), tokens_of(longer) - tokens_of(texts)
    objective = charged(tokens_weight=2.0)
    assert costs_of(objective, texts, [0, 1]) == [pytest.approx(mine / 500)] * 2
    assert handicap_of(objective, texts, longer) == pytest.approx(more / 500)
    assert handicap_of(objective, longer, texts) == pytest.approx(-more / 500)
    assert (costs_of(charged(), texts, [0, 1]), handicap_of(charged(), texts, longer)) == ([0.0, 0.0], 0.0)


def test_a_second_costs_its_weight_where_its_time_is_known() -> None:
    """On top of the tokens; a race is told what new texts take longer, and nothing where a time is missing."""
    objective = charged(latency_weight=0.5)
    assert costs_of(objective, ("slow",), [0, 1]) == [1.5, 0.0]
    tokens = tokens_of(("slow",)) / 1000
    both = costs_of(charged(tokens_weight=1.0, latency_weight=0.5), ("slow",), [0, 1])
    assert both == [pytest.approx(1.5 + tokens), pytest.approx(tokens)]
    slower, faster = slower_by(objective, ("a",), ("slow",)), slower_by(objective, ("slow",), ("a",))
    assert slower is not None
    assert faster is not None
    assert (slower([0, 1]), faster([0, 1])) == ([1.0, 0.0], [-1.0, 0.0])
    assert slower_by(charged(tokens_weight=1.0), ("a",), ("slow",)) is None


def test_what_was_not_answered_is_worth_nothing_that_is_known() -> None:
    """None stays None; other scores are less by what they cost, which is said."""
    objective = charged(latency_weight=0.5)
    assert worths(objective, ("slow",), [0, 1, 2], [1.0, 0.5, None]) == [-0.5, 0.5, None]
    assert [after_costs(each) for each in (objective, charged(tokens_weight=0.1), charged())] == [
        " after costs",
        " after costs",
        "",
    ]


class Broken:
    """Examples of texts "bad" are not answered, of "half" every second one, of "most" two in three."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def matrix(self, candidates: Any, positions: Any, split: str = "val") -> list[list[float | None]]:
        self.asked.append([texts[0] for texts in candidates])
        rows = [self._row(texts[0], positions) for texts in candidates]
        lost = sum(row.count(None) for row in rows)
        if lost > len(rows) * len(positions) / 2:
            raise BadRequest("no", status=400)
        return rows

    def scores(self, texts: Any, positions: Any, split: str = "val") -> list[float | None]:
        return self.matrix([texts], positions, split)[0]

    def _row(self, text: str, positions: Any) -> list[float | None]:
        lost = {"bad": lambda n: True, "half": lambda n: n % 2, "most": lambda n: n % 3}.get(text, lambda n: False)
        return [None if lost(n) else 1.0 for n in positions]


def test_texts_that_break_the_program_cost_the_others_nothing() -> None:
    """They have no scores at all, as those that come through by chance say little; with half of them they do."""
    objective: Any = Broken()
    every = [("good",), ("half",), ("bad",), ("most",)]
    good, half, none = [1.0] * 6, [1.0, None] * 3, [None] * 6
    assert rows_of(objective, every, range(6)) == [good, half, none, none]
    assert rows_of(objective, [("good",), ("bad",), ("bad",)], range(6)) == [good, none, none]
    with pytest.raises(BadRequest):
        rows_of(objective, [("bad",), ("most",)], range(6))
    objective.asked.clear()
    with pytest.raises(BadRequest):
        rows_of(objective, [("bad",)], range(6))
    assert objective.asked == [["bad"]]  # nothing is asked twice
