"""Where a line of a best text comes from, and what a step did: feedback, examples, the race, and ablations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.optim.cells import Evidence, Gone, Origin
from textgrad_engine.optim.matching import matcher_of
from textgrad_engine.optim.patch import Edit
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.report.difference import Arrivals, Replaced, diff_of
from textgrad_engine.report.words import plural
from textgrad_engine.train.events import ParameterChange, StepEnded
from textgrad_engine.train.result import TrainResult


@dataclass(frozen=True)
class Trial:
    """A step that decided about a line.

    Attributes:
        step: its number.
        kind: what it proposed, such as ``"patch"`` or ``"ablation"``; "" for a step of an optimizer that is no search.
        kept: whether its change was kept.
        why: in a few words why.
        race: the race; None when there was none.
    """

    step: int
    kind: str
    kept: bool
    why: str
    race: RaceRecord | None


@dataclass(frozen=True)
class Removed:
    """A line that is gone, with nothing in its place.

    Attributes:
        text: how it read.
        step: the step that took it out; None where the run folder does not tell.
    """

    text: str
    step: int | None


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
        beside: lines that stood right beside it until a step removed them.
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
    beside: tuple[Removed, ...] = ()


@dataclass(frozen=True)
class EditLineage:
    """What a step did at one place of a text.

    Attributes:
        parameter: the text's dotted name.
        edit: the id of the edit; of an ablation, of the edit that it tried the text without. "" when nobody knows.
        removed: the lines that it took out.
        added: the lines that it put there.
        reason: the optimizer's reason; of an ablation, the one that the edit had.
        evidence: the feedback that asked for it, with the examples that this came from; likewise.
        ablations: the steps that tried the text without it, in order.
    """

    parameter: str
    edit: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    reason: str
    evidence: tuple[Evidence, ...]
    ablations: tuple[Trial, ...]


@dataclass(frozen=True)
class StepLineage:
    """What a step tried, why, and what decided about it.

    Attributes:
        trial: the step, with its race.
        edits: what it did to the texts, whether it was kept or not.
        problems: what did not go well, see `problems_of`, and what an optimizer was not shown.
    """

    trial: Trial
    edits: tuple[EditLineage, ...]
    problems: tuple[str, ...] = ()


def lineage_of(
    result: TrainResult,
    number: int,
    parameter: str | None = None,
    arrivals: Arrivals | None = None,
    replaced: Replaced | None = None,
) -> LineLineage:
    """Where a line of a best text comes from.

    Args:
        result: of a run, or read back from its folder.
        number: of the line in the best text, from 1.
        parameter: the dotted name of the text; may be None when only one was trained.
        arrivals: of this text, where several lines are asked for; without it the steps are gone through again.
        replaced: likewise what is gone from this text; without it all its origins are.

    Raises:
        RunError: there is no such text or line; where a line of that number is gone, the message names the step that
            removed it.
    """
    if parameter is None:
        if len(result.best) > 1:
            names = ", ".join(result.best)
            raise RunError(f"the run trained several texts, so say which one's line: --parameter one of {names}")
        parameter = next(iter(result.best))
    _check_trained(result, parameter)
    lines = result.best[parameter].split("\n")
    if not 1 <= number <= len(lines):
        gone = _gone_from_seed(result, parameter, number)
        raise RunError(f"{parameter} has lines 1 to {len(lines)}, so there is no line {number}{gone}")
    origins = result.origins.get(parameter, [])
    origin = origins[number - 1] if number <= len(origins) else None
    replaced = replaced or Replaced(origins)
    beside = () if origin is None else _beside(result, parameter, replaced, origin)
    if origin is None or origin.step == 0:
        return LineLineage(parameter, number, lines[number - 1], "", "", (), (), None, (), beside)
    arrivals = arrivals or Arrivals(parameter, result.seed.get(parameter, ""), result.steps)
    accepted = arrivals.step_of(lines[number - 1], origin)
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
        replaced=replaced.by(origin.edit),
        accepted=None if accepted is None else _trial(accepted),
        ablations=tuple(map(_trial, ablations)),
        beside=beside,
    )


def step_of(result: TrainResult, number: int, parameter: str | None = None) -> StepLineage:
    """What a step did to the texts, what asked for it, and the race that decided; also of lines that it removed.

    Args:
        result: of a run, or read back from its folder.
        number: of the step, from 1.
        parameter: the dotted name of a text, to see what became of this one only.

    Raises:
        RunError: there is no such step or text.
    """
    if parameter is not None:
        _check_trained(result, parameter)
    step = next((each for each in result.steps if each.step == number), None)
    if step is None:
        known = f"steps 1 to {result.steps[-1].step}" if result.steps else "no steps"
        raise RunError(f"the run has {known}, so there is no step {number}")
    changes = [change for change in step.changes if parameter in (None, change.name)]
    edits = tuple(edit for change in changes for edit in _edits_of(result, step, change))
    no_room = [
        f"the request to the optimizer about {each.name} had no room for {plural(each.left_out, 'item')} of feedback"
        for each in changes
        if each.left_out
    ]
    return StepLineage(_trial(step), edits, (*problems_of(step), *no_room))


def problems_of(step: StepEnded) -> tuple[str, ...]:
    """What did not go well in a step: proposals that were dropped, and answers that were not to be had, and why."""
    found = []
    if step.unanswered:
        such = f", e.g. {step.lost[0]}" if step.lost else ""
        found.append(f"{plural(step.unanswered, 'example')} of the minibatch had no answer{such}")
    if step.left_out:
        pieces = plural(step.left_out, "message or piece of feedback", "messages or pieces of feedback")
        found.append(f"the critic's context had no room for {pieces}, or for the middle of such, named in the log")
    found += [f"the proposal for {each.name} was dropped: {each.problem}" for each in step.changes if each.problem]
    found += [each + (f" ({count} times)" if count > 1 else "") for each, count in Counter(step.problems).items()]
    return tuple(found)


def lineage_as_json(found: LineLineage) -> dict[str, Any]:
    """The same as plain JSON values; what a race gained and lost by the examples' ids."""
    body = asdict(found)
    body["replaced"] = [
        {"text": gone.text, "evidence": [] if gone.origin is None else [asdict(item) for item in gone.origin.evidence]}
        for gone in found.replaced
    ]
    _tell_races([body["accepted"], *body["ablations"]], [found.accepted, *found.ablations])
    return body


