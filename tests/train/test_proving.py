"""A step of `TGD` with an edit that does harm: the others are not lost with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import budget, nn, use_models
from textgrad_engine.errors import BadRequest
from textgrad_engine.llm import Request
from textgrad_engine.optim import TGD, Requires
from textgrad_engine.optim.search import trim
from textgrad_engine.report.lineage import lineage_of
from textgrad_engine.testing import FunctionModel, feedback_for, simulated_task
from textgrad_engine.train import Trainer, TrainResult, proving
from textgrad_engine.train.estimate import estimate

WORDS = [f"{letter}{n}" for n in range(16) for letter in "abz"]
"""Words with a and b are to be shouted; those with z are right as they are."""


def rows(*words: str) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word if word[0] == "z" else word.upper()} for word in words]


def said_by(lines: list[str], word: str) -> str:
    """A line "a" shouts the words with a, and so on; "neither" shouts nothing."""
    if "neither" in lines:
        return word
    return word.upper() if word[0] in lines else word


class World:
    """A program of which `TGD` makes a step: its lines are added, or with a text all is written anew."""

    def __init__(
        self, *lines: str, text: str = "", seed: str = "Repeat.", said: Callable[..., str] = said_by, **how: Any
    ) -> None:
        self.lines, self.text, self.said = lines, text, said
        self.ran: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter(seed, role="system prompt"))
        mode = "rewrite" if text else "patch"
        self.optimizer = TGD(self.program.parameters(), mode=mode, momentum=9, **how)  # type: ignore[arg-type]

    def answer(self, request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            self.asked.append(request.messages[-1].text)
            if self.text:
                return {"text": self.text, "reason": "asked"}
            edit = {"op": "add", "line": 1, "reason": "asked", "feedback": [1]}
            return {"edits": [{**edit, "text": line} for line in self.lines]}
        prompt, word = request.messages[0].text, request.messages[-1].text
        self.ran.setdefault(prompt, []).append(word)
        return self.said(prompt.split("\n"), word)

    def fit(self, steps: int = 1) -> TrainResult:
        with use_models(forward=self.model):
            return Trainer(5, batch_size=9, max_steps=steps, feedback_batch_size=9).fit(
                self.program, nn.ExactMatch(), self.optimizer, rows(*WORDS[:9]), rows(*WORDS[9:])
            )


def test_what_is_left_is_kept_and_the_step_says_what_it_goes_without() -> None:
    """One line repairs a third of the examples, the other one breaks another third."""
    here = World("a", "z")
    result = here.fit()
    assert result.best["system"] == here.program.system.data == "Repeat.\na"
    (step,) = result.steps
    assert step.kept
    assert step.why == "better; without 1 of its edits, which did harm in it"
    (change,) = step.changes
    assert ([edit.text for edit in change.edits], change.before, change.after) == (["a"], "Repeat.", "Repeat.\na")
    assert step.race is not None
    assert not step.race.lost
    assert step.val_mean == result.best_val.mean  # type: ignore[union-attr]


def test_a_line_that_is_left_can_be_traced() -> None:
    """Its edit keeps the number that it has in the patch; the race is the one that it won without the others."""
    result = World("z", "a").fit()
    found = lineage_of(result, 2)
    assert (found.text, found.edit, found.reason) == ("a", "1.2", "asked")
    assert found.accepted is not None
    assert found.accepted.race == result.steps[0].race


def test_harm_that_the_first_look_misses_is_found_after_the_race() -> None:
    """Only words suffer that were not looked at; a step that loses its race for it is raced again without."""

    def said(lines: list[str], word: str) -> str:
        harmed = "harm" in lines and word[0] == "z" and word not in looked
        return word.upper() if harmed or (word[0] == "a" and int(word[1:]) % 2 and "a" in lines) else word

    looked: set[str] = set()
    plain = World("a", "b", said=said)
    plain.fit()
    looked |= {word for word in plain.ran["Repeat.\na\nb"][:16] if word[0] == "z"}
    here = World("a", "harm", said=said)
    result = here.fit()
    assert looked
    assert result.best["system"] == "Repeat.\na"


def test_the_optimizer_is_told_of_the_edits_that_went_also_when_the_rest_is_not_kept() -> None:
    """The next request shows both, each with what became of it."""
    here = World("z", "useless")
    result = here.fit(steps=2)
    assert result.best == result.seed
    assert not result.steps[0].kept
    assert [edit.text for change in result.steps[0].changes for edit in change.edits] == ["useless"]
    history = [line for line in here.asked[1].split("\n") if line.startswith("- ")]
    (harm,) = [line for line in history if "it did harm beside the others" in line]
    (rest,) = [line for line in history if "taken back" in line]
    assert "z" in harm
    assert "useless" in rest
    assert rest.endswith("taken back: no difference shown")  # which is none to have done harm


def test_of_several_edits_the_optimizer_is_told_that_what_became_of_them_is_that_of_all() -> None:
    """Who reads "kept: 0.3 -> 0.7" behind each of two edits takes each for the gain of both."""
    here = World("a", "useless")
    here.fit(steps=2)
    history = [line for line in here.asked[1].split("\n") if line.startswith("- added")]
    assert len(history) == 2
    for line in history:
        assert re.search(r"— kept: validation score \d\.\d{3} -> \d\.\d{3} \(with all 2 edits of its step\)$", line)


def test_a_text_that_was_written_as_a_whole_is_taken_for_its_edits() -> None:
    """The lines that changed are tried without; each that is left keeps the feedback that was shown."""
    result = World(text="a\nRepeat.\nz").fit()
    assert result.best["system"] == "a\nRepeat."
    assert lineage_of(result, 1).evidence[0].text == "Say to shout."


def test_where_all_lines_in_a_row_are_written_anew_each_is_tried_without() -> None:
    """Of three entries in other words one does harm; it is as before, and the two others are kept.

    Trimming tried without the removal of each old line, and without all that was written, and left a stump.
    """

    def said(lines: list[str], word: str) -> str:
        return word.upper() if any(line.endswith(f" and shout {word[0]}") for line in lines) else word

    seed = "letters: repeat these\nwords: repeat them\nnames: say those"
    text = "letters: repeat these and shout a\nwords: repeat them and shout z\nnames: say those and shout b"
    here = World(text=text, seed=seed, said=said)
    kept = here.fit().best["system"]
    assert kept == "letters: repeat these and shout a\nwords: repeat them\nnames: say those and shout b"


def test_a_text_of_too_many_changes_is_raced_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would be run."""
    monkeypatch.setattr(proving, "MOST_EDITS", 1)
    here = World("a", "z")
    assert here.fit().best["system"] == "Repeat."
    assert set(here.ran) == {"Repeat.", "Repeat.\na\nz"}


