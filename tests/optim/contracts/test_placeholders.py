from __future__ import annotations

import pytest

from textgrad_engine.optim.contracts import Placeholders


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("Sort {ticket}.", "Sort the ticket.", "the placeholder {ticket} is missing"),
        ("Sort {ticket}.", "Sort {ticket} by {rule}.", "the placeholder {rule} is new"),
        ("Sort {ticket}.", "Sort {{ticket}}.", "the placeholder {ticket} is missing"),
        ("{a} {b}", "{b}", "the placeholder {a} is missing"),
        (
            "{a} {b}",
            "{c}",
            "the placeholder {a} is missing; the placeholder {b} is missing; the placeholder {c} is new",
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
    assert Placeholders().describe("Sort {a} by {b} and {a}.") == "These placeholders stay: {a}, {b}."
    assert Placeholders().describe("no slots") == ""
