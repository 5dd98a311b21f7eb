"""What a reader of a report must know to judge its scores."""

from __future__ import annotations

import math
from collections.abc import Iterator

from textgrad_engine.optim.search.marks import marks_of
from textgrad_engine.optim.search.race import FEWEST
from textgrad_engine.report.doubts import note_of
from textgrad_engine.report.words import capital, decimals, plural, score, within
from textgrad_engine.train.controls import CONTROLS
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.latency import latency_change
from textgrad_engine.train.result import TrainResult


def notes_on(result: TrainResult, openings: int, others: int) -> tuple[str, ...]:
    """What a reader must know to judge the scores of a run, in words.

    Args:
        result: of the run.
        openings: how often its test set was opened, evaluations since the run included.
        others: how often other runs had opened the same test examples before.
    """
    found = result.comparison if result.seed != result.best else None
    notes = []
    if found is not None and found.remark:
        reliably = found.detectable is not None and math.isfinite(found.detectable) and not found.held_back
        often = " (found 4 times in 5)" if reliably else ""
        notes.append(f"{capital(found.remark)}{often}.")
    if result.candidates:
        notes.append(
            f"The validation set chose the best prompt out of {result.candidates + 1} (seed prompt included), so its "
            "score there flatters it."
        )
    notes += [f"{capital(sentence)}." for sentence in result.terms]
    notes += _without_scale(result)
    notes += _too_few(result)
    notes += _all_alike(result)
    notes += _looks(result, openings, others)
    notes += note_of(result)
    if result.best_test is None and result.seed != result.best:
        notes.append("Without a test score, nobody knows how much of the gain is luck.")
    if result.idle:
        notes.append(f"{capital(result.idle)}.")
    if result.unspent:
        notes.append(f"{capital(result.unspent)}.")
    if result.untested:
        notes.append(f"{capital(result.untested)}.")
    if result.controls is not None and result.controls.problem:
        notes.append(f"{capital(result.controls.problem)}.")
    elif result.status == "budget" and result.controls is not None and len(result.controls.each) < len(CONTROLS):
        missing = "all controls were" if result.controls.each else "any control was"
        notes.append(f"The budget was spent before {missing} run.")
    notes += [f"{sentence}." for sentence in result.overlaps]
    told: list[str] = []
    for which, evaluation in (
        ("seed prompt, validation", result.seed_val),
        ("best prompt, validation", result.best_val),
        ("seed prompt, test", result.seed_test),
        ("best prompt, test", result.best_test),
    ):
        said = "" if evaluation is None or not evaluation.unanswered else lost(evaluation)
        if said and not (said in told and result.seed == result.best):  # the best prompt is then the seed prompt
            notes.append(f"{which}: {said}")
        told.append(said)
    notes += _time(result)
    if found is not None and found.bounds is not None:
        notes.append(f"Whatever the missing answers would have scored, the difference is {within(found.bounds, True)}.")
    return tuple(notes)


def _looks(result: TrainResult, openings: int, others: int) -> Iterator[str]:
    """How often the test set was opened, and what that means; the arguments are those of `notes_on`."""
    looked = result.openings
    before = looked - 1 - _controls_looked(result)  # for what was the best prompt before the run was resumed
    if looked == openings > 1 and before < 1:
        yield (
            f"The test set was opened {looked} times at the end, for these two prompts and for the controls, and it "
            "chose nothing."
        )
    elif openings > 1 and before > 0:
        end = ", at its end, and by evaluations of it" if openings > looked else " and at its end"
        yield (
            f"The test set was opened {openings} times, by the run before it was resumed{end}. The more often one "
            "looks at it and then chooses, the more its score flatters."
        )
    elif openings > 1:
        yield (
            f"The test set was opened {openings} times, by the run at its end and by evaluations of it. The more "
            "often one looks at it and then chooses, the more its score flatters."
        )
    elif result.best_test is not None and result.seed != result.best:
        opened = "This run opened the test set once" if others else "The test set was opened once"
        yield f"{opened}, at the end, for these two prompts, and it chose nothing."
    if others and result.best_test is not None and result.seed != result.best:
        yield looked_at_before(others)


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
        digits = decimals((change.before, change.after))
        ends = " to ".join("unknown" if math.isinf(end) else f"{end:+.{digits}f}" for end in change.interval)
        yield (
            f"Time of an example's answers on the {name} set: {change.before:.{digits}f} s -> "
            f"{change.after:.{digits}f} s "
            f"({word}: {ends} s, {plural(change.examples, 'example')})."
        )
        return


def _controls_looked(result: TrainResult) -> bool:
    """Whether the controls found other texts than the run, for which the test set was opened once more."""
    each = () if result.controls is None else result.controls.each
    return any(made.best not in (result.seed, result.best) for made in each)


def looked_at_before(times: int) -> str:
    """What it means that others had opened the test examples before.

    Args:
        times: so often.

    Example:
        >>> looked_at_before(3)[:79]
        'Other runs had opened the same test examples 3 times before. In 4 looks at prom'
    """
    chance = 1 - 0.975 ** (times + 1)
    return (
        f"Other runs had opened the same test examples {plural(times, 'time')} before. In {times + 1} looks at prompts "
        f'that are no better, the chance of at least one "better" is up to {chance:.0%}; test examples that nobody has '
        "looked at yet tell more."
    )


def opened_before(times: int) -> str:
    """The same in a line.

    Example:
        >>> opened_before(1), opened_before(3)
        ('opened 1 time before', 'opened 3 times before')
    """
    return f"opened {plural(times, 'time')} before"


def looks_in_a_line(result: TrainResult, openings: int, others: int) -> str:
    """How often the test set of a run had been opened before that told its verdict; "" for never, or without one.

    Args:
        result: of the run.
        openings: how often its test set was opened, evaluations included.
        others: how often other runs had opened the same test examples before.
    """
    times = others + openings - 1 - _controls_looked(result)
    return f"test {opened_before(times)}" if times > 0 and result.best_test and result.seed != result.best else ""


def _without_scale(result: TrainResult) -> Iterator[str]:
    """Where nobody knows the best score that there can be, so that intervals may reach beyond it."""
    scored = result.seed_val
    if scored is not None and scored.scale is None and scored.limits is None:
        yield (
            "The loss names no scale, and scores are not from 0 to 1, so nobody knows the best possible score. An "
            "interval may reach beyond it, and cannot allow for rare large falls that these examples lack, so a "
            "verdict may be luck more often than it says. Answers that an nn.Metric gives 1 or more count as right, "
            "and bring no feedback. State the scale with nn.Metric(..., scale=(0, 100)), or scale in [metric]."
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
            f"Every validation example scored {score(scores[0])} with every text that was raced there, so a change "
            "that repairs only one of an answer's faults could not show. Use a metric that gives partial credit, or a "
            "seed prompt that gets some examples right."
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
