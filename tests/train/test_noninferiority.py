"""A short text is taken only where answers that chose nothing show it to be as good."""

from __future__ import annotations

import asyncio
import functools
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.errors import BudgetExceeded, TruncatedResponse
from textgrad_engine.llm import Request
from textgrad_engine.report.shrunk import render_shrunk
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import shrink, shrinking
from textgrad_engine.train.margin import shown_margin
from textgrad_engine.train.noninferiority import ERROR, FEWEST_FRESH, MOST_FRESH, AsGood, usual_margin
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.shorter import ShorterTexts

WHOLE = "Be right.\nBe kind.\nBe good."


def grades(noise: float, seed: int) -> Any:
    """A judge of 0 to 1 that is off by up to so much, each time anew."""

    def answer(request: Request) -> str:
        key = f"{seed}/{request.messages[-1].text}/{request.messages[0].text}"
        return str(0.5 + random.Random(key).uniform(-noise, noise))

    return answer


def program(model: Any, text: str = WHOLE) -> Any:
    return nn.ChatCompletion("{word}", system=nn.Parameter(text, role="system prompt"), model=FunctionModel(model))


def rows(count: int) -> list[dict[str, str]]:
    return [{"word": f"w{n}", "target": ""} for n in range(count)]


LOSS = nn.Metric(lambda got, _: float(got), "grade", scale=(0, 1))


@functools.cache
def measured(noise: float, examples: int, task: int) -> tuple[Objective, Any]:
    """What was asked of a model before, and the whole text's answers; many draws may share it."""
    objective = Objective(program(grades(noise, task)), LOSS, rows(examples))
    return objective, objective.evaluation((WHOLE,))


class Case:
    """A text to be shown as good, whose fresh answers are drawn here, as thousands of runs would take long.

    Args:
        loss: the examples that lose the whole scale with it, as a share of all.
        noise: how far a grade may be off.
        seed: of what is drawn.
        examples: how many there are.
        margin: the margin; None for the usual one.
        spent: in which of the fresh answers the budget is spent; None for none.
        lost: how many of the fresh answers with the short text are not to be had.
        task: which grades the objective has; those of its own seed where none is given.
    """

    def __init__(
        self,
        loss: float,
        noise: float,
        seed: int,
        *,
        examples: int = 48,
        margin: float | None = None,
        spent: int | None = None,
        lost: int = 0,
        task: int | None = None,
    ) -> None:
        objective, before = measured(noise, examples, seed if task is None else task)
        self.races = ShorterTexts(objective, (WHOLE,), before, 0.6, None, seed)
        margin = usual_margin(objective, before, ERROR) if margin is None else margin
        self.margin = margin
        self.proof = AsGood(self.races, lambda text: (text,), margin, ERROR)
        self.numbers: list[int] = []
        chance = random.Random(seed)
        hit = [chance.random() < loss for _ in range(examples)]

        def fresh(put: Any, text: str, some: Sequence[int], number: int) -> list[list[float | None]]:
            if number == spent:
                raise BudgetExceeded("the budget is spent")
            self.numbers.append(number)
            new: list[float | None] = [0.5 - hit[n] + chance.uniform(-noise, noise) for n in some]
            return [[0.5 + chance.uniform(-noise, noise) for _ in some], [None] * lost + new[lost:]]

        self.races.fresh = fresh  # type: ignore[method-assign]

    @property
    def shown(self) -> bool:
        return asyncio.run(self.proof.is_shown("Be kind."))


def test_a_budget_that_ends_meanwhile_shows_nothing() -> None:
    """How much worse the mean may be is not known."""
    case = Case(0.0, 0.2, 1, spent=1)
    assert not case.shown
    assert (case.proof.refused, case.races.spent) == (math.inf, True)


def test_a_text_that_loses_most_answers_is_refused() -> None:
    """How much worse the mean is with it is not known, so it may be anything."""
    case = Case(0.0, 0.2, 1, lost=25)
    assert not case.shown
    assert case.proof.refused == math.inf


@pytest.mark.parametrize(("examples", "noise"), [(30, 0.1), (60, 0.3)])
def test_a_text_that_is_worse_by_the_margin_is_seldom_shown_to_be_as_good(examples: int, noise: float) -> None:
    """Law: in 5% of the runs at most, also where few examples lose much, and some of these sets show none."""
    margin = Case(0.0, noise, 0, examples=examples).margin
    passed = sum(Case(margin, noise, seed, examples=examples, task=seed % 4).shown for seed in range(24))
    assert passed <= 4  # of 24 at 5%, more come in 6 of 1,000 such tests


