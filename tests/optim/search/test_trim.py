"""A patch that holds good edits and bad ones: the bad ones go, and only what changed is run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.errors import AuthenticationFailed, BadRequest
from textgrad_engine.llm import Request
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.trim import holds, trimmed
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective

WORDS = [f"{letter}{n}" for letter in "abz" for n in range(4)]
"""Words with a and b are to be shouted; those with z are right as they are."""


class World:
    """A program that shouts as `said` tells, and a patch of some lines for it."""

    def __init__(self, said: Callable[[Sequence[str], str], str]) -> None:
        self.ran: list[tuple[tuple[str, ...], str]] = []

        def answer(request: Request) -> Any:
            lines, word = tuple(request.messages[0].text.split("\n")), request.messages[-1].text
            self.ran.append((lines[1:], word))
            return said(lines, word)

        self.program = nn.ChatCompletion(
            "{word}", system=nn.Parameter("Repeat.", role="system prompt"), model=FunctionModel(answer)
        )
        rows = [{"id": w, "word": w, "target": w if w[0] == "z" else w.upper()} for w in WORDS]
        self.objective = Objective(self.program, nn.ExactMatch(), rows)

    def trim(self, *lines: str, looked: Sequence[int] = tuple(range(len(WORDS)))) -> Found | None:
        edits = tuple(Edit("add", 1, line, "asked") for line in lines)
        text, origins = apply_patch("Repeat.", [None], edits, [], 3)
        change = Change(self.program.system, "Repeat.", text, edits, (), 0, "")
        base, own = ("Repeat.",), ((None,),)
        lost = RaceRecord("no difference", (), (), (), 0.5, 0.0)
        found = Found(3, "patch", base, own, (text,), (tuple(origins),), changes=(change,), race=lost)
        return trimmed(self.objective, (self.program.system,), found, looked)


def by_line(lines: Sequence[str], word: str) -> str:
    """ "a" and "b" shout their own words, "all" shouts everything, "neither" nothing."""
    if "neither" in lines:
        return word
    return word.upper() if word[0] in lines or "all" in lines else word


def test_what_does_harm_goes_and_the_rest_keeps_its_ids() -> None:
    """The line that shouts everything costs the right ones; what the others bring stays."""
    here = World(by_line)
    rest = here.trim("a", "all", "b")
    assert rest is not None
    assert rest.texts == ("Repeat.\na\nb",)
    assert [edit.id for change in rest.changes for edit in change.edits] == ["3.1", "3.3"]
    assert [edit.text for change in rest.trimmed for edit in change.edits] == ["all"]
    assert rest.race is None


def test_only_what_changed_is_run_without_each_edit() -> None:
    """Three edits, of which one spoils three examples: they are run without each, and all examples with what is left.

    A race begins on the same ones, so these are not for nothing.
    """

    def said(lines: Sequence[str], word: str) -> str:
        return word.upper() if (word[0] == "z" and "y" in lines) or (word in ("a0", "a1") and len(lines) > 1) else word

    here = World(said)
    looked = [WORDS.index(word) for word in ("a0", "a1", "b0", "z0", "z1", "z2")]
    here.trim("x", "y", "w", looked=looked)
    without = [(lines, word) for lines, word in here.ran if len(lines) == 2]
    left = [(("x", "w"), word) for word in ("a0", "a1", "b0", "z0", "z1", "z2")]
    assert len(here.ran) == 6 + 6 + len(without)
    assert sorted(without) == sorted(
        [(pair, word) for pair in (("x", "y"), ("y", "w")) for word in ("z0", "z1", "z2")] + left
    )


def test_of_many_that_changed_a_few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a patch of many edits costs more does not grow with the number of examples that it changes."""
    monkeypatch.setattr("textgrad_engine.optim.search.trim.MOST_LOOKED", 2)
    here = World(by_line)
    rest = here.trim("a", "all", "b")
    assert rest is not None
    assert rest.texts == ("Repeat.\na\nb",)
    without_each = 3 * 2 + 2  # three edits, one of them under suspicion
    left = len(WORDS) - 2 - 2  # what is left is run on all that were looked at
    assert len(here.ran) == 2 * len(WORDS) + without_each + left


@pytest.mark.parametrize("lines", [("a", "b"), ("a",), ("all",)])
def test_nothing_is_tried_without(lines: tuple[str, ...]) -> None:
    """Where nothing got worse there is nothing to find; a single edit is refused as a whole."""
    here = World(by_line)
    assert here.trim(*lines) is None
    assert all(ran in ((), lines) for ran, _ in here.ran)


