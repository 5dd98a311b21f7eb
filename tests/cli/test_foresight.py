"""What is said of a test set and of a budget before anything is paid for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.foresight import early_end, foreseen, foreseen_of_folds, shared_with_controls
from textgrad_engine.cli.settings import Budget
from textgrad_engine.data import Dataset
from textgrad_engine.testing import ScriptedModel

ROWS = [
    {"id": f"t{n}", "ticket": f"Where is parcel {n}?", "target": "delivery", "from": f"c{n // 2}"} for n in range(40)
]


@pytest.fixture
def config(small: Callable[..., Path]) -> Callable[..., Config]:
    """The tickets' config, with other limits and another column of clusters."""

    def make(clusters: str | None = None, **limits: Any) -> Config:
        made = load_config(small())
        data = made.data.model_copy(update={"clusters": clusters})
        return made.model_copy(update={"budget": Budget(**limits), "data": data})

    return make


def said(config: Config, rows: list[dict[str, Any]] | None) -> str:
    test = None if rows is None else Dataset(rows)
    return foreseen(config, build.make_program(config), build.make_metric(config), test)


def test_it_says_what_the_test_examples_can_show(config: Callable[..., Config]) -> None:
    """One by one, without those that come twice, or by the clusters that they come in."""
    usual = "in 4 of 5 cases, if a fifth of the answers change; smaller ones less often."
    assert said(config(), ROWS).startswith("40 test examples show a true difference of 0.2")
    assert usual in said(config(), ROWS)
    twice = [*ROWS, *({**row, "id": f"{row['id']} again"} for row in ROWS)]
    assert said(config(), twice).startswith("80 test examples, of which 40 are different ones, show a true difference")
    assert said(config("from"), ROWS).startswith("40 test examples in 20 clusters show a true difference")
    uneven = [{**row, "from": "c0" if n < 20 else row["from"]} for n, row in enumerate(ROWS)]
    assert said(config("from"), uneven).startswith("40 test examples in 11 clusters of different sizes show no")


def test_it_says_where_nothing_will_be_shown(config: Callable[..., Config]) -> None:
    """Without a test set, or with few examples; and how all of them would be tested."""
    assert said(config(), None).startswith("Without a test set nothing can be proved: ")
    none = "no difference reliably, however large; take more, or all with `train --folds 5`."
    assert said(config(), ROWS[:1]) == f"1 test example shows {none}"
    assert said(config(), ROWS[:2]) == f"2 test examples show {none}"
    assert "`train --folds 5` tests all examples, not these alone." in said(config(), ROWS)
    many = [{**ROWS[0], "id": f"m{n}", "ticket": f"Where is {n}?"} for n in range(100)]
    assert "--folds" in said(config(), many[:99])
    assert "--folds" not in said(config(), many)


def test_of_scores_whose_scale_nobody_knows_nothing_is_said(config: Callable[..., Config]) -> None:
    """Of others a part of their scale is taken."""
    own: Any = config().metric
    asked = config().model_copy(update={"metric": own.model_copy(update={"name": "judge"})})
    program, rows = build.make_program(asked), Dataset(ROWS)
    for metric, known in ((lambda answer, target: 0.5, False), (nn.Judge("Is it right?", scale=(1, 5)), True)):
        shown = foreseen(asked, program, metric, rows), foreseen_of_folds(asked, program, metric, rows)
        assert [bool(each) for each in shown] == [known] * 2
        assert all("a true difference of 0.5" in each for each in shown if each)
        assert all("a standard deviation of 0.3 of the scale" in each for each in shown if each)


def test_folds_are_about_all_examples_together(config: Callable[..., Config]) -> None:
    """And about the mean of their prompts."""
    own, metric = config(), build.make_metric(config())
    told = foreseen_of_folds(own, build.make_program(own), metric, Dataset(ROWS))
    assert told.startswith("40 examples together show a true difference of 0.2")
    assert told.endswith("That is about the mean of the folds' prompts; the final prompt is tested by none of them.")
    few = foreseen_of_folds(own, build.make_program(own), metric, Dataset(ROWS[:3]))
    assert few == "3 examples together show no difference reliably, however large; take more examples."


def test_a_budget_that_does_not_score_the_seed_prompt_is_told_of(config: Callable[..., Config]) -> None:
    """Where it can be known: not of answers from a cache, and not of what nobody limits."""
    models: dict[str, Any] = {"forward": ScriptedModel([])}

    def told(cached: bool = False, **limits: Any) -> str:
        return early_end(config(**limits), [ROWS[:6], ROWS[:4]], models, cached=cached)

    assert told() == told(calls=10) == told(calls=9, cached=True) == ""
    assert told(calls=9).startswith("The budget has room for 9 calls, but the seed prompt alone takes about 10 calls")
    assert "has room for 10 tokens" in told(calls=10, tokens=10)
    assert told(tokens=10**6) == ""
    assert "has room for 9 calls, but" in told(calls=9, tokens=10**6, dollars=10.0)
    many = [ROWS[n % 40] for n in range(450)]
    assert "takes about 450 calls" in early_end(config(calls=449), [many], models, cached=False)
    assert early_end(config(calls=450), [many], models, cached=False) == ""
    own = config(calls=1)
    assert early_end(own, [[], ()], models, cached=False) == ""
    of_class = own.model_copy(update={"program": own.program.model_copy(update={"user": None})})
    assert early_end(of_class, [ROWS], models, cached=False) == ""  # nobody knows how often it asks


def test_what_controls_leave_of_a_budget_is_told(config: Callable[..., Config]) -> None:
    """Where there are controls, and a budget."""
    assert shared_with_controls(config(), True) == shared_with_controls(config(calls=9), False) == ""
    assert "the optimizer may use one part in" in shared_with_controls(config(calls=9), True)