def test_a_text_that_is_as_good_is_mostly_shown_to_be_so() -> None:
    """9 times in 10, where that can be done at all."""
    tests = [Case(0.0, 0.3, seed, examples=60, task=seed % 4) for seed in range(16)]
    assert all(each.proof.fresh for each in tests)
    assert sum(each.shown for each in tests) >= 11  # of 16 at 90%, fewer come in 4 of 1,000 such tests


@pytest.mark.parametrize(("kept", "shown"), [(1, True), (6, False)])
def test_what_kept_lines_of_another_prompt_counts_as_lost_beside_this_one(kept: int, shown: bool) -> None:
    """The texts of all prompts are taken together, so what others would lose by all of them is added up."""
    case = Case(0.0, 0.0, 0)
    alone = Case(0.0, 0.0, 0)
    proof = AsGood(case.races, lambda text: (text,), case.margin, ERROR, dict.fromkeys(range(kept), -1.0))
    assert alone.shown
    assert asyncio.run(proof.is_shown("Be kind.")) == shown
    assert ((proof.at_worst or 1.0) if shown else (proof.refused or 0.0)) > (alone.proof.at_worst or 1.0)


def test_an_example_without_fresh_answers_keeps_its_line() -> None:
    """What it loses without the line is not known, so it is taken for the worst."""
    case = Case(0.0, 0.2, 1, lost=1)
    case.races.losers = lambda *_: [0]  # type: ignore[method-assign]
    asyncio.run(case.proof.is_shown("Be kind.", [("Be good.", [0])]))
    assert case.proof.kept_by == {0: -1.0}


@pytest.mark.parametrize("cut", [1, 6])
def test_an_answer_that_is_lost_without_a_line_tells_who_keeps_it(cut: int) -> None:
    """As a wrong one does; where many are lost, the text is bad and nothing is out of order."""

    def model(request: Request) -> str:
        if "Be good." not in request.messages[0].text and int(request.messages[-1].text[1:]) < cut:
            raise TruncatedResponse("it was cut off")
        return "1.0"

    objective = Objective(program(model), LOSS, rows(8))
    races = ShorterTexts(objective, (WHOLE,), objective.evaluation((WHOLE,)), 0.6, None, 0)
    assert races.losers(lambda text: (text,), "Be right.\nBe kind.", [0], lambda found: len(found) > 1) == [0]


def test_what_does_not_change_by_itself_is_not_run_again() -> None:
    """The races have run it all; what rare losses nobody saw is said."""
    steady = Case(0.0, 0.0, 0)
    assert steady.shown
    assert steady.numbers == [0]
    assert 0.05 < (steady.proof.at_worst or 0.0) < steady.margin


def test_noise_says_how_many_fresh_answers_there_are() -> None:
    """Known before any of them is paid for; a text that is far worse is given up half way."""
    few, many, far = (Case(loss, noise, 1, examples=96) for loss, noise in ((0, 0.2), (0, 0.4), (0.5, 0.4)))
    assert FEWEST_FRESH <= (few.proof.fresh or 0) < (many.proof.fresh or 0) <= MOST_FRESH
    assert (many.shown, far.shown) == (True, False)
    assert many.numbers == [*range(1, (many.proof.fresh or 0) + 1)]
    assert len(far.numbers) == math.ceil((far.proof.fresh or 0) / 2)


@pytest.mark.parametrize(("noise", "few"), [(0.2, True), (0.3, False), (0.4, False)])
def test_no_more_fresh_answers_are_paid_for_than_show_it(noise: float, few: bool) -> None:
    """As many as show a text that is just as good 9 times in 10; with one less they would not, unless it is fewest."""
    case = Case(0.0, noise, 1, examples=96)
    fresh = case.proof.fresh or 0
    sd = [math.sqrt(2 * case.races.noise / number) for number in (fresh - 1, fresh)]
    one_less, wanted = [shown_margin(96, sd=each, error=ERROR, power=0.9) for each in sd]
    assert wanted <= case.margin
    assert fresh == FEWEST_FRESH if few else case.margin < one_less


