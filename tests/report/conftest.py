from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.llm import Usage
from textgrad_engine.optim import Edit, Evidence, Origin
from textgrad_engine.optim.cells import Gone
from textgrad_engine.store import Run
from textgrad_engine.train import Evaluation, TrainResult, compare
from textgrad_engine.train.events import ParameterChange, StepEnded

SEED = "Sort the mail.\nBe brief.\nAnswer."
BEST = "Sort the mail.\nAnswer.\nGift cards go to account."
ASKED = Evidence("Say where gift cards go.", ("t10", "t9"))
TOO_SHORT = Evidence("It is too brief.", ("t3",))


def scored(*scores: float | None) -> Evaluation:
    ids = tuple(f"e{number}" for number in range(len(scores)))
    lost = {name: "EmptyResponse: nothing" for name, score in zip(ids, scores) if score is None}
    return Evaluation(ids, scores, tuple("x" for _ in scores), lost)


@pytest.fixture
def result() -> TrainResult:
    """A run of two steps, the first of which was kept."""
    edits = (
        Edit("remove", 2, "", "brevity hurts", (2,)),
        Edit("add", 3, "Gift cards go to account.", "nobody knew", (1,)),
    )
    removed = Origin(0, "", (), gone=(Gone("Be brief.", None, "1.1"),))
    change = ParameterChange("system", SEED, BEST, edits, (ASKED, TOO_SHORT))
    dropped = ParameterChange("system", BEST, BEST, problem="the new text is empty")
    seed, best = scored(*[0.0] * 12, *[1.0] * 8), scored(*[0.0] * 2, *[1.0] * 18)
    return TrainResult(
        status="finished",
        seed={"system": SEED},
        best={"system": BEST},
        origins={"system": [removed, None, Origin(1, "nobody knew", (ASKED,), "1.2")]},
        seed_val=seed,
        best_val=best,
        seed_test=seed,
        best_test=best,
        comparison=compare(seed, best),
        compared_on="test",
        steps=(
            StepEnded(1, 1, ("t9", "t10", "t3"), 0.3, 0, 3, (change,), 0.9, True, 0.9),
            StepEnded(2, 1, ("t4",), 0.8, 1, 1, (dropped,), None, False, 0.9),
        ),
        usage={
            "forward": Usage(input_tokens=1200, output_tokens=34, calls=84, dollars=0.25),
            "optimizer": Usage(calls=2),
        },
        seconds=75.2,
    )


@pytest.fixture
def changed(result: TrainResult) -> Any:
    """The result with some fields replaced."""
    return lambda **fields: replace(result, **fields)


@pytest.fixture
def run_of(tmp_path: Path) -> Any:
    """Makes a run folder, as it is read, of a result; None for a run that was killed."""

    def make(found: TrainResult | None, name: str = "run", **fields: Any) -> Run:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "completions.jsonl").touch()
        if isinstance(kept := fields.get("config"), dict) and "config" in kept:  # as a command keeps it
            fields["config"] = {"folder": "..", **kept}
        texts = {} if found is None else {"seed": found.seed, "best": found.best, "steps": found.steps}
        known: dict[str, Any] = {
            "config": None, "seed": {}, "best": {}, "events": (), "steps": (), "evaluations": (), "evals": (),
        }  # fmt: skip
        return Run(**{"path": folder, "result": found, **known, **texts, **fields})

    return make
