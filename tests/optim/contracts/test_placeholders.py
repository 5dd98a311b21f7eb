from __future__ import annotations

import pytest

from textgrad_engine.optim.contracts import Placeholders
from textgrad_engine.slots import fill


def new(slot: str) -> str:
    return f"the placeholder {{{slot}}} is new: leave it out, or write {{{{{slot}}}}} where braces are to be shown"


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("Sort {ticket}.", "Sort the ticket.", "the placeholder {ticket} is missing"),
        ("Sort {ticket}.", "Sort {ticket} by {rule}.", new("rule")),
        ("Sort {ticket}.", "Sort {{ticket}}.", "the placeholder {ticket} is missing"),
        ("{a} {b}", "{b}", "the placeholder {a} is missing"),
        (
            "{a} {b}",
            "{c}",
            f"the placeholder {{a}} is missing; the placeholder {{b}} is missing; {new('c')}",
        ),
        ("{a} {b}", "{b} {a} {b}", None),
        ('{"a": 1}', '{"b": 2} {}', None),
    ],
)
def test_placeholders_stay_and_none_are_added(before: str, after: str, problem: str | None) -> None:
    """Defect of section 9's kind: a slot that is lost loses the example; JSON braces are no slots."""
    assert Placeholders().problem(before, after) == problem


def test_the_placeholders_are_named_beforehand() -> None:
    """And nothing is said where there are none."""
    assert Placeholders().describe("Sort {a} by {b} and {a}.") == (
        "These placeholders stay, and no others come in: {a}, {b}."
    )
    assert Placeholders().describe("no slots") == ""


def test_the_repair_that_is_told_is_one() -> None:
    """What the problem says to write is accepted, and no value takes its place."""
    before, repaired = "Answer the question.", "Answer the question as {{answer}}."
    assert "{{answer}}" in str(Placeholders().problem(before, "Answer the question as {answer}."))
    assert Placeholders().problem(before, repaired) is None
    assert fill(repaired, {"answer": "42"}) == "Answer the question as {answer}."
