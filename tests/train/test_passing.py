"""`Guards(passing=...)`: which score of an example that must never break is good enough."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import nn, optim, use_models
from textgrad_engine.data import DataLoader
from textgrad_engine.errors import DataError
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Guards, Objective, Trainer, TrainResult
from textgrad_engine.train.settings import settings_of

from .test_guards import KEPT, OPTIMIZERS, WORDS, answer, rows


class Graded:
    """Answers the word that must not break with a mark by the prompt, run after run, which its metric reads."""

    def __init__(self, **marks: tuple[float, ...]) -> None:
        self.marks = marks
        self.runs: collections.Counter[str] = collections.Counter()
        self.model = FunctionModel(self.answer)
        self.loss = nn.Metric(self.mark, "is right", scale=(0, 1))

    def answer(self, request: Request) -> Any:
        if request.purpose != "forward" or request.messages[-1].text != KEPT:
            return answer(request)
        kind = "new" if "Shout" in request.messages[0].text else "old"
        nth = self.runs[kind]
        self.runs[kind] += 1
        return f"mark {self.marks[kind][min(nth, len(self.marks[kind]) - 1)]}"

    def mark(self, said: str, target: str) -> float:
        return float(said.removeprefix("mark ")) if said.startswith("mark ") else float(said == target)

    def fit(self, make: Any, guards: Guards, steps: int = 1) -> TrainResult:
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        with use_models(forward=self.model):
            trainer = Trainer(batch_size=6, max_steps=steps, guards=guards)
            made = make(program.parameters())
            return trainer.fit(program, self.loss, made, rows(*WORDS[:6]), rows(*WORDS[12:20]))

    def objective(self, guards: Guards) -> Objective:
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"), model=self.model)
        return Objective(program, self.loss, rows(*WORDS[12:20]), guards=guards)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_mark_that_is_good_enough_refuses_nothing(name: str) -> None:
    """Where a judge is off by a little, the best run so far is luck; by it alone the same text would be refused."""
    by_luck = Graded(old=(1.0,), new=(0.8,)).fit(OPTIMIZERS[name], Guards((KEPT,)), steps=4)
    assert by_luck.best == by_luck.seed
    graded = Graded(old=(1.0,), new=(0.8,))
    result = graded.fit(OPTIMIZERS[name], Guards((KEPT,), passing=0.75), steps=4)
    assert "Shout" in result.best["system"]
    assert graded.runs["new"] == 1, "what passes is not run again"
    assert not any("must never break" in term for term in result.terms), "it stands as it should"


def test_a_mark_below_it_is_run_again_and_refused() -> None:
    """It says what would have passed, and which mark there was."""
    graded = Graded(old=(0.9,), new=(0.7, 0.5, 0.6))
    result = graded.fit(optim.TGD, Guards((KEPT,), passing=0.75))
    assert result.steps[0].why == f"refused: {KEPT} must never break: 0.900 -> 0.700, and 0.75 would pass"
    assert graded.runs["new"] == 3


def test_a_run_that_reaches_it_is_enough() -> None:
    """Not the best that the texts of now ever came to."""
    graded = Graded(old=(1.0,), new=(0.7, 0.75, 0.6))
    found = graded.objective(Guards((KEPT,), passing=0.75))
    assert found.refusal(("Repeat.",), ("Shout.",)) == ""
    assert graded.runs["new"] == 2


def test_what_was_below_it_must_not_get_worse() -> None:
    """As of floors: what is missed already need not be reached."""
    guards = Guards((KEPT,), reruns=0, passing=0.75)
    assert Graded(old=(0.5,), new=(0.5,)).objective(guards).refusal(("Repeat.",), ("Shout.",)) == ""
    told = Graded(old=(0.5,), new=(0.4,)).objective(guards).refusal(("Repeat.",), ("Shout.",))
    assert told == f"{KEPT} must never break: 0.500 -> 0.400, and 0.75 would pass"


def test_it_is_about_what_must_never_break_alone() -> None:
    """An edit that costs a floor's example is found as before, however good that example still is."""
    graded = Graded(old=(1.0,), new=(0.8,))
    others = tuple(WORDS[14:16])
    found = graded.objective(Guards(others, {("kind", "quiet"): 0.9}, reruns=0, passing=0.75))
    place = found.val.index(KEPT)
    assert found.breaking(("Repeat.",), [("Shout.",)], [place]) == [(place,)]
    assert found.broken(("Repeat.",), ("Shout.",)) == (place,)


def test_an_edit_that_costs_a_floor_is_found_by_an_example_that_must_never_break_too() -> None:
    """What passes for the one may be what the other is missed by; else an edit that does no harm would go for it."""
    floor = {("kind", "quiet"): 0.9}
    for floors, edits, reruns in (({}, [()], 2), (floor, [(1,)], 0), (floor, [(1,)], 2)):
        graded = Graded(old=(1.0,), new=(0.8,))
        found = graded.objective(Guards((KEPT,), floors, reruns=reruns, passing=0.75))
        assert bool(found.refusal(("Repeat.",), ("Shout.",))) is bool(floors)
        assert graded.runs["new"] == 1, "what passes is not run again"
        assert found.breaking(("Repeat.",), [("Shout.",)], [found.val.index(KEPT)]) == edits


