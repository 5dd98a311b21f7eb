"""Where a line or a step comes from, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textgrad_engine.report.evidence import in_words, merged
from textgrad_engine.report.lineage import EditLineage, LineLineage, StepLineage, Trial
from textgrad_engine.report.printing import hanging, indented, printed
from textgrad_engine.report.words import capital, plural, score

if TYPE_CHECKING:
    from rich.console import RenderableType


def render_line(found: LineLineage, *, width: int = 80, color: bool = False) -> str:
    """Where one line comes from, as text.

    Args:
        found: the line.
        width: columns.
        color: with the terminal's codes for colors.
    """
    parts: list[RenderableType] = [hanging(f"{found.parameter}, line {found.number}: ", "", found.text, "bold"), ""]
    if not found.edit:
        parts.append(indented("A line of the seed text; no step of the run has changed it.", 2))
        parts += _beside(found)
        return printed(parts, width, color)
    parts.append(hanging("  ", "  ", f"Edit {found.edit}: {found.reason or 'no reason given'}"))
    parts += ["", indented("Feedback that asked for it" if found.evidence else "It cites no feedback.", 2)]
    parts += [hanging(" " * 4, "  ", f"{in_words(item.examples)}: {item.text}") for item in merged(found.evidence)]
    for gone in found.replaced:
        parts += ["", hanging("  It stands for: ", "", gone.text)]
        asked = () if gone.origin is None else gone.origin.evidence
        parts += [hanging(" " * 4, "  ", f"{in_words(item.examples)}: {item.text}") for item in merged(asked)]
    parts += ["", *_trial("Accepted", found.accepted)]
    for ablation in found.ablations:
        parts += ["", *_trial("Tried without", ablation)]
    if not found.ablations:
        parts += ["", indented("It was never tried without this edit.", 2)]
    parts += _beside(found)
    return printed(parts, width, color)


def _beside(found: LineLineage) -> Iterator[RenderableType]:
    for each in found.beside:
        yield ""
        yield hanging("  Beside it stood: ", "", each.text)
        if each.step is not None:
            yield indented(f"It was removed in step {each.step}, which --step {each.step} explains.", 4)


def render_step(found: StepLineage, *, width: int = 80, color: bool = False) -> str:
    """What a step did and why, as text.

    Args:
        found: the step.
        width: columns.
        color: with the terminal's codes for colors.
    """
    trial = found.trial
    what = f"Step {trial.step}{f', {trial.kind}' if trial.kind else ''}"
    why = f": {trial.why}" if trial.why else ""
    parts: list[RenderableType] = [
        hanging("", "  ", f"{what}, {'kept' if trial.kept else 'not kept'}{why}", "bold"),
        *(_race(trial, 2) if found.edits else [indented("It changed nothing.", 2)]),
        *(indented(capital(problem), 2) for problem in found.problems),
    ]
    for edit in found.edits:
        parts += ["", *_edit(edit, trial)]
    return printed(parts, width, color)


def _edit(edit: EditLineage, of: Trial) -> Iterator[RenderableType]:
    ablation = of.kind == "ablation"
    yield indented(f"{edit.parameter}:", 2)
    for line in edit.removed:
        yield hanging("  - ", "", line, "red")
    for line in edit.added:
        yield hanging("  + ", "", line, "green")
    if edit.edit:
        mark = f"Without edit {edit.edit}, made because" if ablation else f"Edit {edit.edit}"
        yield hanging("  ", "  ", f"{mark}: {edit.reason or 'no reason given'}")
    asked = "Feedback that had asked for that edit" if ablation else "Feedback that asked for it"
    yield indented(asked if edit.evidence else "It cites no feedback.", 2)
    for item in merged(edit.evidence):
        yield hanging(" " * 4, "  ", f"{in_words(item.examples)}: {item.text}")
    for trial in edit.ablations:
        yield from _trial("Tried without", trial)
    if of.kept and not ablation and not edit.ablations:
        yield indented("It was never tried without this edit.", 2)


def _trial(word: str, trial: Trial | None) -> Iterator[RenderableType]:
    if trial is None:
        yield indented("No step of this run brought it in; an earlier one did.", 2)
        return
    kind = f", {trial.kind}" if trial.kind else ""
    yield hanging(
        "  ", "  ", f"{word} in step {trial.step}{kind}: {trial.why or ('kept' if trial.kept else 'not kept')}"
    )
    yield from _race(trial, 4)


def _race(trial: Trial, by: int) -> Iterator[RenderableType]:
    if (race := trial.race) is None:
        yield indented("The run folder holds no race for it.", by)
        return
    run = f"race on {plural(len(race.examples), 'example')}: difference {score(race.difference, True)}"
    yield hanging(" " * by, "  ", f"{run}, {race.odds}")
    yield hanging(" " * by, "  ", f"better on {in_words(race.gained) if race.gained else 'none'}")
    yield hanging(" " * by, "  ", f"worse on {in_words(race.lost) if race.lost else 'none'}")
