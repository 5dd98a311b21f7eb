"""Why a run ended with the texts that it began with, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textgrad_engine.llm.response import Usage

if TYPE_CHECKING:
    from textgrad_engine.train.result import TrainResult


_MOST_WHYS = 2
"""Reasons that are named: of answers that were not to be had each may be another one."""

_MOST_OF_PROBLEM = 200
"""Characters of the first problem of a run in which nothing was tried; its steps have all of it."""

_ABOVE_ONE = (
    "all training answers scored 1 or more, which counts as right if a metric names no scale, so there was nothing to "
    "learn; state the scale with nn.Metric(..., scale=(0, 100)), or scale in [metric]"
)


def none_kept(result: TrainResult) -> str:
    """Why the seed prompt is still the best one, in words."""
    # A search may have its own rule for what does better, and not run what guards refuse any further.
    refused = [
        step.why
        for step in result.steps
        if step.why.startswith("refused: ")
        and (step.race is None or step.race.outcome == "better" or step.race.difference > 0)
    ]
    if not result.steps:
        return "nothing better could be shown" if _perfect(result) else "the run ended before its first step"
    if not refused:
        if silent := _without_feedback(result) or _without_proposals(result) or _lost(result) or _untried(result):
            return silent
        higher = any(step.val_mean is not None and step.val_mean > step.best_val for step in result.steps)
        return "no change did clearly better" if higher else f"no change did better{_without_effect(result)}"
    were = "was" if len(refused) == 1 else "were"
    first = f"{'first: ' if len(refused) > 1 else ''}{refused[0].removeprefix('refused: ')}"
    return f"{_some(len(refused), 'change')} did better and {were} refused by the guards ({first})"


def _without_feedback(result: TrainResult) -> str:
    """Why no change was tried at all, in words; "" where one was, or where answers of the critic were not to be had."""
    if any(step.feedback or step.changes or step.race is not None or step.problems for step in result.steps):
        return ""
    critic = result.usage.get("backward", Usage()).calls
    if critic:
        return f"the critic was asked {_some(critic, 'time')} and found nothing to change"
    if (lowest := _lowest(result)) is not None and result.seed_val is not None and result.seed_val.limits is None:
        return _ABOVE_ONE if lowest >= 1 else ""
    return "all training answers were right, so there was nothing to learn" if _perfect(result) else ""


def _perfect(result: TrainResult) -> bool:
    """Whether the training answers of all steps had the best score; before the first step, all validation answers."""
    val, lowest = result.seed_val, _lowest(result)
    return lowest is not None and val is not None and val.limits is not None and lowest >= val.limits[1]


def _lowest(result: TrainResult) -> float | None:
    """The lowest mean of a minibatch, before the first step that of the validation set; None where nothing is known."""
    known = [step.train_mean for step in result.steps if step.train_mean is not None]
    return min(known, default=None if result.seed_val is None else result.seed_val.mean)


def _without_proposals(result: TrainResult) -> str:
    """Why there was no other text to try, where the optimizer was asked for some, in words; "" where there was one."""
    asked = [change for step in result.steps for change in step.changes]
    if not asked or any(change.edits or change.after != change.before for change in asked):
        return ""
    if any(step.race is not None for step in result.steps):
        return ""
    unusable = sum(bool(change.problem) for change in asked)
    if not unusable:
        return f"the optimizer was asked {_some(len(asked), 'time')} and proposed no change"
    if unusable == len(asked):
        return f"none of {_some(unusable, 'proposal')} could be used"
    return f"{unusable} of {len(asked)} proposals could not be used, and the others changed nothing"


def _lost(result: TrainResult) -> str:
    """Why nothing was tried where critic or optimizer gave no answer, in words; "" where something was."""
    lost = [step for step in result.steps if step.problems]
    changes = [change for step in result.steps for change in step.changes]
    tried = any(each.edits or each.after != each.before for each in changes)
    if not lost or tried or any(step.race is not None for step in result.steps):
        return ""
    first = lost[0].problems[0].partition("\n")[0]
    if len(first) > _MOST_OF_PROBLEM:
        first = f"{first[:_MOST_OF_PROBLEM]}..."
    of_all = f"{len(lost):,} of {_some(len(result.steps), 'step')}"
    return f"nothing was tried, as answers were missing in {of_all} (step {lost[0].step}: {first})"


def _untried(result: TrainResult) -> str:
    """Why a search had nothing to try at all, in its own words; "" where it tried something."""
    steps = result.steps
    if any(step.changes or step.race is not None or step.problems or not (step.kind and step.why) for step in steps):
        return ""
    whys = list(dict.fromkeys([step.why for step in steps]))
    return f"nothing was tried, as {'; '.join(whys[:_MOST_WHYS])}"


def _without_effect(result: TrainResult) -> str:
    """What may be wrong where new texts changed no score at all; "" where one did, or in one race alone."""
    races = [step.race for step in result.steps if step.race is not None]
    if len(races) < 2 or any(race.gained or race.lost for race in races):
        return ""
    return (
        f" (in {len(races):,} races no example's score changed: the metric may give no partial credit, or the program "
        "may return stored answers, or not use the texts)"
    )


def _some(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