def step_as_json(found: StepLineage) -> dict[str, Any]:
    """The same as plain JSON values; what a race gained and lost by the examples' ids."""
    body = asdict(found)
    _tell_races([body["trial"]], [found.trial])
    for entry, edit in zip(body["edits"], found.edits):
        _tell_races(entry["ablations"], edit.ablations)
    return body


def _tell_races(entries: Sequence[Any], trials: Sequence[Trial | None]) -> None:
    for entry, trial in zip(entries, trials):
        if trial is not None and trial.race is not None:
            entry["race"] |= {"gained": list(trial.race.gained), "lost": list(trial.race.lost)}


def _check_trained(result: TrainResult, parameter: str) -> None:
    if parameter not in result.best:
        raise RunError(f"the run trained no {parameter!r}; it trained {', '.join(result.best)}")


def _trial(step: StepEnded) -> Trial:
    return Trial(step.step, step.kind, step.kept, step.why, step.race)


def _gone_from_seed(result: TrainResult, parameter: str, number: int) -> str:
    """What became of a line of the seed text that is no longer there, in words; "" where there was none."""
    seed, best = result.seed[parameter], result.best[parameter]
    lines = diff_of(parameter, seed, best, result.origins.get(parameter, []), result.steps)
    before = [line for line in lines if line.op != "added"]
    if not 1 <= number <= len(before) or before[number - 1].op != "removed" or before[number - 1].step is None:
        return ""
    line = before[number - 1]
    return (
        f"; line {number} of the seed text, {line.text!r}, is gone since step {line.step}, which --step {line.step} "
        "explains"
    )


