"""A short text is taken only where answers that chose nothing show it to be as good."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.llm import Request
from textgrad_engine.llm.cachekey import sample_number
from textgrad_engine.report.shrunk import render_shrunk
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import shrink
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.shorter import PEEKS, ShorterTexts

WHOLE = "Be right.\nBe kind."


def grades(loss: float, noise: float, seed: int) -> Any:
    """A judge of 0 to 1 that is off by up to so much, each time anew; a text without "right" is worth less."""

    def answer(request: Request) -> str:
        text = request.messages[0].text
        chance = random.Random(f"{seed}/{request.messages[-1].text}/{text}/{sample_number(b'')!r}").uniform(
            -noise, noise
        )
        return str(0.5 - (0.0 if "right" in text else loss) + chance)

    return answer


def program(model: Any) -> Any:
    return nn.ChatCompletion("{word}", system=nn.Parameter(WHOLE, role="system prompt"), model=FunctionModel(model))


def races(loss: float, noise: float, seed: int, examples: int = 48, margin: float = 0.05) -> ShorterTexts:
    """Races whose further looks are drawn here, as thousands of runs of a program would take long."""
    made = program(grades(loss, noise, seed))
    rows = [{"word": f"w{n}", "target": ""} for n in range(examples)]
    objective = Objective(made, nn.Metric(lambda got, _: float(got), "grade", scale=(0, 1)), rows)
    found = ShorterTexts(objective, (WHOLE,), objective.evaluation((WHOLE,)), 0.6, margin, None, seed)
    chance = random.Random(seed)
    found.looks = []  # type: ignore[attr-defined]

    def look(put: Any, text: str, some: Sequence[int], number: int) -> list[float]:
        found.looks.append(number)  # type: ignore[attr-defined]
        return [0.5 - (0.0 if "right" in text else loss) + chance.uniform(-noise, noise) for _ in some]

    found._look = look  # type: ignore[assignment]
    return found


def worst(found: ShorterTexts) -> float:
    return found.shown(lambda text: (text,), "Be kind.")


def test_a_text_that_is_worse_by_the_margin_is_seldom_shown_to_be_as_good() -> None:
    """Law: in 5% of the runs at most, over all peeks."""
    passed = sum(worst(races(0.05, 0.4, seed)) < 0.05 for seed in range(60))
    assert passed <= 7  # of 60 at 5%, more come in 2 of 100 such tests


def test_a_text_that_is_as_good_is_mostly_shown_to_be_so() -> None:
    """With the noise at which nothing is called in vain."""
    tests = [races(0.0, 0.3, seed) for seed in range(20)]
    assert not any(each.in_vain for each in tests)
    assert sum(worst(each) < 0.05 for each in tests) >= 18


def test_what_does_not_change_by_itself_is_not_run_again() -> None:
    """The races have run it all; what is lost is known without a bound."""
    steady = races(0.0, 0.0, 0)
    assert worst(steady) == 0.0
    assert set(steady.looks) <= {0, 1}  # type: ignore[attr-defined]


def test_a_text_that_is_clearly_worse_is_not_run_to_the_end() -> None:
    """The interval lies beyond the margin after a peek."""
    far = races(0.4, 0.1, 0)
    assert worst(far) > 0.3
    assert len({each for each in far.looks if each > 1}) == PEEKS[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("examples", "margin", "vain"), [(48, 0.05, False), (8, 0.05, True), (8, 0.3, False)])
def test_noise_that_lets_nothing_be_told(examples: int, margin: float, vain: bool) -> None:
    """With few examples and a small margin; more of either repairs it."""
    assert races(0.0, 0.4, 1, examples, margin).in_vain is vain


def test_where_nothing_can_be_told_the_whole_prompt_stays_and_that_is_said() -> None:
    """Before a shorter text is paid for."""
    made = program(grades(0.0, 0.5, 3))
    rows = [{"word": f"w{n}", "target": ""} for n in range(8)]
    found = shrink(made, nn.Metric(lambda got, _: float(got), "grade", scale=(0, 1)), rows)
    assert (found.after, found.ended, found.tried) == (found.before, "noise", 0)
    assert found.usage.calls == 16
    assert "answers change too much by themselves for so few examples to tell" in " ".join(render_shrunk(found).split())


def test_a_short_text_that_is_not_shown_to_be_as_good_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt is as it was, and what the short one may cost is said."""
    made = program(lambda request: "1")
    monkeypatch.setattr(ShorterTexts, "shown", lambda *_: 0.12)
    rows = [{"word": f"w{n}", "target": ""} for n in range(8)]
    found = shrink(made, nn.Metric(lambda got, _: float(got), "grade", scale=(0, 1)), rows)
    assert (found.after, found.removed, found.refused) == (found.before, {"system": ()}, {"system": 0.12})
    assert made.system.data == WHOLE
    assert "may cost up to 0.12 of the scale" in " ".join(render_shrunk(found).split())
    assert shrink(made, nn.Metric(lambda got, _: float(got), "grade", scale=(0, 1)), rows, margin=0.2).removed["system"]


def test_a_short_text_for_which_the_budget_left_no_look_is_no_fault_of_the_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More of them would not help, and a judge that is less noisy would not either."""

    def shown(races: ShorterTexts, *_: Any) -> float:
        races.spent = True
        return math.inf

    made = program(lambda request: "1")
    monkeypatch.setattr(ShorterTexts, "shown", shown)
    rows = [{"word": f"w{n}", "target": ""} for n in range(8)]
    found = shrink(made, nn.Metric(lambda got, _: float(got), "grade", scale=(0, 1)), rows)
    said = " ".join(render_shrunk(found).split())
    assert "stays as it was: the budget was spent before the shorter text that was found could be" in said
    assert "cost answers" not in said
