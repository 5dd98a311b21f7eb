from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "tune_the_judge.py"


def test_the_criteria_become_peoples(run: Callable[[], str], caplog: pytest.LogCaptureFixture) -> None:
    """Run as a user runs it: each rule that people go by is stated, once, and that it is simulated."""
    shown = run()
    for rule in ("names a day", "says sorry", "blames the customer"):
        assert shown.count(rule) == 1
    assert "val 0.688 -> 1.000" in shown
    assert caplog.messages == []  # such as that the sets are not apart
    assert "A simulated model answered" in shown


def test_the_tuned_criteria_judge_another_program(example: dict[str, Any]) -> None:
    """That is what they were tuned for: there, what the judge says goes to the answer."""
    program, marked = example["Marks"](), example["rows"]()
    with tg.use_models(forward=FunctionModel(example["simulated"])):
        metric = nn.Metric(example["agreement"], "how near it is")
        search = optim.PatchSearch(program.parameters())
        result = tg.Trainer().fit(program, metric, search, marked[:24], marked[24:48])
        judge = nn.Judge(program.judge.instructions.data, scale=(1, 5))
        answer = tg.Variable("It comes on Friday; we are sorry.", role="answer", requires_grad=True)
        mark = judge(answer)
        kind = judge(tg.Variable("It is your own fault.", role="answer"))
    assert result.best_val.mean == 1
    assert (mark.data, kind.data) == (5, 1)
