from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import textgrad_engine as tg
from textgrad_engine import nn, ops
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "replies.py"


def test_the_prompt_learns_what_a_reply_must_do_and_must_not(run: Callable[[], str], example: dict[str, Any]) -> None:
    """Run as a user runs it: a rule for each criterion, the verdict, how many do well by each, that it is simulated."""
    printed = run()
    assert all(rule in printed for rule in example["RULES"].values())
    assert "val 0.000 -> 1.000; test 0.000 -> 1.000; better" in printed
    assert f"  0% -> 100%  It says what happens next.\n  0% -> 100%  {example['NO_DATE']}\n" in printed
    assert "A simulated model answered" in printed


def test_the_critic_hears_what_is_lacking_and_what_was_noted(example: dict[str, Any]) -> None:
    """The model that replies and the judge do not see the note."""
    model = FunctionModel(example["simulated"])
    row = example["ROWS"][0]
    program = nn.ChatCompletion("{mail}", system=nn.Parameter("Answer. Say sorry first. Name the order."))
    with tg.use_models(forward=model), ops.notes({row["id"]: row["why"]}), tg.autograd.example(row["id"]):
        score = nn.Rubric(example["CRITERIA"])(program(mail=row["mail"]))
        score.backward()
    assert score.data == 0.0  # two points of five, and two less for a date
    assert [item.data for item in program.system.grad] == [f"Add: {example['RULES']['what happens next']}"]
    seen = [request.purpose for request in model.requests if row["why"] in request.messages[-1].text]
    assert seen == ["backward"]
