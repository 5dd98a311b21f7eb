from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "agent.py"


def test_the_agent_learns_to_look_up_the_number_first(run: Callable[[], str]) -> None:
    """Run as a user runs it: both lessons, one question of the critic for each example, and that it is simulated."""
    shown = run()
    assert "Look up the customer number first, by the name in small letters." in shown
    assert "Answer with the number alone." in shown
    assert "val 0.000 -> 1.000; test 0.000 -> 1.000; better" in shown
    calls = json.loads(next(line for line in shown.split("\n") if line.startswith("Calls: ")).removeprefix("Calls: "))
    assert calls["backward"] == 16  # two minibatches of eight, however many turns these had
    assert "A simulated model answered" in shown


def test_a_search_finds_both_too(example: dict[str, Any]) -> None:
    """The program is one like any other."""
    program = example["Desk"]()
    rows = example["ROWS"]
    with tg.use_models(forward=FunctionModel(example["simulated"])):
        metric = nn.Metric(example["score"], "the number alone")
        result = tg.Trainer().fit(program, metric, optim.PatchSearch(program.parameters()), rows[:12], rows[12:])
    assert result.best_val.mean == 1