def test_of_two_edits_that_spoil_the_same_answers_both_go() -> None:
    """They stay wrong whichever of them is missing; run alone, each spoils them."""

    def said(lines: Sequence[str], word: str) -> str:
        return "?" if word[0] == "z" and {"harm", "more harm"} & set(lines) else by_line(lines, word)

    here = World(said)
    rest = here.trim("a", "harm", "b", "more harm")
    assert rest is not None
    assert rest.texts == ("Repeat.\na\nb",)
    assert [edit.text for change in rest.trimmed for edit in change.edits] == ["harm", "more harm"]
    alone = [(lines, word) for lines, word in here.ran if len(lines) == 1]
    assert sorted(alone) == sorted([((line,), f"z{n}") for line in ("a", "b", "harm", "more harm") for n in range(4)])


def test_an_edit_that_does_harm_alone_stays_for_what_it_brings() -> None:
    """It spoils two answers and repairs four; the one beside it spoils the same two and brings nothing."""

    def said(lines: Sequence[str], word: str) -> str:
        return "?" if word in ("z0", "z1") and {"a", "harm"} & set(lines) else by_line(lines, word)

    rest = World(said).trim("a", "harm", "b")
    assert rest is not None
    assert rest.texts == ("Repeat.\na\nb",)


def test_what_most_edits_lose_alone_is_no_edits_fault() -> None:
    """Any other text than the one of before loses it."""

    def said(lines: Sequence[str], word: str) -> str:
        return "?" if word in ("z0", "z1") and len(lines) > 1 else by_line(lines, word)

    assert World(said).trim("a", "b", "c") is None


def test_what_did_harm_only_in_company_is_not_run_alone() -> None:
    """Without it nothing is worse any more, so nothing is left to be found."""
    here = World(by_line)
    here.trim("a", "all", "b")
    assert all(len(lines) != 1 for lines, _ in here.ran)


def test_edits_that_are_of_use_together_stay_together() -> None:
    """Each of them is missed, so neither is to blame for the third."""

    def said(lines: Sequence[str], word: str) -> str:
        both = {"left", "right"} <= set(lines) and word[0] == "a"
        return word.upper() if both or ("harm" in lines and word[0] == "z") else word

    rest = World(said).trim("left", "harm", "right")
    assert rest is not None
    assert rest.texts == ("Repeat.\nleft\nright",)


def test_a_patch_of_harm_alone_is_left_to_its_race() -> None:
    """Nothing would be left of it; a race says what it is."""

    def said(lines: Sequence[str], word: str) -> str:
        wrong = ("one" in lines and word == "z0") or ("two" in lines and word == "z1")
        return "?" if wrong else word

    assert World(said).trim("one", "two") is None


def test_what_does_harm_goes_where_nothing_got_better() -> None:
    """What is left changes nothing on the examples that were looked at; a race has others."""

    def said(lines: Sequence[str], word: str) -> str:
        return "?" if "harm" in lines and word[0] == "z" else word

    rest = World(said).trim("a", "harm")
    assert rest is not None
    assert rest.texts == ("Repeat.\na",)


def test_an_example_without_an_answer_before_says_nothing_of_the_edits() -> None:
    """With the patch it has one, or it has none either: nobody knows what it changed by."""

    def said(lines: Sequence[str], word: str) -> str:
        if word == "z3" and len(lines) == 1:
            raise BadRequest("no", status=400)
        return by_line(lines, word)

    rest = World(said).trim("a", "all", "b")
    assert rest is not None
    assert rest.texts == ("Repeat.\na\nb",)


def test_an_edit_that_costs_as_much_as_it_brings_stays() -> None:
    """Of equals nothing is taken away on a few examples; the race has more of them."""

    def said(lines: Sequence[str], word: str) -> str:
        return word.upper() if ("even" in lines and word in ("a0", "z0")) or ("b" in lines and word[0] == "b") else word

    assert World(said).trim("even", "b") is None


@pytest.mark.parametrize("lines", [("a", "b", "c"), ("a", "b", "c", "d", "e")])
def test_what_any_other_wording_undoes_is_no_edits_fault(lines: tuple[str, ...]) -> None:
    """The right answers that this one wording loses are right again whichever edit is missing."""

    def said(there: Sequence[str], word: str) -> str:
        return "?" if word in ("z0", "z1") and set(lines) <= set(there) else by_line(there, word)

    assert World(said).trim(*lines) is None


def test_of_two_edits_neither_goes_for_one_answer_that_comes_right_without_either() -> None:
    """One of them may be to blame, or the wording: half of what one example changed by is no proof."""

    def said(lines: Sequence[str], word: str) -> str:
        return "?" if word == "z0" and {"a", "b"} <= set(lines) else by_line(lines, word)

    assert World(said).trim("a", "b") is None


