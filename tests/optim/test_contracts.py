from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm import tokens
from textgrad_engine.optim.contracts import MaxTokens, NotEmpty, Placeholders, Wish, broken, contracts_for


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_a_text_must_not_become_empty(text: str) -> None:
    """White space is no prompt."""
    assert NotEmpty().problem("before", text) == "the new text is empty"


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("Sort {ticket}.", "Sort the ticket.", "the placeholder {ticket} is missing"),
        ("Sort {ticket}.", "Sort {ticket} by {rule}.", "the placeholder {rule} is new"),
        ("Sort {ticket}.", "Sort {{ticket}}.", "the placeholder {ticket} is missing"),
        ("{a} {b}", "{b}", "the placeholder {a} is missing"),
        ("{a} {b}", "{b} {a} {b}", None),
        ('{"a": 1}', '{"b": 2} {}', None),
    ],
)
def test_placeholders_stay_and_none_are_added(before: str, after: str, problem: str | None) -> None:
    """Defect of section 9's kind: a slot that is lost loses the example; JSON braces are no slots."""
    assert Placeholders().problem(before, after) == problem


def test_a_text_may_not_grow_past_its_limit() -> None:
    """The message has both numbers; a text that was too long may still be shortened step by step."""
    contract = MaxTokens(5)
    problem = contract.problem("short", "word " * 20)
    assert problem == f"the new text has {tokens.count('word ' * 20)} tokens, and 5 are allowed"
    assert contract.problem("word " * 30, "word " * 20) is None
    assert contract.problem("word " * 20, "word " * 20) is not None


def test_all_problems_come_in_one_text() -> None:
    """The optimizer repairs everything in its one further try."""
    found = broken(contracts_for((), 3), "Sort {ticket} by {rule}.", "word " * 9)
    assert found is not None
    assert [part in found for part in ("{ticket} is missing", "{rule} is missing", "3 are allowed")] == [True] * 3


def test_a_constraint_must_be_text_or_contract() -> None:
    """Anything else would be ignored."""
    with pytest.raises(TypeError, match="describe"):
        contracts_for([len], 10)  # type: ignore[list-item]


def test_a_wish_is_told_and_not_checked() -> None:
    """Words cannot be checked, and are passed on as they are."""
    (*_, wish) = contracts_for(["Keep it polite."], 10)
    assert isinstance(wish, Wish)
    assert (wish.describe("x"), wish.problem("x", "rude")) == ("Keep it polite.", None)


def test_what_the_optimizer_is_told() -> None:
    """Limits and placeholders are named beforehand, and nothing where there is nothing to say."""
    assert Placeholders().describe("Sort {a} by {b} and {a}.") == "These placeholders stay: {a}, {b}."
    assert Placeholders().describe("no slots") == NotEmpty().describe("") == ""
    assert MaxTokens(5).describe("one") == "At most 5 tokens; it has 1 now."


@given(st.text(min_size=1).filter(str.strip))
def test_a_text_that_stays_breaks_nothing(text: str) -> None:
    """Law: without a limit in its way, no change is always allowed."""
    assert broken(contracts_for((), 10**9), text, text) is None
