"""The report for machines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from textgrad_engine.llm.response import Usage
from textgrad_engine.report.difference import diff_of
from textgrad_engine.report.tools import ToolRow, tools_as_json
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import StepEnded
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.standing import Standing

if TYPE_CHECKING:
    from textgrad_engine.store.reader import Run


def as_json(
    result: TrainResult, openings: int | None = None, *, before: int = 0, tools: Iterable[ToolRow] = ()
) -> dict[str, Any]:
    """The report as plain JSON values; what was not measured, or is infinite, is null.

    Args:
        result: of a run, or read back from its folder.
        openings: how often the test set was opened, evaluations since the run included; None for the run's own.
        before: how often other runs had opened the same test examples before this one.
        tools: what the program's tools gave (`tools_of`).
    """
    found = result.comparison
    return {
        "status": result.status,
        "spent_its_part": result.spent_its_part,
        "shortage": result.shortage or None,
        "unspent": result.unspent or None,
        "untested": result.untested or None,
        "idle": result.idle or None,
        "verdict": None if found is None or result.seed == result.best else found.verdict,
        "val": {"seed": evaluation_as_json(result.seed_val), "best": evaluation_as_json(result.best_val)},
        "test": {"seed": evaluation_as_json(result.seed_test), "best": evaluation_as_json(result.best_test)},
        "comparison": None if found is None else {"on": result.compared_on, **finite(asdict(found))},
        "test_openings": result.openings if openings is None else openings,
        "test_openings_before": before,
        "overlaps": list(result.overlaps),
        "terms": list(result.terms),
        "floors": floors_as_json(result.floors),
        "candidates": result.candidates,
        "controls": _controls(result),
        "front": [asdict(point) for point in result.front],
        "test_usage": {name: usage_as_json(usage) for name, usage in result.test_usage.items()},
        "doubtful": [asdict(each) for each in result.doubtful],
        "usage": {purpose: usage_as_json(usage) for purpose, usage in result.usage.items()},
        "total": usage_as_json(result.total),
        "seconds": round(result.seconds, 3),
        "tools": tools_as_json(tools),
        "parameters": {
            name: {
                "seed": seed,
                "best": result.best[name],
                "diff": [
                    asdict(line)
                    for line in diff_of(name, seed, result.best[name], result.origins.get(name, []), result.steps)
                ],
            }
            for name, seed in result.seed.items()
        },
        "steps": _steps(result.steps),
    }


def floors_as_json(floors: Iterable[Standing]) -> list[dict[str, Any]]:
    """How texts stand to the floors of the guards."""
    return [{**asdict(each), "reached": each.reached} for each in floors]


def unfinished_as_json(run: Run) -> dict[str, Any]:
    """What is known of a run that has no result, as plain JSON values.

    Args:
        run: the run folder.

    Raises:
        RunError: the record of calls is damaged.
    """
    used = run.usage_by_purpose()
    return {
        "status": None,
        "error": run.error or None,
        "best": run.best,
        "steps": _steps(run.steps),
        "total": usage_as_json(sum(used.values(), Usage())),
    }


def _steps(steps: Iterable[StepEnded]) -> list[dict[str, Any]]:
    return [
        {
            "step": step.step,
            "epoch": step.epoch,
            "train": step.train_mean,
            "val": step.val_mean,
            "kept": step.kept,
            "best_val": step.best_val,
            "feedback": step.feedback,
            "unanswered": step.unanswered,
            "problems": [*(change.problem for change in step.changes if change.problem), *step.problems],
        }
        for step in steps
    ]


def _controls(result: TrainResult) -> dict[str, Any] | None:
    """The controls, or null for a run without; `comparison` is that of the optimizer's best texts against each."""
    found = result.controls
    if found is None:
        return None
    return {
        "optimizer": found.optimizer,
        "calls": found.calls,
        "usage": usage_as_json(found.usage),
        "each": [
            {
                "name": each.name,
                "best": each.best,
                "val": evaluation_as_json(each.val),
                "test": evaluation_as_json(each.test),
                "comparison": None
                if each.comparison is None
                else {"on": each.compared_on, **finite(asdict(each.comparison))},
                "tried": each.tried,
                "kept": each.kept,
                "usage": usage_as_json(each.usage),
                "problem": each.problem,
            }
            for each in found.each
        ],
        "problem": found.problem,
    }


def evaluation_as_json(evaluation: Evaluation | None) -> dict[str, Any] | None:
    """Mean, 95% interval and size, with bounds where answers are missing, and what each of several
    metrics gave; the scores are in the run folder.
    """
    if evaluation is None:
        return None
    found: dict[str, Any] = {
        "mean": evaluation.mean,
        "interval": finite(list(evaluation.interval)),
        "examples": len(evaluation),
        "unanswered": evaluation.unanswered,
    }
    if evaluation.unanswered:
        found["bounds"] = None if evaluation.bounds is None else finite(list(evaluation.bounds))
    if evaluation.samples:
        found["repeats"] = len(evaluation.samples[0])
    if known := [each for each in evaluation.latency if each is not None]:
        found["latency"] = math.fsum(known) / len(known)
    if evaluation.clusters:
        found["clusters"] = len(set(evaluation.clusters))
    if any(part.n for part in evaluation.parts):
        found["parts"] = [
            {
                "name": part.name,
                "mean": part.mean,
                "n": part.n,
                "scale": list(part.scale),
                ("points" if part.is_criterion else "weight"): part.weight,
            }
            for part in evaluation.parts
            if part.n
        ]
    return found


def finite(value: Any) -> Any:
    """The value with null for infinite numbers, which JSON has not."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def usage_as_json(usage: Usage) -> dict[str, Any]:
    """Calls, tokens and dollars; null dollars for an unknown price."""
    return usage.model_dump()
