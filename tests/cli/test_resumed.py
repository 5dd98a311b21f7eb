"""What `resume` says of the calls that had been paid for before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from textgrad_engine.cli.resumed import Resumed
from textgrad_engine.errors import ServerFailed
from textgrad_engine.llm import Completion, Usage
from textgrad_engine.llm.answers import Answer
from textgrad_engine.llm.charged import mark

PAID = Usage(calls=1, input_tokens=10, dollars=0.25)


def of(*outcomes: Any, left: tuple[Any, ...] = ()) -> Resumed:
    """What was made of answers and failures on record."""
    played, rest = ([Answer("m", "forward", "", 1, 1, "", each) for each in some] for some in (outcomes, left))
    earlier: Any = SimpleNamespace(player=SimpleNamespace(played=played, left=rest))
    return Resumed.of(earlier)


def in_words(found: Resumed, status: str = "finished") -> str:
    result: Any = SimpleNamespace(total=Usage(calls=9), status=status)
    return " ".join(found.in_words(result, Path("run")))


def test_what_failures_had_cost_counts_as_that_of_answers() -> None:
    """One whose usage nobody noted is a call all the same."""
    answered, failed = Completion("yes", usage=PAID), mark(ServerFailed("gone"), usage=PAID)
    found = of(answered, failed, ServerFailed("gone"))
    assert (found.played_back, found.usage.dollars, found.usage.input_tokens) == (3, 0.5, 20)
    assert "had been paid for before ($0.50)." in in_words(found)


def test_no_price_is_told_where_nothing_was_paid() -> None:
    free = replace(of(Completion("yes")), usage=Usage(calls=1, dollars=0.0))
    assert in_words(free).endswith("1 had been paid for before.")


def test_what_is_lost_is_told_of_a_run_that_came_to_its_end() -> None:
    """One that is ended again may ask for it yet."""
    found = of(left=(Completion("yes", usage=PAID),))
    assert "1 recorded call did not come up again ($0.25)" in in_words(found)
    assert "come up" not in in_words(found, "budget")
