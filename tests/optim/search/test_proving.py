"""From a proposal to its race: what is left without harmful edits is raced, and where it cannot be, the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.llm import Request
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.proving import proven, trimmed_race
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective

WORDS = [f"{letter}{n}" for n in range(4) for letter in "abz"]


def answer(request: Request) -> Any:
    lines, word = request.messages[0].text.split("\n"), request.messages[-1].text
    return word.upper() if word[0] in lines else word


class World:
    """A patch of lines that shout words with their letter; those with z are right as they are."""

    def __init__(self, *lines: str) -> None:
        self.program = nn.ChatCompletion(
            "{word}", system=nn.Parameter("Repeat.", role="system prompt"), model=FunctionModel(answer)
        )
        rows = [{"id": w, "word": w, "target": w if w[0] == "z" else w.upper()} for w in WORDS]
        self.objective = Objective(self.program, nn.ExactMatch(), rows)
        edits = tuple(Edit("add", 1, line, "asked") for line in lines)
        text, origins = apply_patch("Repeat.", [None], edits, [], 3)
        change = Change(self.program.system, "Repeat.", text, edits, (), 0, "")
        self.found = Found(3, "patch", ("Repeat.",), ((None,),), (text,), (tuple(origins),), changes=(change,))
        self.raced: list[tuple[str, tuple[int, ...]]] = []

    def race(self, found: Found, changed: Sequence[int]) -> Found:
        """Runs everything, and wants more gained than lost by a third."""
        self.raced.append((found.texts[0], tuple(changed)))
        before, after = self.objective.matrix([found.base, found.texts], range(len(WORDS)))
        pairs = [(a or 0.0, b or 0.0) for a, b in zip(before, after)]
        up, down = sum(b > a for a, b in pairs), sum(b < a for a, b in pairs)
        record = RaceRecord(
            "better" if up > down else "no difference", tuple(WORDS), tuple(before), tuple(after), 0.5, 0.0
        )
        return replace(found, race=record)

    def prove(self, looked: Sequence[int] = (), others: Sequence[int] = ()) -> Found:
        return proven(self.objective, (self.program.system,), self.found, looked, others, self.race)


def test_what_is_left_after_a_look_is_raced_and_not_the_whole() -> None:
    """The line that does harm where it was looked is gone before anything is raced."""
    here = World("a", "z")
    assert here.prove(range(len(WORDS))).texts == ("Repeat.\na",)
    assert here.raced == [("Repeat.\na", ())]


def test_what_a_look_leaves_is_not_raced_where_it_does_worse_on_other_examples() -> None:
    """The line "a" is blamed for one word that it spoils; it repairs three others, which were not looked at."""

    def said(request: Request) -> Any:
        lines, word = request.messages[0].text.split("\n"), request.messages[-1].text
        return word.upper() if word[0] in lines or (word == "z0" and "a" in lines) else word

    here = World("a", "b")
    here.program.model = FunctionModel(said)
    unlucky = [WORDS.index(word) for word in ("z0", "b0", "b1")]
    rest = [n for n in range(len(WORDS)) if n not in unlucky]
    assert here.prove(unlucky).texts == ("Repeat.\nb",)
    found = here.prove(unlucky, rest)
    assert found.texts == ("Repeat.\na\nb",)
    assert not found.trimmed
    assert here.raced == [("Repeat.\nb", ()), ("Repeat.\na\nb", ())]


def test_a_lost_race_is_run_again_without_what_does_harm_and_first_where_something_changed() -> None:
    """Nothing was looked at before: the race shows the harm."""
    here = World("a", "z")
    found = here.prove()
    changed = [n for n, word in enumerate(WORDS) if word[0] == "z"] + [n for n, w in enumerate(WORDS) if w[0] == "a"]
    assert here.raced == [("Repeat.\na\nz", ()), ("Repeat.\na", tuple(changed))]
    assert found.race is not None
    assert found.race.outcome == "better"


def test_a_patch_from_which_nothing_gains_is_raced_once() -> None:
    """There is nothing to be saved in it."""
    here = World("z", "useless")
    assert here.prove().race is not None
    assert len(here.raced) == 1


def test_where_what_is_left_cannot_be_raced_the_whole_is() -> None:
    """A line that does harm has a word that the contract wants."""
    here = World("a", "b", "z")

    def race(found: Found, changed: Sequence[int]) -> Found:
        return here.race(found, changed) if "z" in found.texts[0] else replace(found, dropped="no z")

    found = proven(here.objective, (here.program.system,), here.found, range(len(WORDS)), (), race)
    assert found.texts == here.found.texts
    assert found.race is not None
    assert found.race.outcome == "better"


@pytest.mark.parametrize("lost", [False, True])
def test_where_what_is_left_of_a_lost_race_cannot_be_raced_that_race_stands(lost: bool) -> None:
    """And the problem with it is told."""
    here = World("a", "z")

    def race(found: Found, changed: Sequence[int]) -> Found:
        return replace(found, problems=("no answer",), lost=lost) if changed else here.race(found, changed)

    found = trimmed_race(here.objective, (here.program.system,), here.found, race)
    assert found.texts == here.found.texts
    assert found.race is not None
    assert (found.race.outcome, found.problems, found.lost) == ("no difference", ("no answer",), False)


def test_what_could_not_be_raced_for_lack_of_answers_is_not_tried_as_a_whole() -> None:
    """The models are down: asking for more helps nobody."""
    here = World("a", "z")
    raced = []

    def race(found: Found, changed: Sequence[int]) -> Found:
        raced.append(found.texts[0])
        return replace(found, lost=True)

    found = proven(here.objective, (here.program.system,), here.found, range(len(WORDS)), (), race)
    assert (raced, found.lost) == (["Repeat.\na"], True)