def test_who_does_harm_is_found_among_answers_that_change_by_themselves() -> None:
    """What comes right without one edit alone is held against that one."""

    def said(lines: Sequence[str], word: str) -> str:
        by_chance = word in ("z0", "z1") and {"a", "harm", "b"} <= set(lines)
        return "?" if by_chance or ("harm" in lines and word in ("z2", "z3")) else by_line(lines, word)

    rest = World(said).trim("a", "harm", "b")
    assert rest is not None
    assert rest.texts == ("Repeat.\na\nb",)


def test_edits_that_do_harm_each_to_other_examples_go_together() -> None:
    """What the others leave wrong speaks for none of them."""

    def said(lines: Sequence[str], word: str) -> str:
        harm = any(f"harm {n}" in lines and word == f"z{n}" for n in range(3))
        return "?" if harm else by_line(lines, word)

    rest = World(said).trim("harm 0", "a", "harm 1", "harm 2")
    assert rest is not None
    assert rest.texts == ("Repeat.\na",)


def test_no_edit_is_kept_for_an_answer_that_goes_wrong_whichever_is_missing() -> None:
    """It was right by this one wording; three edits under suspicion show that."""

    def said(lines: Sequence[str], word: str) -> str:
        harm = [n for n in range(3) if f"harm {n}" in lines]
        if word == "a0" and len(harm) == 3:
            return "A0"
        return "?" if any(word == f"z{n}" for n in harm) else by_line(lines, word)

    rest = World(said).trim("harm 0", "b", "harm 1", "harm 2")
    assert rest is not None
    assert rest.texts == ("Repeat.\nb",)


def test_texts_that_break_the_program_are_left_to_the_race() -> None:
    """It says how many examples had no answer."""

    def said(lines: Sequence[str], word: str) -> str:
        if len(lines) > 1:
            raise BadRequest("no", status=400)
        return word

    assert World(said).trim("a", "b") is None


def test_a_patch_whose_parts_break_the_program_is_left_to_the_race() -> None:
    """The whole gives answers, some of them worse, and none comes without one of its edits: nobody is to blame."""

    def said(lines: Sequence[str], word: str) -> str:
        if len(lines) == 2:
            raise BadRequest("no", status=400)
        return by_line(lines, word)

    assert World(said).trim("a", "all") is None


def test_a_model_that_cannot_be_asked_at_all_is_said_so() -> None:
    """That is nothing that a search could go on from."""

    def said(lines: Sequence[str], word: str) -> str:
        raise AuthenticationFailed("bad key", status=401)

    with pytest.raises(AuthenticationFailed):
        World(said).trim("a", "b")


def with_lines(here: World, *lines: str) -> Found:
    return Found(3, "patch", ("Repeat.",), ((None,),), ("\n".join(["Repeat.", *lines]),), ((None,) * (1 + len(lines)),))


@pytest.mark.parametrize(
    ("whole", "rest", "others", "expected"),
    [
        (("a", "b"), ("a",), ("b0", "z0"), False),
        (("a", "all"), ("a",), ("a0", "z0"), True),
        (("a", "b"), ("a",), ("a0", "z0"), True),  # nothing speaks against it
        (("a", "b", "all"), ("a",), ("b0", "z0"), True),
        (("a", "b"), ("a",), (), True),
    ],
)
def test_what_is_left_holds_where_it_does_no_worse_on_others(
    whole: tuple[str, ...], rest: tuple[str, ...], others: tuple[str, ...], expected: bool
) -> None:
    """By the sum over examples that did not choose what goes."""
    here = World(by_line)
    positions = [WORDS.index(word) for word in others]
    assert holds(here.objective, with_lines(here, *whole), with_lines(here, *rest), positions) is expected


def test_of_many_others_a_few_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones, with both texts."""
    monkeypatch.setattr("textgrad_engine.optim.search.trim.CHECKED", 2)
    here = World(by_line)
    assert not holds(here.objective, with_lines(here, "a"), with_lines(here, "b"), range(len(WORDS)))
    assert sorted(here.ran) == [(("a",), "a0"), (("a",), "a1"), (("b",), "a0"), (("b",), "a1")]


def test_texts_without_answers_are_left_to_a_race() -> None:
    """Nothing is known of them here, and the race says why."""

    def said(lines: Sequence[str], word: str) -> str:
        if "broken" in lines:
            raise BadRequest("no", status=400)
        return word

    here = World(said)
    assert holds(here.objective, with_lines(here, "a", "broken"), with_lines(here, "broken"), range(4))
