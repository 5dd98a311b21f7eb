"""Where a line of a best text comes from: the feedback, the examples, the race that accepted it, and its ablations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.optim import Evidence, Origin
from textgrad_engine.optim.cells import Gone
from textgrad_engine.optim.search.race import RaceRecord
from textgrad_engine.train import TrainResult
from textgrad_engine.train.events import StepEnded

__all__ = ["LineLineage", "Trial", "lineage_as_json", "lineage_of"]


@dataclass(frozen=True)
class Trial:
    """A step that decided about a line.

    Attributes:
        step: its number.
        kind: what it proposed, such as ``"patch"`` or ``"ablation"``; "" for a step of an optimizer that is no search.
        kept: whether its change was kept.
        why: in a few words why.
        race: the race; None when there was none, or the run is from before races were kept.
    """

    step: int
    kind: str
    kept: bool
    why: str
    race: RaceRecord | None


@dataclass(frozen=True)
class LineLineage:
    """Where one line of a best text comes from.

    Attributes:
        parameter: the text's dotted name.
        number: the line's number, from 1.
        text: how it reads.
        edit: the id of the edit that wrote it; "" for a line of the seed text.
        reason: the optimizer's reason.
        evidence: the feedback that asked for it, with the examples that this came from.
        replaced: lines that stood there before, the latest first, each with what had asked for it.
        accepted: the step that brought it in; None for a line of the seed text.
        ablations: the steps that tried the text without it, in order.
    """

    parameter: str
    number: int
    text: str
    edit: str
    reason: str
    evidence: tuple[Evidence, ...]
    replaced: tuple[Gone, ...]
    accepted: Trial | None
    ablations: tuple[Trial, ...]


def lineage_of(result: TrainResult, number: int, parameter: str | None = None) -> LineLineage:
    """Where a line of a best text comes from.

    Args:
        result: of a run, or read back from its folder.
        number: of the line in the best text, from 1.
        parameter: the dotted name of the text; may be None when only one was trained.

    Raises:
        RunError: there is no such text or line.
    """
    names = ", ".join(result.best)
    if parameter is None:
        if len(result.best) > 1:
            raise RunError(f"the run trained several texts, so say which one's line: --parameter one of {names}")
        parameter = next(iter(result.best))
    if parameter not in result.best:
        raise RunError(f"the run trained no {parameter!r}; it trained {names}")
    lines = result.best[parameter].split("\n")
    if not 1 <= number <= len(lines):
        raise RunError(f"{parameter} has lines 1 to {len(lines)}, so there is no line {number}")
    origins = result.origins.get(parameter, [])
    origin = origins[number - 1] if number <= len(origins) else None
    if origin is None or origin.step == 0:
        return LineLineage(parameter, number, lines[number - 1], "", "", (), (), None, ())
    accepted = _accepted(result, parameter, lines[number - 1], origin)
    ablations = [
        step for step in result.steps if origin.edit in step.ablated and _takes_out(step, parameter, lines[number - 1])
    ]
    return LineLineage(
        parameter=parameter,
        number=number,
        text=lines[number - 1],
        edit=origin.edit,
        reason=origin.reason,
        evidence=origin.evidence,
        replaced=_replaced(origins, origin),
        accepted=None if accepted is None else _trial(accepted),
        ablations=tuple(map(_trial, ablations)),
    )


def lineage_as_json(found: LineLineage) -> dict[str, Any]:
    """The same as plain JSON values; what a race gained and lost by the examples' ids."""
    body = asdict(found)
    body["replaced"] = [
        {"text": gone.text, "evidence": [] if gone.origin is None else [asdict(item) for item in gone.origin.evidence]}
        for gone in found.replaced
    ]
    for entry, trial in zip([body["accepted"], *body["ablations"]], [found.accepted, *found.ablations]):
        if trial is not None and trial.race is not None:
            entry["race"] |= {"gained": list(trial.race.gained), "lost": list(trial.race.lost)}
    return body


def _trial(step: StepEnded) -> Trial:
    return Trial(step.step, step.kind, step.kept, step.why, step.race)


def _accepted(result: TrainResult, parameter: str, line: str, origin: Origin) -> StepEnded | None:
    """The step that brought a line into the best text.

    Mostly that is the step that proposed it. A line whose patch was disputed came in when rivals were raced, and a line
    of a population's candidate when that candidate, or a child of it, became the best one.
    """
    best, came = result.seed.get(parameter, ""), []
    for step in result.steps:
        after = next((change.after for change in step.changes if change.name == parameter), best)
        if step.kept:
            if after.split("\n").count(line) > best.split("\n").count(line):
                came.append(step)
            best = after
    return next((step for step in came if step.step == origin.step), came[-1] if came else None)


def _takes_out(step: StepEnded, parameter: str, line: str) -> bool:
    """Whether a step takes a line out of a parameter: edits of two parameters may have one id."""
    pairs = [
        (change.before.split("\n"), change.after.split("\n")) for change in step.changes if change.name == parameter
    ]
    return any(before.count(line) > after.count(line) for before, after in pairs)


def _replaced(origins: Sequence[Origin | None], origin: Origin) -> tuple[Gone, ...]:
    """The lines that the edit took out, and those that these had replaced in their time."""
    gone = [each for own in origins if own is not None for each in (*own.gone_before, *own.gone)]
    found: list[Gone] = []
    waiting = [origin.edit]
    while waiting:
        by = waiting.pop(0)
        for each in gone:
            if by and each.by == by and each not in found:
                found.append(each)
                if each.origin is not None:
                    waiting.append(each.origin.edit)
    return tuple(found)
