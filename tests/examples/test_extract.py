from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "extract.py"


def test_the_prompt_learns_the_rule_of_each_field(run: Callable[[], str], example: dict[str, Any]) -> None:
    """Run as a user runs it: a rule for each field, the verdict, what each metric gave, and that it is simulated."""
    printed = run()
    assert all(rule in printed for rule in example["RULES"].values())
    assert "val 0.125 -> 1.000; test 0.125 -> 1.000; better" in printed
    assert "  amount: 0.00 -> 1.00, weight 2\n  due: 0.50 -> 1.00, weight 1\n" in printed
    assert "A simulated model answered" in printed


def test_the_critic_is_told_of_the_fields_that_are_wrong(example: dict[str, Any]) -> None:
    """Those, and no others."""
    answer = {"vendor": "Ash", "amount": 120.0, "due": "5.7.2026"}
    model = FunctionModel(lambda request: example["simulated"](request) if request.purpose == "backward" else answer)
    program = nn.ChatCompletion("{mail}", system=nn.Parameter("Read."), response_format=example["Invoice"])
    target = {**answer, "due": "2026-07-05"}
    with tg.use_models(forward=model):
        score = example["loss"]()(program(mail="…"), target)
        score.backward()
    assert score.data == 0.875
    assert [item.data for item in program.system.grad] == [f"Add: {example['RULES']['due']}"]


@pytest.mark.parametrize(("said", "score"), [("2026-07-05", 1), ("5.7.2026", 0.5), ("6.7.2026", 0), ("soon", 0)])
def test_a_date_in_another_form_is_half_right(said: str, score: float, example: dict[str, Any]) -> None:
    """The metric of one field says how it should be."""
    found, words = example["same_day"](said, "2026-07-05")
    assert found == score
    assert ("2026-07-05" in words) == (score < 1)
