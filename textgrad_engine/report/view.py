"""What a report says, as plain values, before anybody decides how it looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from textgrad_engine.llm.money import money
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.difference import DiffLine, Op, diff_of
from textgrad_engine.report.lineage import problems_of
from textgrad_engine.report.notes import notes_on
from textgrad_engine.report.pairing import setting_in
from textgrad_engine.report.words import NOT_MEASURED, count, interval, p_value, plural, score
from textgrad_engine.store.reader import Run
from textgrad_engine.train.comparison import Comparison
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.none_kept import none_kept
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.standing import missed_in_words

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
    """The scores on one set, or what calls take there.

    Attributes:
        name: the set, or what is taken.
        seed: the seed prompt's mean and interval, or what it takes, in words.
        best: the same of the best prompt.
        size: how many examples the set has, in words; "" when it was never measured.
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
    def counts(self) -> str:
        """How many lines were added, removed, and stayed, in words."""
        words: tuple[tuple[Op, str], ...] = (("added", "added"), ("removed", "removed"), ("same", "as before"))
        numbers = [(self.number_of(op), word) for op, word in words]
        return ", ".join(f"{plural(number, 'line')} {word}" for number, word in numbers if number)

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
        taken: what the program's calls take with each of the prompts, where both were tested.
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
    taken: tuple[ScoreRow, ...] = ()


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
        taken=_taken(result),
        verdict=verdict,
        tone=tone,
        notes=notes_on(result, max(result.openings, 0 if openings is None else openings), before),
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
    part = "the optimizer's part of the budget, beside the controls," if result.spent_its_part else "the budget"
    ended = "the budget allowed no further call" if result.unspent else f"{part} was spent"
    return {
        "finished": f"finished {after}",
        "interrupted": f"interrupted {after}; this is the result so far",
        "budget": f"{ended} {after}; this is the result so far",
    }[result.status]


def _row(name: str, seed: Evaluation | None, best: Evaluation | None) -> ScoreRow:
    known = best or seed
    return ScoreRow(name, measured(seed), measured(best), "" if known is None else size(known))


def _taken(result: TrainResult) -> tuple[ScoreRow, ...]:
    """What the program's calls take with each of the prompts, by the test examples; none where these were not run."""
    best = result.test_usage.get("best")
    if best is None or result.best_test is None or not result.best_test.answered:
        return ()
    seed, examples = result.test_usage.get("seed", best), len(result.best_test)
    before, now = [f"{count(round(usage.total_tokens / examples))} an example" for usage in (seed, best)]
    rows = [ScoreRow("tokens", before, now, "on test")]
    if seed.dollars and best.dollars:
        each = 1000 / examples
        rows.append(
            ScoreRow(
                "cost", f"{money(each * seed.dollars)} for 1,000", f"{money(each * best.dollars)} for 1,000", "on test"
            )
        )
    return tuple(rows)


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
    missed = missed_in_words(result.floors)
    return f"{said(found)} {on}{f'; {missed}' if missed else ''}", tone


def _controls(result: TrainResult) -> Iterator[ControlRow]:
    found = result.controls
    if found is None or not found.each:
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