def _beside(result: TrainResult, parameter: str, replaced: Replaced, origin: Origin) -> tuple[Removed, ...]:
    """The lines that stood beside a line and were removed; those that were replaced have lines that stand for them."""
    found = []
    for each in (*origin.gone_before, *origin.gone):
        if each.by not in replaced.writers:
            steps = [step.step for step in result.steps if step.kept and _takes_out(step, parameter, each.text)]
            by = next((step for step in steps if each.by.startswith(f"{step}.")), steps[-1] if steps else None)
            found.append(Removed(each.text, by))
    return tuple(found)


def _edits_of(result: TrainResult, step: StepEnded, change: ParameterChange) -> Iterator[EditLineage]:
    """What a step did to a text, place by place; of a text that was written as a whole, by the lines that differ."""
    before = change.before.split("\n")
    for number, edit in enumerate(change.edits, 1):
        name = edit.id or f"{step.step}.{number}"
        removed: tuple[str, ...] = () if edit.op == "add" else (before[edit.line - 1],)
        added: tuple[str, ...] = () if edit.op == "remove" else tuple(edit.text.split("\n"))
        yield EditLineage(
            parameter=change.name,
            edit=name,
            removed=removed,
            added=added,
            reason=edit.reason,
            evidence=_answered(change, edit),
            ablations=tuple(_without(result, change.name, name, removed, added)),
        )
    if change.edits:
        return
    after = change.after.split("\n")
    for tag, start, stop, first, last in matcher_of(before, after).get_opcodes():
        if tag == "equal":
            continue
        removed, added = tuple(before[start:stop]), tuple(after[first:last])
        known = next(_tried_without(result, step, change.name, removed, added), None)
        if known is None:
            yield EditLineage(change.name, "", removed, added, "", change.feedback, ())
        else:
            name, edit, asked = known
            yield EditLineage(change.name, name, removed, added, edit.reason, _answered(asked, edit), ())


def _answered(change: ParameterChange, edit: Edit) -> tuple[Evidence, ...]:
    return tuple(change.feedback[number - 1] for number in edit.feedback)


def _without(
    result: TrainResult, parameter: str, edit: str, removed: Sequence[str], added: Sequence[str]
) -> Iterator[Trial]:
    """The steps that tried a text without an edit, so that what it wrote went or what it removed came back."""
    for step in result.steps:
        if edit in step.ablated and (
            any(_takes_out(step, parameter, line) for line in added)
            or any(_brings_back(step, parameter, line) for line in removed)
        ):
            yield _trial(step)


def _tried_without(
    result: TrainResult, step: StepEnded, parameter: str, removed: Sequence[str], added: Sequence[str]
) -> Iterator[tuple[str, Edit, ParameterChange]]:
    """The edits that an ablation tried a text without, of those that had written or removed some lines."""
    for earlier in result.steps:
        for change in earlier.changes:
            before = change.before.split("\n")
            for number, edit in enumerate(change.edits if change.name == parameter else (), 1):
                name = edit.id or f"{earlier.step}.{number}"
                wrote = edit.op != "remove" and set(removed) & set(edit.text.split("\n"))
                took = edit.op != "add" and before[edit.line - 1] in added
                if name in step.ablated and (wrote or took):
                    yield name, edit, change


def _brings_back(step: StepEnded, parameter: str, line: str) -> bool:
    pairs = [(each.before.split("\n"), each.after.split("\n")) for each in step.changes if each.name == parameter]
    return any(before.count(line) < after.count(line) for before, after in pairs)


def _takes_out(step: StepEnded, parameter: str, line: str) -> bool:
    """Whether a step takes a line out of a parameter: edits of two parameters may have one id."""
    pairs = [
        (change.before.split("\n"), change.after.split("\n")) for change in step.changes if change.name == parameter
    ]
    return any(before.count(line) > after.count(line) for before, after in pairs)
