from __future__ import annotations

import pytest

from textgrad_engine.optim.contracts import MaxTokens, Placeholders, contracts_for
from textgrad_engine.optim.contracts.standard import kept_by_some
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


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("f'{day}.{month}.'", "f'{int(day):02}. {name}'", None),
        (r"\sqrt{x}", r"\frac{a}{b}", None),
        ("{ticket} {note}", "{ticket} {other}", None),
        ("{ticket} {note}", "{note}", "the placeholder {ticket} is missing"),
    ],
)
def test_of_the_slots_that_are_named_the_rest_is_text(before: str, after: str, problem: str | None) -> None:
    """Code and LaTeX have braces that no program fills: edits of them are no lost slots."""
    named = ["ticket"] if "ticket" in before else []
    contract = Placeholders(named)
    assert contract.problem(before, after) == problem
    assert contract.describe(before) == ("These placeholders stay: {ticket}." if named else "")


def test_one_of_the_user_s_own_stands_for_the_one_that_always_holds() -> None:
    """Both together would refuse what the user's allows."""
    own = Placeholders([])
    assert contracts_for([own, "Be kind."], 9)[1:3] == (MaxTokens(9), own)
    assert Placeholders() in contracts_for([], 9)
    assert Placeholders() not in contracts_for([], 9, template=False)
    for wrong in ("ticket", [1], 5):
        with pytest.raises(TypeError, match="names of slots, such as"):
            Placeholders(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["{ticket}", "", "e-mail"])
def test_a_name_that_no_slot_can_have_is_refused(name: str) -> None:
    """No text could keep it."""
    with pytest.raises(ValueError, match="a slot's name is letters"):
        Placeholders([name])


def test_a_slot_that_one_of_several_texts_has_is_not_asked_of_all() -> None:
    """Nothing new would be kept in the others; an optimizer says so, as it does of phrases."""
    asked = [Placeholders(["ticket", "note"])]
    assert kept_by_some(asked, ["Sort it.", "{note} {ticket}"]) == (Placeholders(["ticket"]), 1, 0)
    assert kept_by_some(asked, ["{ticket} {note}", "{note} {ticket}"]) is None
    assert kept_by_some([Placeholders(), Placeholders([])], ["Sort it.", "{ticket}"]) is None


def test_names_are_compared_as_names_of_slots_are_and_said_in_one_order() -> None:
    """A set is in another order in each process, so that a run could not be resumed."""
    assert Placeholders(["cafe\u0301"]).problem("{caf\u00e9}", "{cafe\u0301}") is None
    names = [f"slot_{n}" for n in range(9)]
    assert Placeholders(set(names)).kept == tuple(names)
    assert Placeholders(names[::-1]).kept == tuple(names[::-1])
