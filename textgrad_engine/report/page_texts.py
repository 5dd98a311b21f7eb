"""The parts of a report's page about texts: what changed in them, who asked for it, and what each step tried."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby

from textgrad_engine.optim.cells import Evidence
from textgrad_engine.report.difference import Arrivals, DiffLine, Replaced, with_excerpts
from textgrad_engine.report.evidence import in_words, merged
from textgrad_engine.report.figures import gains, stairs
from textgrad_engine.report.html import Markup, data, element, joined
from textgrad_engine.report.lineage import EditLineage, LineLineage, StepLineage, Trial, lineage_of, step_of
from textgrad_engine.report.view import ParameterView
from textgrad_engine.report.words import capital, plural, score
from textgrad_engine.train.events import StepEnded
from textgrad_engine.train.result import TrainResult

SHOWN_LINE = 2_000
SHOWN_FEEDBACK = 1_000
SHOWN_NAME = 80
"""Characters of a line of a prompt, of a piece of feedback, and of a name."""

SHOWN_ITEMS = 12
SHOWN_LINES = 1_000
SHOWN_EDIT = 30
SHOWN_STEPS = 250
"""Pieces of feedback at one line, lines of a prompt, lines of one edit of a step, and steps."""

NEAR = 3
"""Lines that stayed are shown up to so far from a changed one; the others are folded away."""


def name_of(text: str) -> Markup:
    """A name that others gave."""
    return data(text, SHOWN_NAME)


def said(text: str) -> Markup:
    """What a critic, an optimizer or an error says."""
    return data(text, SHOWN_FEEDBACK)


def changes(result: TrainResult, parameter: ParameterView) -> Iterator[Markup]:
    """The lines of a text, each changed one with who asked for it and what decided.

    Args:
        result: of the run.
        parameter: the text.
    """
    if not parameter.changed:
        yield element("p", "Nothing.")
        return
    hint = f"{parameter.counts}. Open a changed line to see who asked for it, and what decided."
    yield element("p", hint, class_="hint")
    yield element("ol", *_lines(parameter, _Reasons(result, parameter.name)), class_="diff")
    whole = element("pre", data(result.best[parameter.name], SHOWN_LINE * 10))
    yield element("details", element("summary", "The prompt as a whole"), whole)


def _lines(parameter: ParameterView, reasons: _Reasons) -> Iterator[Markup]:
    """The lines of a diff; those that stayed and are far from a change are folded."""
    changed = [place for place, line in enumerate(parameter.lines) if line.op != "same"]
    near = {at for place in changed for at in range(place - NEAR, place + NEAR + 1)}
    numbered = list(_numbered(parameter.lines))
    shown = numbered[:SHOWN_LINES]
    for apart, group in groupby(enumerate(shown), lambda each: each[0] not in near):
        lines = [line for _, line in group]
        made = list(_blocks(reasons, lines))
        if apart and len(made) > 1:
            summary = element("summary", f"{plural(len(made), 'line')} as before")
            yield element("li", element("details", summary, element("ol", *made, class_="diff")), class_="folded")
        else:
            yield from made
    if (more := len(numbered) - SHOWN_LINES) > 0:
        yield element("li", f"and {plural(more, 'more line')}", class_="folded more")


def _numbered(lines: Sequence[DiffLine]) -> Iterator[tuple[int | None, DiffLine]]:
    number = 0
    for line in lines:
        if line.op == "removed":
            yield None, line
        else:
            number += 1
            yield number, line


def _blocks(reasons: _Reasons, lines: Sequence[tuple[int | None, DiffLine]]) -> Iterator[Markup]:
    """Lines with what is told about them; changed ones beside each other with the same to tell open together."""
    told = [(number, line, reasons.of(number, line)) for number, line in lines]
    for (op, _), group in groupby(told, lambda each: (each[1].op, each[2].text)):
        block = list(group)
        shown = [_shown(number, line) for number, line, _ in block]
        if op == "same":
            yield from (element("li", line, class_=op) for line in shown)
        else:
            why = element("div", block[0][2], class_="why")
            yield element("li", element("details", element("summary", *shown), why), class_=op)


def _shown(number: int | None, line: DiffLine) -> Markup:
    mark = {"same": " ", "added": "+", "removed": "\N{MINUS SIGN}"}[line.op]
    return element(
        "span",
        element("span", "" if number is None else str(number), class_="number"),
        element("span", mark, class_="mark"),
        element("span", data(line.shown, SHOWN_LINE), class_="text"),
        class_="line",
    )


class _Reasons:
    """Who asked for the changed lines of a text, and what decided.

    The lines of a rewrite have all of it in common, which names as many lines as they are, so it is made once for them.

    Args:
        result: of the run.
        parameter: the text's dotted name.
    """

    def __init__(self, result: TrainResult, parameter: str) -> None:
        self._result = result
        self._parameter = parameter
        self._arrivals = Arrivals(parameter, result.seed[parameter], result.steps)
        self._replaced = Replaced(result.origins.get(parameter, []))
        self._added: dict[Hashable, Markup] = {}
        self._step = functools.cache(lambda number: step_of(result, number, parameter))

    def of(self, number: int | None, line: DiffLine) -> Markup:
        """What is told of a line; its number is that in the best text, None for one that is not in it."""
        if line.op == "removed":
            return joined(*_why_removed(line, None if line.step is None else self._step(line.step)))
        if line.op == "same" or number is None:
            return joined()
        found = lineage_of(self._result, number, self._parameter, self._arrivals, self._replaced)
        steps = [None if trial is None else trial.step for trial in (found.accepted, *found.ablations)]
        shared = (found.edit, found.reason, found.evidence, tuple(steps), found.beside)
        if shared not in self._added:
            self._added[shared] = joined(*_why_added(found))
        return self._added[shared]


def _why_added(found: LineLineage) -> Iterator[Markup]:
    if not found.edit:
        yield element("p", "Nobody noted who wrote this line.")
        return
    yield element("p", f"Edit {found.edit}: ", said(found.reason or "no reason given"))
    yield from _feedback(found.evidence)
    for gone in found.replaced:
        yield element("p", "It stands for: ", element("code", data(gone.text, SHOWN_LINE)))
        if gone.origin is not None and gone.origin.evidence:
            yield from _feedback(gone.origin.evidence)
    if found.accepted is None:
        yield element("p", "No step of this run brought it in; an earlier one did.")
    else:
        yield from _trial("Accepted", found.accepted)
    for ablation in found.ablations:
        yield from _trial("Tried without", ablation)
    if not found.ablations:
        yield element("p", "It was never tried without this edit.")
    for each in found.beside:
        since = "" if each.step is None else f", until step {each.step}"
        yield element("p", "Beside it stood ", element("code", data(each.text, SHOWN_LINE)), f"{since}.")


def _why_removed(line: DiffLine, found: StepLineage | None) -> Iterator[Markup]:
    if found is None:
        yield element("p", "Nobody noted what removed this line.")
        return
    yield element("p", said(line.reason or "no reason given"))
    yield from _feedback(line.evidence)
    yield from _trial("Removed", found.trial)
    for edit in found.edits:
        if line.text in edit.removed:
            for ablation in edit.ablations:
                yield from _trial("Tried with it", ablation)


def _feedback(evidence: Iterable[Evidence], asked: str = "Feedback that asked for it") -> Iterator[Markup]:
    items = merged(evidence)
    if not items:
        yield element("p", "It cites no feedback.")
        return
    shown = [
        element(
            "li", element("span", data(in_words(item.examples), SHOWN_FEEDBACK), class_="ids"), " ", said(item.text)
        )
        for item in items[:SHOWN_ITEMS]
    ]
    if (more := len(items) - SHOWN_ITEMS) > 0:
        shown.append(element("li", f"and {plural(more, 'more piece')} of feedback"))
    yield element("p", f"{asked}:")
    yield element("ul", *shown, class_="feedback")


def _trial(word: str, trial: Trial) -> Iterator[Markup]:
    kind = f", {trial.kind}" if trial.kind else ""
    why = trial.why or ("kept" if trial.kept else "not kept")
    yield element("p", f"{word} in step {trial.step}{kind}: ", said(why))
    yield from _race(trial)


def _race(trial: Trial) -> Iterator[Markup]:
    if (race := trial.race) is None:
        yield element("p", "The run folder holds no race for it.", class_="hint")
        return
    better, worse, all_ = len(race.gained), len(race.lost), len(race.examples)
    run = f"Race on {plural(all_, 'example')}: difference {score(race.difference, True)}"
    told = [f"{run}, {race.odds}."]
    for word, names in (("Better", race.gained), ("Worse", race.lost)):
        told.append(f"{word} on {in_words(names)}." if names else f"{word} on none.")
    yield element(
        "div",
        gains(better, worse, all_ - better - worse),
        *(element("p", data(sentence, SHOWN_LINE)) for sentence in told),
        class_="race",
    )


def steps(result: TrainResult) -> Iterator[Markup]:
    """What each step tried, in order, and what became of it.

    Args:
        result: of the run.
    """
    if not result.steps:
        return
    if result.seed_val is not None:
        values = [result.seed_val.mean, *(step.best_val for step in result.steps)]
        yield stairs(values, [True, *(step.kept for step in result.steps)], "The best validation score, step by step")
        yield element(
            "p",
            "The best validation score as far as it is known after each step, beginning with the seed prompt; a dot is "
            "a step that was kept.",
            class_="hint",
        )
    shown = [_step(result, step) for step in result.steps[:SHOWN_STEPS]]
    yield element("ol", *shown, class_="steps")
    if (more := len(result.steps) - SHOWN_STEPS) > 0:
        yield element("p", f"and {plural(more, 'more step')}, in events.jsonl")


def _step(result: TrainResult, step: StepEnded) -> Markup:
    edits = sum(len(change.edits) or change.after != change.before for change in step.changes)
    inside = (
        element("span", str(step.step), class_="number"),
        element("span", step.kind or "step", class_="what"),
        element("span", "kept" if step.kept else "not kept", class_="kept" if step.kept else "dropped"),
        element("span", _outcome(step, edits), class_="outcome"),
    )
    return element(
        "li", element("details", element("summary", *inside), element("div", *_told(result, step), class_="why"))
    )


def _outcome(step: StepEnded, edits: int) -> Markup:
    parts = [plural(edits, "edit") if edits else "no change"]
    if (race := step.race) is not None:
        parts.append(f"+{len(race.gained)} \N{MINUS SIGN}{len(race.lost)} of {len(race.examples)}")
    if step.val_mean is not None:
        parts.append(f"validation {score(step.val_mean)}")
    problem = next((change.problem for change in step.changes if change.problem), "")
    why = step.why or (f"dropped: {problem}" if problem else "")
    return joined(", ".join(parts), *((": ", data(why, SHOWN_NAME * 2)) if why else ()))


def _told(result: TrainResult, step: StepEnded) -> Iterator[Markup]:
    found = step_of(result, step.step)
    heard = []
    if step.train_mean is not None:
        heard.append(f"{plural(len(step.examples), 'example')} with a mean score of {score(step.train_mean)}")
    if step.feedback:
        heard.append(f"{plural(step.feedback, 'piece')} of feedback")
    if heard:
        yield element("p", f"{capital(', '.join(heard))}.")
    if found.edits:
        yield from _race(found.trial)
    for problem in found.problems:
        yield element("p", said(capital(problem)))
    for edit in found.edits:
        yield from _edit(edit, found.trial.kind == "ablation", many=len(result.best) > 1)
    if not found.edits:
        yield element("p", "It changed nothing.")


def _edit(edit: EditLineage, ablation: bool, many: bool) -> Iterator[Markup]:
    edited = [DiffLine("removed", text) for text in edit.removed] + [DiffLine("added", text) for text in edit.added]
    lines = with_excerpts(edited)
    if many:
        yield element("p", name_of(edit.parameter), ":")
    shown = [element("li", _shown(None, line), class_=line.op) for line in lines[:SHOWN_EDIT]]
    if (more := len(lines) - SHOWN_EDIT) > 0:
        shown.append(element("li", f"and {plural(more, 'more line')}", class_="folded more"))
    yield element("ol", *shown, class_="diff bare")
    if edit.edit:
        mark = f"Without edit {edit.edit}, made because: " if ablation else f"Edit {edit.edit}: "
        yield element("p", mark, said(edit.reason or "no reason given"))
    yield from _feedback(edit.evidence, "Feedback that had asked for it" if ablation else "Feedback that asked for it")