@pytest.mark.parametrize(
    ("before", "after", "passing", "told"),
    [
        (0.9, 0.7496, 0.75, "0.9000 -> 0.7496, and 0.75 would pass"),
        (0.7504, 0.7496, 0.75, "0.7504 -> 0.7496, and 0.75 would pass"),
        (1.0, 0.66666, 2 / 3, "1.00000 -> 0.66666, and 0.666667 would pass"),
        (5.0, 2.0, 4, "5.000 -> 2.000, and 4 would pass"),
    ],
)
def test_a_mark_right_below_it_is_told_apart_from_it(before: float, after: float, passing: float, told: str) -> None:
    """With three decimals it would read as what passes."""
    guarded = Guards((KEPT,), passing=passing).on(rows(KEPT))
    assert guarded.broken({0: before}, {0: after}) == f"{KEPT} must never break: {told}"


def test_what_is_below_a_mark_is_told_with_as_many_decimals_as_that_has() -> None:
    """Not rounded to one that nobody set, such as the best one."""
    guarded = Guards((KEPT,), passing=0.9996).on(rows(KEPT), scale=(0, 1))
    (told,) = guarded.standing({0: 0.5}, {0: 0.5}, 1.0)
    assert "scores below 0.9996, as it did" in told


def test_what_was_below_it_in_one_run_is_not_said_to_be_as_good_as_before_in_others() -> None:
    """It passed, and did worse than with the seed prompt in each; one below it before is held to what it was."""
    passed = Graded(old=(1.0,), new=(0.7, 0.8)).fit(optim.TGD, Guards((KEPT,), passing=0.75))
    (told,) = [term for term in passed.terms if "must never break" in term]
    assert told == f"of 1 that must never break, {KEPT} scored below 0.750 in one run, but not in each"
    low = Graded(old=(0.5,), new=(0.4, 0.5)).fit(optim.TGD, Guards((KEPT,), passing=0.75))
    assert f"{KEPT} did worse than with the seed prompt in one run, but not in each" in " ".join(low.terms)


def test_the_result_names_what_is_below_it() -> None:
    """Not what is below the best score that there can be, which nobody asked for."""
    guards = Guards((KEPT,), passing=0.75)
    low = Graded(old=(0.5,), new=(0.6,)).fit(optim.TGD, guards)
    assert f"of 1 that must never break, {KEPT} scores below 0.750, as it did with the seed prompt" in low.terms
    high = Graded(old=(0.8,), new=(0.8,)).fit(optim.TGD, guards)
    assert not [term for term in high.terms if "must never break" in term]


def test_marks_that_vary_below_it_are_told_without_the_advice_to_set_it() -> None:
    """They may have refused what is no worse, and it is set."""

    def said(guards: Guards) -> list[str]:
        result = Graded(old=(0.7, 0.8), new=(0.4,)).fit(optim.TGD, guards)
        return [term for term in result.terms if "marks below the best one" in term]

    (without,) = said(Guards((KEPT,)))
    assert without.endswith("; passing=... says which score is good enough, and a floor under their mean is steadier")
    graded = Graded(old=(0.7,), new=(0.4, 0.5)).fit(optim.TGD, Guards((KEPT,), passing=0.75))
    (told,) = [term for term in graded.terms if "marks below the best one" in term]
    assert told.endswith("so they may have refused changes that are no worse; a floor under their mean is steadier")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"passing": 0.75, "floors": {("kind", "loud"): 0.5}}, "passing=0.75 is about examples of never_break, and it"),
        ({"passing": float("nan"), "never_break": ("w1",)}, "passing must be a score, such as 0.75, or None, got nan"),
        ({"passing": "high", "never_break": ("w1",)}, "passing must be a score, such as 0.75, or None, got 'high'"),
        ({"passing": True, "never_break": ("w1",)}, "passing must be a score, such as 0.75, or None, got True"),
    ],
)
def test_what_is_no_score_is_refused(settings: dict[str, Any], message: str) -> None:
    """And so is one that is about nothing."""
    with pytest.raises(ValueError, match=message):
        Guards(**settings)


@pytest.mark.parametrize("passing", [0, 75, -1])
def test_a_score_that_would_pass_all_or_nothing_is_refused(passing: float) -> None:
    """With the lowest score nothing would be guarded, and percent are no scores; without a scale it is taken."""
    guards = Guards(("w1",), passing=passing)
    with pytest.raises(DataError, match=rf"passing is {passing}, and scores run from 0 to 1; .*above the lowest"):
        guards.on(rows("w1"), scale=(0.0, 1.0))
    assert guards.on(rows("w1")).passing == passing


scores = st.none() | st.floats(0, 1).map(lambda value: round(value, 2))


@given(before=scores, after=scores, passing=st.none() | st.floats(0.01, 1))
def test_it_refuses_no_more_than_without_and_with_the_best_score_as_much(
    before: float | None, after: float | None, passing: float | None
) -> None:
    """The higher it is, the more is broken."""

    def broken(given: float | None) -> bool:
        return bool(Guards(("w1",), passing=given).on(rows("w1")).broken({0: before}, {0: after}))

    assert broken(passing) <= broken(None)
    assert broken(1.0) is broken(None)
    if after is None:
        assert broken(passing)


def test_a_resumed_run_with_another_one_is_told() -> None:
    """Without one a run has the settings that it had before there was one."""

    def told(**settings: Any) -> Any:
        optimizer = optim.TGD([nn.Parameter("Repeat.")])
        return settings_of(Trainer(guards=Guards(("w1",), **settings)), optimizer, loader)["guards"]

    loader = DataLoader(rows(*WORDS[:6]), batch_size=2)
    assert told() == "never_break w1; reruns 2"
    assert told(passing=0.75) == "never_break w1; reruns 2; passing 0.75"