@pytest.mark.parametrize(
    ("examples", "noise", "margin", "vain"),
    [
        (96, 0.3, None, False),
        (48, 0.5, 0.05, True),
        (48, 0.5, 0.3, False),
        (24, 0.0, 0.05, True),
        (24, 0.0, None, False),
    ],
)
def test_what_cannot_be_told(examples: int, noise: float, margin: float | None, vain: bool) -> None:
    """By few examples with a small margin; what is needed is said, and either of it repairs it."""
    case = Case(0.0, noise, 1, examples=examples, margin=margin)
    assert (case.proof.fresh is None) is vain
    if vain:
        more, wider = case.proof.needed
        assert Case(0.0, noise, 1, examples=examples, margin=wider).proof.fresh is not None
        assert Case(0.0, noise, 1, examples=math.ceil(1.3 * more), margin=margin).proof.fresh is not None


def test_examples_of_one_cluster_are_not_taken_for_several() -> None:
    """The margin of 48 examples in 6 documents is that of 6."""
    val = [{**row, "mail": str(n // 8)} for n, row in enumerate(rows(48))]
    by_mail = Objective(program(grades(0.0, 0)), LOSS, val, clusters="mail")
    before = by_mail.evaluation((WHOLE,))
    six = Objective(program(grades(0.0, 0)), LOSS, rows(6))
    assert usual_margin(by_mail, before, ERROR) == usual_margin(six, six.evaluation((WHOLE,)), ERROR)


def test_where_nothing_can_be_told_the_whole_prompt_stays_and_that_is_said() -> None:
    """Before a shorter text is paid for."""
    found = shrink(program(grades(0.5, 3)), LOSS, rows(8), margin=0.05)
    assert (found.after, found.ended, found.tried) == (found.before, "noise", 0)
    assert found.usage.calls == 16
    assert found.needed is not None
    said = " ".join(render_shrunk(found).split())
    assert "these examples could not show that a shorter text is as good" in said
    assert f"{found.needed[0]} can, or a judge that is less noisy" in said


def test_clusters_of_unlike_sizes_count_like_so_many_of_the_largest() -> None:
    """One more like that may lose all; so a margin is said that can be shown where nothing is lost."""
    mails = [0] * 8 + [1] * 8 + [*range(2, 34)]
    val = [{**row, "mail": str(mail)} for row, mail in zip(rows(48), mails)]
    objective = Objective(program(grades(0.0, 0)), LOSS, val, clusters="mail")
    before = objective.evaluation((WHOLE,))
    margin = usual_margin(objective, before, ERROR)
    six = Objective(program(grades(0.0, 0)), LOSS, rows(6))
    assert margin == usual_margin(six, six.evaluation((WHOLE,)), ERROR)
    races = ShorterTexts(objective, (WHOLE,), before, 0.6, None, 0)
    assert asyncio.run(AsGood(races, lambda text: (text,), margin, ERROR).is_shown("Be kind."))


def test_what_would_do_is_what_all_prompts_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first has the smallest share of the error, as nothing of it comes from one before."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = program(grades(0.5, 3)), program(grades(0.5, 3))

        def forward(self, word: str) -> Any:
            return self.second(word=self.first(word=word))

    needed: list[tuple[int, float]] = []

    class Noted(AsGood):
        @property
        def needed(self) -> tuple[int, float]:
            needed.append(super().needed)
            return needed[-1]

    monkeypatch.setattr(shrinking, "AsGood", Noted)
    found = shrink(Two(), LOSS, rows(8), margin=0.05)
    assert found.needed == max(needed) > min(needed)


def each_its_own(request: Request) -> str:
    """Example `wN` needs line N mod 20; those from 30 on are others like them."""
    return str(float(f"Line {int(request.messages[-1].text[1:]) % 20}." in request.messages[0].text.split("\n")))


def test_lines_that_a_single_example_keeps_tell_of_what_others_need() -> None:
    """None of 20 examples loses anything, each by a line of its own; so others need what none of these does."""
    text = "\n".join(f"Line {n}." for n in range(60))
    found = shrink(program(each_its_own, text), LOSS, rows(20))
    assert found.removed == {"system": ()}
    assert found.refused["system"] > 0.9
    shared = shrink(program(each_its_own, text), LOSS, rows(40))
    assert len(shared.removed["system"]) == 40
    assert shared.refused == {}


def needing(request: Request) -> str:
    return str(float("right" in request.messages[0].text))


def test_a_short_text_that_is_not_shown_to_be_as_good_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt is as it was, what the short one may cost is said, and nothing more is tried."""

    async def refuse(self: AsGood, text: str, without: Any = ()) -> bool:
        self.refused = 0.335
        return False

    monkeypatch.setattr(AsGood, "is_shown", refuse)
    made = program(needing)
    found = shrink(made, LOSS, rows(8))
    assert (found.after, found.removed, found.refused) == (found.before, {"system": ()}, {"system": 0.335})
    assert (found.at_worst, made.system.data) == (0.0, WHOLE)
    said = " ".join(render_shrunk(found).split())
    assert "may cost up to 0.335 of the scale where up to 0.333 is accepted, as far as 8 examples can tell" in said
    hardly = replace(found, margin=0.05, refused={"system": 0.0502})
    said = " ".join(render_shrunk(hardly).split())
    assert "may cost up to 0.0502 of the scale where up to 0.0500 is accepted" in said


def test_a_short_text_for_which_the_budget_left_no_look_is_no_fault_of_the_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More of them would not help, and a judge that is less noisy would not either."""

    def spent(self: AsGood, text: str, examples: Sequence[int]) -> dict[int, float]:
        raise BudgetExceeded("the budget is spent")

    monkeypatch.setattr(AsGood, "_differences", spent)
    found = shrink(program(needing), LOSS, rows(8))
    assert (found.after, found.ended) == (found.before, "budget")
    said = " ".join(render_shrunk(found).split())
    assert "stays as it was: a shorter text was found, but the budget was spent before it was shown" in said
    assert "cost answers" not in said
    shorter = replace(found, removed={"system": (1,)})
    said = " ".join(render_shrunk(shorter).split())
    assert "gets no shorter than this: a still shorter text was found, but the budget was spent before it was" in said


def test_the_prompts_of_a_program_share_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one leaves of it goes to the next, unless something of it was refused."""

    class Three(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = (program(needing) for _ in range(3))

        def forward(self, word: str) -> Any:
            parts = [each(word=word) for each in (self.first, self.second, self.third)]
            return nn.Parameter(str(min(float(str(part)) for part in parts)), role="lowest", requires_grad=False)

    errors: list[float] = []

    class Noted(AsGood):
        def __init__(self, races: ShorterTexts, put: Any, margin: float, error: float, kept_by: Any) -> None:
            super().__init__(races, put, margin, error, kept_by)
            errors.append(error)

        async def is_shown(self, text: str, without: Any = ()) -> bool:
            self.refused = 0.5 if len(errors) == 2 else None
            return len(errors) != 2

    monkeypatch.setattr(shrinking, "AsGood", Noted)
    found = shrink(Three(), LOSS, rows(8))
    assert errors == pytest.approx([ERROR / 3, 2 * ERROR / 3, ERROR / 3])
    assert [*found.refused] == ["second.system"]
    assert found.after["second.system"] == WHOLE
    assert found.after["third.system"] == "Be right."


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_search_takes_no_more_runs_than_is_said(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that says nothing is asked for a bounded time; what was found by then is shown or refused."""
    monkeypatch.setattr("textgrad_engine.train.shorter.MOST_RUNS_OF_EACH", 3)
    monkeypatch.setattr("textgrad_engine.train.shorter.MOST_RUNS_OF_FEW", 0)
    text = "\n".join(f"Line {n}." for n in range(40))

    def model(request: Request) -> str:
        right = all(f"Line {n}." in request.messages[0].text for n in range(0, 40, 2))
        return str(0.4 * right + random.Random(repr(request.messages)).uniform(0, 0.5))

    found = shrink(program(model, text), LOSS, rows(40), lanes=lanes, margin=0.3)
    assert found.ended == "runs"
    assert found.usage.calls <= shrinking.most_runs(40, 1, lanes)
    assert "as many runs as a search may take" in " ".join(render_shrunk(found).split())


def test_where_no_margin_would_do_none_is_advised() -> None:
    """A single example shows nothing, not even by the whole scale."""
    system = nn.Parameter("Be kind.\nBe good.", role="system prompt")
    made = nn.ChatCompletion("{word}", system=system, model=FunctionModel(lambda request: request.messages[-1].text))
    found = shrink(made, nn.ExactMatch(), [{"word": "one", "target": "one"}])
    assert found.ended == "noise"
    assert found.needed is not None
    assert found.needed[1] > 1
    said = " ".join(render_shrunk(found).split())
    assert "2 can, or a judge" in said
    assert "--margin" not in said