def test_a_single_edit_costs_no_look() -> None:
    """There is nothing to go without: it is raced, and run on no example twice."""
    here = World("a")
    here.fit()
    assert set(here.ran) == {"Repeat.", "Repeat.\na"}
    assert len(here.ran["Repeat.\na"]) == len(set(here.ran["Repeat.\na"]))


def test_a_part_that_breaks_the_contract_is_not_raced() -> None:
    """The word that must be there is in the line that does harm; the whole is raced, and loses."""
    here = World("a", "z", constraints=[Requires(["z"])])
    result = here.fit()
    assert result.best == result.seed
    assert here.ran["Repeat.\na"]  # tried by itself, and not raced: what was lost in the race is lost with the other
    (step,) = result.steps
    assert step.race is not None
    assert step.race.lost
    assert step.why == ""


def test_an_answer_that_is_lost_in_the_second_race_leaves_the_first_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left breaks the program, which shows when it is raced; what the whole was worth is known by then."""
    seen: list[str] = []

    def said(lines: list[str], word: str) -> str:
        if lines == ["Repeat.", "a"] and word not in quick:
            seen.append(word)
            raise BadRequest("no", status=400)
        return said_by(lines, word)

    quick: set[str] = set()
    plain = World("a", "z")
    looks: list[int] = []

    def trimmed(*arguments: Any) -> Any:
        looks.append(len(arguments))
        return None if len(looks) % 2 else trim.trimmed(*arguments)  # nothing is found before the first race

    monkeypatch.setattr("textgrad_engine.optim.search.proving.trimmed", trimmed)
    plain.fit()
    quick |= set(plain.ran["Repeat.\na"][:18])  # what it is run on to find out that it is the other one
    result = World("a", "z", said=said).fit()
    assert seen
    assert (result.status, result.best) == ("finished", result.seed)
    (step,) = result.steps
    assert step.race is not None
    assert step.race.lost
    assert "the race was given up" in step.problems[0]


def test_a_shorter_text_is_looked_at_where_it_may_do_harm() -> None:
    """A line is removed that a quarter of the right examples needs: what is right is run first, and it stays."""

    def said(lines: list[str], word: str) -> str:
        return word.upper() if word[0] == "a" and "For a: shout." in lines else word

    here = World(text="Repeat.", seed="Repeat.\nFor a: shout.", said=said)
    result = here.fit()
    assert result.best == result.seed
    (step,) = result.steps
    assert step.race is not None
    first = step.race.examples[:16]
    assert sum(word[0] in "az" for word in first) >= 8
    assert step.race.outcome == "worse"


def test_a_shorter_text_that_does_no_harm_is_taken_after_a_fair_look() -> None:
    """What is right is where harm would show: eighteen such examples, and not the eight of a glance."""
    here = World(
        text="Repeat.", seed="Repeat.\nBe kind.", said=lambda lines, word: word.upper() if word[0] == "a" else word
    )
    (step,) = here.fit().steps
    assert step.kept
    assert step.race is not None
    right = [name for name, score in zip(step.race.examples, step.race.before) if score == 1]
    assert len(right) >= proving.LEAST_RIGHT > 8


def test_the_estimate_holds() -> None:
    """What a step runs that is trimmed twice is in the most that it tells."""
    here = World("a", "z", "useless", "more")
    data = rows(*WORDS[:9]), rows(*WORDS[9:])
    trainer = Trainer(5, batch_size=9, max_steps=1, feedback_batch_size=9)
    most = estimate(trainer, here.program, nn.ExactMatch(), here.optimizer, *data).calls["forward"].high
    here.fit()
    assert len(WORDS) + 39 < sum(map(len, here.ran.values())) <= most


def test_what_won_its_race_is_taken_back_where_all_of_the_validation_set_says_worse() -> None:
    """Of 200 examples 20 fail, and come out right with any other words: races that these begin may say "better"."""
    task = simulated_task(rules=4, seed=4, train=48, val=200, test=1, noise=0.1)
    program = task.program()
    with use_models(forward=task.model):
        result = Trainer(max_epochs=4, batch_size=16).fit(
            program, task.loss, TGD(program.parameters(), max_edits=4), task.train, task.val
        )
    assert result.seed_val is not None
    assert result.best_val is not None
    means = [result.seed_val.mean, *(step.val_mean for step in result.steps if step.kept and step.val_mean is not None)]
    assert means == sorted(means)
    assert result.best_val.mean == means[-1]
    back = [step for step in result.steps if "does worse on all 200 validation examples" in step.why]
    assert back
    assert not any(step.kept for step in back)


@pytest.mark.parametrize("calls", [840, 1340])
def test_what_a_budget_cut_off_counts_as_far_as_it_was_paid_for(calls: int) -> None:
    """Of 21 examples that a race was decided by, 20 may be right; of the 370 that were answered as well, more fail."""
    task = simulated_task(rules=4, seed=3, train=64, val=400, test=1, noise=0.1)
    program = task.program()
    with use_models(forward=task.model), budget(calls=calls):
        result = Trainer(max_epochs=8, batch_size=16).fit(
            program, task.loss, TGD(program.parameters()), task.train, task.val
        )
    assert result.status == "budget"
    assert result.best != result.seed
    assert result.best_val is not None
    assert len(result.best_val.answered) > 350
