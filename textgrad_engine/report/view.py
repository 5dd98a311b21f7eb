"""What a report says, as plain values, before anybody decides how it looks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from textgrad_engine.llm.response import Usage
from textgrad_engine.optim.search.marks import marks_of
from textgrad_engine.optim.search.race import FEWEST
from textgrad_engine.report.difference import DiffLine, Op, diff_of
from textgrad_engine.report.lineage import problems_of
from textgrad_engine.report.pairing import setting_in
from textgrad_engine.report.words import NOT_MEASURED, interval, p_value, plural, score, within
from textgrad_engine.store import Run
from textgrad_engine.train import Comparison, Evaluation, TrainResult
from textgrad_engine.train.controls import CONTROLS
from textgrad_engine.train.latency import latency_change

__all__ = [
    "CONTROL",
    "ControlRow",
    "ParameterView",
    "ScoreRow",
    "UsageRow",
    "View",
    "headline",
    "looked_at_before",
    "lost",
    "measured",
    "none_kept",
    "remark_on",
    "said",
    "size",
    "view_of",
]

Tone = Literal["good", "bad", "plain"]

CONTROL = "a control: the optimizer got no feedback"
"""What is special about a run with ``--no-feedback``."""


def remark_on(kept: Mapping[str, Any] | None) -> str:
    """What was special about a run, for its report.

    Args:
        kept: what its ``config.json`` says; None where it has none.
    """
    kept = kept or {}
    said = [] if kept.get("feedback", True) else [CONTROL]
    if setting_in(kept, "config", "models", "prices"):
        said.append("its costs are by stated prices")
    return "; ".join(said)


@dataclass(frozen=True)
class ScoreRow:
    """The scores on one set.

    Attributes:
        name: the set.
        seed: the seed prompt's mean and interval, in words.
        best: the same of the best prompt.
        size: how many examples it has, in words; "" when it was never measured.
    """

    name: str
    seed: str
    best: str
    size: str


@dataclass(frozen=True)
class UsageRow:
    """What the calls of one purpose used; the last row is the sum."""

    purpose: str
    usage: Usage


@dataclass(frozen=True)
class ControlRow:
    """One of the prompts that stand beside each other where a run had controls, in words.

    Attributes:
        name: where it comes from.
        val: its validation score.
        test: its test score and interval.
        usage: what its search used; None for the seed prompt, which needed none.
    """

    name: str
    val: str
    test: str
    usage: Usage | None


@dataclass(frozen=True)
class ParameterView:
    """What became of one parameter."""

    name: str
    lines: tuple[DiffLine, ...]

    def number_of(self, op: Op) -> int:
        """How many lines were added, removed, or stayed."""
        return sum(line.op == op for line in self.lines)

    @property
    def changed(self) -> bool:
        """Whether any line is not as it was."""
        return self.number_of("same") < len(self.lines)


@dataclass(frozen=True)
class View:
    """A report on a run.

    Attributes:
        headline: how it ended.
        scores: a row for each set.
        verdict: what may be said about best against seed, in words.
        tone: whether that is good news.
        notes: what a reader must know to judge the scores.
        usage: calls, tokens and cost by purpose, and their sum.
        controls: the seed prompt, the controls and the optimizer's result; empty where a run had no controls.
        against: what may be said about the optimizer's result against each control.
        seconds: how long it took.
        parameters: what became of each trained text.
        problems: proposals that were dropped, and answers of program, critic or optimizer that were not to be had.
    """

    headline: str
    scores: tuple[ScoreRow, ...]
    verdict: str
    tone: Tone
    notes: tuple[str, ...]
    usage: tuple[UsageRow, ...]
    seconds: float
    parameters: tuple[ParameterView, ...]
    problems: tuple[str, ...]
    controls: tuple[ControlRow, ...] = ()
    against: tuple[str, ...] = ()


def view_of(result: TrainResult, openings: int | None = None, before: int = 0) -> View:
    """What a report on a run says.

    Args:
        result: of a run, or read back from its folder.
        openings: how often the test set was opened, evaluations since the run included; None for the run's own.
        before: how often other runs had opened the same test examples before this one.
    """
    verdict, tone = _verdict(result)
    rows = [UsageRow(purpose, usage) for purpose, usage in result.usage.items()]
    return View(
        headline=_headline(result),
        scores=(
            _row("validation", result.seed_val, result.best_val),
            _row("test", result.seed_test, result.best_test),
        ),
        verdict=verdict,
        tone=tone,
        notes=_notes(result, max(result.openings, 0 if openings is None else openings), before),
        usage=(*rows, UsageRow("all", result.total)),
        seconds=result.seconds,
        parameters=tuple(
            ParameterView(name, diff_of(name, seed, result.best[name], result.origins.get(name, []), result.steps))
            for name, seed in result.seed.items()
        ),
        problems=tuple(f"step {step.step}: {problem}" for step in result.steps for problem in problems_of(step)),
        controls=tuple(_controls(result)),
        against=tuple(_against(result)),
    )


def headline(run: Run) -> str:
    """How a run ended, in words; of one without a result, how far it came."""
    if run.result is not None:
        return _headline(run.result)
    steps = plural(len(run.steps), "step")
    if run.error:
        return f"no result: it ended with an error after {steps}"
    if run.locked:
        return f"no result yet: it still runs; {steps} so far"
    return f"no result: it was killed after {steps}"


def _headline(result: TrainResult) -> str:
    if result.shortage:
        return f"nothing was asked: {result.shortage}"
    after = f"after {plural(len(result.steps), 'step')}" if result.steps else "before the first step"
    return {
        "finished": f"finished {after}",
        "interrupted": f"interrupted {after}; this is the result so far",
        "budget": f"the budget was spent {after}; this is the result so far",
    }[result.status]


def _row(name: str, seed: Evaluation | None, best: Evaluation | None) -> ScoreRow:
    known = best or seed
    return ScoreRow(name, measured(seed), measured(best), "" if known is None else size(known))


def size(evaluation: Evaluation) -> str:
    """How much was measured, in words: examples, the clusters they come in, samples of each."""
    found = plural(len(evaluation), "example")
    if evaluation.not_run:
        found = f"{len(evaluation) - len(evaluation.not_run)} of {found}"
    if evaluation.clusters:
        found += f" in {plural(len(set(evaluation.clusters)), 'cluster')}"
    return f"{found}, {len(evaluation.samples[0])} samples each" if evaluation.samples else found


def measured(evaluation: Evaluation | None) -> str:
    """The mean of an evaluation and its interval, in words."""
    if evaluation is None:
        return NOT_MEASURED
    return f"{score(evaluation.mean)} {interval(evaluation.interval)}"


def _verdict(result: TrainResult) -> tuple[str, Tone]:
    if result.seed_val is None:
        return "not measured: the run ended before the seed prompt was scored", "plain"
    if result.seed == result.best:
        return f"the best prompt is the seed prompt: {none_kept(result)}", "plain"
    found = result.comparison
    if found is None or result.compared_on is None:
        return "not measured: the run ended before both prompts were tested", "plain"
    on = {"test": "on test", "val": "on validation only, which chose this prompt"}[result.compared_on]
    tone: Tone = "plain" if result.compared_on == "val" else _TONES[found.verdict]
    return f"{said(found)} {on}", tone


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
        return "the run ended before its first step"
    if not refused:
        if silent := _without_feedback(result):
            return silent
        higher = any(step.val_mean is not None and step.val_mean > step.best_val for step in result.steps)
        return "no change did clearly better" if higher else "no change did better"
    were = "was" if len(refused) == 1 else "were"
    first = f"{'first: ' if len(refused) > 1 else ''}{refused[0].removeprefix('refused: ')}"
    return f"{plural(len(refused), 'change')} did better and {were} refused by the guards ({first})"


def _without_feedback(result: TrainResult) -> str:
    """Why no change was tried at all, in words; "" where one was, or where answers of the critic were not to be had."""
    if any(step.feedback or step.changes or step.race is not None or step.problems for step in result.steps):
        return ""
    critic = result.usage.get("backward", Usage()).calls
    if critic:
        return f"the critic was asked {plural(critic, 'time')} and found nothing to change"
    val = result.seed_val
    if val is None or val.limits is None:
        return ""
    known = [step.train_mean for step in result.steps if step.train_mean is not None] or [val.mean]
    return "all training answers were right, so there was nothing to learn" if min(known) >= val.limits[1] else ""


def _controls(result: TrainResult) -> Iterator[ControlRow]:
    found = result.controls
    if found is None:
        return
    yield ControlRow("seed prompt", _mean(result.seed_val), measured(result.seed_test), None)
    for each in found.each:
        yield ControlRow(each.name, _mean(each.val), measured(each.test), each.usage)
    yield ControlRow(found.optimizer, _mean(result.best_val), measured(result.best_test), found.usage)


def _mean(evaluation: Evaluation | None) -> str:
    return NOT_MEASURED if evaluation is None else score(evaluation.mean)


def _against(result: TrainResult) -> Iterator[str]:
    found = result.controls
    if found is None:
        return
    for each in found.each:
        beside = f"{found.optimizer} against {each.name}:"
        if each.comparison is None:
            yield f"{beside} not measured"
        elif each.best == result.best:
            yield f"{beside} the same prompt"
        else:
            on = "on test" if each.compared_on == "test" else "on validation only, which chose both"
            yield f"{beside} {said(each.comparison)} {on}"
        if each.problem:
            yield f"The search of {each.name} ended early: {each.problem}"


_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "not shown": "plain"}


def said(found: Comparison) -> str:
    """A comparison in words: verdict, difference and interval, and how likely it is by chance."""
    word = {"not shown": "no difference shown"}.get(found.verdict, found.verdict)
    chance = p_value(found.p_value)
    if found.adjusted is not None:
        chance = f"{p_value(found.adjusted)} for the best of {found.candidates}"
    return f"{word}: {score(found.difference, True)} {interval(found.interval, True)}, {chance},"


def _time(result: TrainResult) -> Iterator[str]:
    """What the best prompt changes about the time of an answer, on the test set if there is one."""
    if result.seed == result.best:
        return
    for name, seed, best in (
        ("test", result.seed_test, result.best_test),
        ("validation", result.seed_val, result.best_val),
    ):
        if seed is None or best is None or (change := latency_change(seed, best)) is None:
            continue
        word = {"not shown": "no difference shown"}.get(change.verdict, change.verdict)
        ends = " to ".join("unknown" if math.isinf(end) else f"{end:+.2f}" for end in change.interval)
        yield (
            f"Time of an example's answers on the {name} set: {change.before:.2f} s -> {change.after:.2f} s "
            f"({word}: {ends} s, {plural(change.examples, 'example')})."
        )
        return


def _controls_looked(result: TrainResult) -> bool:
    """Whether the controls found other texts than the run, for which the test set was opened once more."""
    each = () if result.controls is None else result.controls.each
    return any(made.best not in (result.seed, result.best) for made in each)


def _notes(result: TrainResult, openings: int, others: int) -> tuple[str, ...]:
    found = result.comparison if result.seed != result.best else None
    notes = []
    if found is not None and found.remark:
        reliably = found.detectable is not None and math.isfinite(found.detectable) and not found.lost
        often = " (found 4 times in 5)" if reliably else ""
        notes.append(f"{found.remark[:1].upper()}{found.remark[1:]}{often}.")
    if result.candidates:
        notes.append(
            f"The best prompt was chosen on the validation set, out of {result.candidates + 1} that were tried there "
            "with the seed prompt, so its score there flatters it."
        )
    notes += _too_few(result)
    notes += _all_alike(result)
    looked = result.openings
    before = looked - 1 - _controls_looked(result)  # for what was the best prompt before the run was resumed
    if looked == openings > 1 and before < 1:
        notes.append(
            f"The test set was opened {looked} times at the end, for these two prompts and for the controls, and chose "
            "nothing."
        )
    elif openings > 1 and before > 0:
        end = ", at its end, and by evaluations since" if openings > looked else " and at its end"
        notes.append(
            f"The test set was opened {openings} times, by the run before it was resumed{end}. The more often one "
            "looks at it and then chooses, the more its score flatters."
        )
    elif openings > 1:
        notes.append(
            f"The test set was opened {openings} times, by the run at its end and by evaluations since. The more often "
            "one looks at it and then chooses, the more its score flatters."
        )
    elif result.best_test is not None and result.seed != result.best:
        whose = "By this run the" if others else "The"
        notes.append(f"{whose} test set was opened once, at the end, for these two prompts, and chose nothing.")
    if others and result.best_test is not None and result.seed != result.best:
        notes.append(looked_at_before(others))
    if result.best_test is None and result.seed != result.best:
        notes.append("Without a test score, nobody knows how much of the gain is luck.")
    if result.untested:
        notes.append(f"{result.untested[:1].upper()}{result.untested[1:]}.")
    if result.status == "budget" and result.controls is not None and len(result.controls.each) < len(CONTROLS):
        notes.append("The budget was spent before all controls were run.")
    notes += [f"{sentence}." for sentence in result.overlaps]
    for which, evaluation in (
        ("seed prompt, validation", result.seed_val),
        ("best prompt, validation", result.best_val),
        ("seed prompt, test", result.seed_test),
        ("best prompt, test", result.best_test),
    ):
        if evaluation is not None and evaluation.unanswered:
            notes.append(f"{which}: {lost(evaluation)}")
    notes += _time(result)
    if found is not None and found.bounds is not None:
        notes.append(f"Whatever the missing answers would have scored, the difference is {within(found.bounds, True)}.")
    return tuple(notes)


def looked_at_before(times: int) -> str:
    """What it means that others had opened the test examples before.

    Args:
        times: so often.

    Example:
        >>> looked_at_before(3)[:79]
        'Other runs had opened the same test examples 3 times before. Who looks 4 times '
    """
    chance = 1 - 0.975 ** (times + 1)
    return (
        f"Other runs had opened the same test examples {plural(times, 'time')} before. Who looks {times + 1} times at "
        f'prompts that are no better is told "better" at least once with a chance of up to {chance:.0%}; test examples '
        "that nobody has looked at yet tell more."
    )


def _too_few(result: TrainResult) -> Iterator[str]:
    """Where no change could have won its race by doing better, however good it was."""
    if result.seed != result.best or result.seed_val is None or all(step.race is None for step in result.steps):
        return
    scores = result.seed_val.answered
    marks = marks_of(result.seed_val.limits, scores)
    failed = sum(score < marks.top for score in scores)
    if marks.known and failed < FEWEST:
        yield (
            f"The seed prompt fails {failed} of {plural(len(scores), 'validation example')}, and a change is kept only "
            f"if it does better on {FEWEST} at least, so only a shorter text could be kept; add validation examples "
            "that it fails."
        )


def _all_alike(result: TrainResult) -> Iterator[str]:
    """Where no example ever scored anything but the same, so that no change could show what it repaired."""
    if result.seed != result.best or result.seed_val is None or not any(step.changes for step in result.steps):
        return
    scores = result.seed_val.answered
    found = {*scores, *(each for step in result.steps if step.race is not None for each in step.race.after)}
    if len(scores) > 1 and len(found) == 1 and scores[0] < marks_of(result.seed_val.limits, scores).top:
        yield (
            f"Every validation example scored {score(scores[0])} with all texts that were raced there, so a change "
            "that repairs one of several faults of an answer could not show. A metric that gives part of the score for "
            "what is right already would tell, and so would a seed prompt that gets some examples right."
        )


def lost(evaluation: Evaluation) -> str:
    """What is known of the answers that an evaluation lacks, in words: how many, why, and what they could change."""
    parts = []
    if evaluation.failures:
        name, error = next(iter(evaluation.failures.items()))
        parts.append(f"{plural(len(evaluation.failures), 'example')} without an answer left out, e.g. {name}: {error}.")
    if evaluation.not_run:
        number, all_ = len(evaluation.not_run), len(evaluation)
        parts.append(f"{number} of {plural(all_, 'example')} {'was' if number == 1 else 'were'} not run with it.")
    said = " ".join(parts) or f"{plural(evaluation.unanswered, 'sample')} without an answer left out."
    if evaluation.bounds is not None:
        if all(map(math.isfinite, evaluation.bounds)):
            low, high = map(score, evaluation.bounds)
            said += f" Had they scored lowest, the mean would be {low}, and had they scored highest, {high}."
        else:
            said += f" Whatever they would have scored, the mean is {within(evaluation.bounds)}."
    return said
