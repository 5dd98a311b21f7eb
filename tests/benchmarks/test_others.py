"""The loop in which the benchmark runs systems that make one step after the other."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "proving"
ROWS = [{"parcel": f"parcel {number}", "target": "K1"} for number in range(10)]


class Answers:
    """An endpoint without a server: a prompt gets as many of ten rows right as it says."""

    def __init__(self) -> None:
        self.validated: list[str] = []

    def codes(self, prompt: str, rows: list[dict[str, str]]) -> list[str]:
        self.validated.append(prompt)
        return ["K1" if place < int(prompt) else "K2" for place in range(len(rows))]


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import asking

    yield asking
    del sys.modules["asking"]


def run(asking: Any, capfd: Any, step: Callable[..., str | None], calls: int) -> tuple[list[str], list[str]]:
    """What was told, and what was validated."""
    answers = Answers()
    job = {"prompt": "3", "train": ROWS, "val": ROWS, "seed": 0, "batch": 2, "calls": calls}
    asking.steps(answers, job, step)
    told = [json.loads(line)["prompt"] for line in capfd.readouterr().out.splitlines()]
    return told, answers.validated


def test_a_step_that_did_worse_is_taken_back(asking: Any, capfd: Any) -> None:
    """The next one begins with the prompt before it, and a prompt that is as good is kept."""
    proposals = iter(["5", "4", "5 ", "6", "1"])
    begun = []

    def step(prompt: str, rows: list[dict[str, str]]) -> str:
        begun.append(prompt)
        return next(proposals)

    told, validated = run(asking, capfd, step, 10 + 5 * 12)
    assert begun == ["3", "5", "5", "5 ", "6"]
    assert told == ["3", "5", "5 ", "6"]
    assert validated == ["3", "5", "4", "5 ", "6", "1"]


def test_the_calls_are_kept(asking: Any, capfd: Any) -> None:
    """No step is begun that could not be validated; all examples of the training set come before any comes again."""
    batches = []

    def step(prompt: str, rows: list[dict[str, str]]) -> str:
        batches.append([row["parcel"] for row in rows])
        return prompt  # nothing new: not validated, and yet it counts, as it might have been

    told, validated = run(asking, capfd, step, 10 + 6 * 12 + 11)
    assert len(batches) == 6
    assert len({parcel for batch in batches[:5] for parcel in batch}) == 10
    assert (told, validated) == (["3"], ["3"])


def test_a_minibatch_without_failures_costs_only_itself(asking: Any, capfd: Any) -> None:
    """Where there is nothing to improve there is nothing to validate."""
    batches = []
    run(asking, capfd, lambda prompt, rows: batches.append(rows), 10 + 20)
    assert len(batches) == 5
