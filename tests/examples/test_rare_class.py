from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, nn
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "rare_class.py"


def test_the_rare_class_is_found(run: Callable[[], str], example: dict[str, Any]) -> None:
    """Run as a user runs it: both rules, what was found of each class, and that it is simulated."""
    printed = run()
    assert all(rule in printed for rule in example["RULES"].values())
    assert "test 0.667 -> 1.000; better" in printed
    assert "floors not reached" not in printed  # a floor of 0.9 was more than a bill that is sorted right can score
    assert "  parcel: 1.00 -> 1.00 found\n  fraud: 0.00 -> 1.00 found\n" in printed
    assert "A simulated model answered" in printed


def test_the_score_is_the_mean_of_the_classes(example: dict[str, Any]) -> None:
    """A program that never says "fraud" is right on nine of ten, and has two of three classes."""
    mails = example["rows"](30)
    program = nn.ChatCompletion("{mail}", model=FunctionModel(example["simulated"]))
    found = tg.evaluate(program, mails, example["Balanced"](example["weights"](mails)))
    assert found.mean == pytest.approx(2 / 3)
    assert example["recalls"](found, mails) == {"bill": 1, "parcel": 1, "fraud": 0}
    assert tg.evaluate(program, mails, nn.ExactMatch()).mean == 0.9


def test_minibatches_have_as_many_of_each_class(example: dict[str, Any]) -> None:
    """One in ten would give a step of sixteen examples one or two to learn from."""
    mails = example["rows"](240)
    weight = example["weights"](mails)
    drawn = list(data.WeightedRandomSampler([weight[row["target"]] for row in mails], num_samples=300, seed=0))
    assert 80 < sum(mails[each]["target"] == "fraud" for each in drawn) < 120
