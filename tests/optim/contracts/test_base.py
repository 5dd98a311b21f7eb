from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import templates
from textgrad_engine.optim.contracts import (
    Contract,
    Forbids,
    FrozenLines,
    Lacks,
    Language,
    Matches,
    NoCopying,
    Requires,
    Wish,
    broken,
    contracts_for,
)


def test_all_problems_come_in_one_text() -> None:
    """The optimizer repairs everything in its one further try."""
    found = broken(contracts_for((), 3), "Sort {ticket} by {rule}.", "word " * 9)
    assert found is not None
    assert [part in found for part in ("{ticket} is missing", "{rule} is missing", "3 are allowed")] == [True] * 3


def test_a_constraint_must_be_text_or_contract() -> None:
    """Anything else would be ignored."""
    with pytest.raises(TypeError, match="describe"):
        contracts_for([len], 10)  # type: ignore[list-item]


def test_a_contract_of_ones_own_that_would_check_nothing_is_not_made() -> None:
    """A subclass that spells its check otherwise had the protocol's, which says that all is well."""

    class Short(Contract):
        def check(self, before: str, after: str) -> str | None:
            return "too long"

    with pytest.raises(TypeError, match=r"abstract method '?problem"):
        Short()  # type: ignore[abstract]


def test_a_contract_that_answers_yes_or_no_is_refused() -> None:
    """False would be a problem without words."""

    class Short(Contract):
        def problem(self, before: str, after: str) -> str | None:
            return len(after) < 5  # type: ignore[return-value]

    assert Short().describe("a") == ""
    with pytest.raises(TypeError, match=r"Short.problem\(\) gave False; give None where the contract is kept"):
        broken([Short()], "a", "abcdef")


def test_a_class_of_contracts_is_no_contract() -> None:
    """It has the two methods, and would fail in the middle of a run that is paid for."""
    with pytest.raises(TypeError, match=r"got NotEmpty; write NotEmpty\(\.\.\.\)"):
        contracts_for([NotEmptyClass], 10)  # type: ignore[list-item]


def test_a_wish_is_told_and_not_checked() -> None:
    """Words cannot be checked, and are passed on as they are."""
    (*_, wish) = contracts_for(["Keep it polite."], 10)
    assert isinstance(wish, Wish)
    assert (wish.describe("x"), wish.problem("x", "rude")) == ("Keep it polite.", None)


def test_the_words_of_a_contract_can_be_the_users(tmp_path: Path) -> None:
    """What is said to a model is in prompts/, and may be said differently."""
    header = "---\nname: contract_language\npurpose: mine\nversion: 1\nslots: language, other, line\n---\n"
    (tmp_path / "contract_language.md").write_text(f"{header}# User\nOnly {{{{ language }}}}, please.\n", "utf-8")
    with templates.use_prompts(tmp_path):
        assert Language("fr").describe("x") == "Only French, please."


@given(st.text(min_size=1).filter(str.strip))
def test_a_text_that_stays_breaks_nothing(text: str) -> None:
    """Law: without a limit in its way, no change is always allowed."""
    assert broken(contracts_for((), 10**9), text, text) is None


EVERY: list[Contract] = [
    *contracts_for((), 5),
    Matches(r"\d", meaning="It has a number."),
    Matches("x", full=True),
    Lacks("[{<]"),
    Requires(["be brief", "{x}"]),
    Forbids(["please", "<b>"], match_case=True),
    FrozenLines(["a", "{{ b }}"], between=("<", ">")),
    FrozenLines(lambda line: line.startswith("#")),
    Language("en"),
    NoCopying(["{{ a }} <b> c d e f g h i"], n=2),
]
rough = st.text(alphabet=st.sampled_from("ab{}<>%# \n\r\0'\"1xé不") | st.characters(), max_size=40)


@pytest.mark.parametrize("contract", EVERY, ids=lambda contract: type(contract).__name__)
@given(before=rough, after=rough)
def test_any_text_gets_an_answer_in_words(contract: Contract, before: str, after: str) -> None:
    """Law: no text is an error, a problem is always said, and texts are never filled in as templates."""
    told, problem = contract.describe(before), contract.problem(before, after)
    assert isinstance(told, str)
    assert problem is None or problem.strip()
    assert contract.problem(before, after) == problem


NotEmptyClass = type(contracts_for((), 1)[0])
