"""What runs of the benchmark come to: medians with intervals, and who reached whose score at what cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from textgrad_engine.train.intervals import paired_difference

__all__ = ["Point", "Run", "against", "ahead", "median_interval", "table", "underway", "way_at"]


@dataclass(frozen=True)
class Point:
    """A prompt that did best on the validation set so far.

    Attributes:
        tokens: used until then.
        seconds: passed until then.
        expected: its expected accuracy on the test set.
        way: the part of the way from the seed prompt to the optimum.
    """

    tokens: int
    seconds: float
    expected: float
    way: float


@dataclass(frozen=True)
class Run:
    """One optimizer on one task.

    Attributes:
        task: the name of the task.
        seed: of the task and of the optimizer.
        optimizer: its name.
        prompt: the text it ended with.
        expected: its expected accuracy on the test set.
        measured: its accuracy on the test set, with the slips of its wording.
        way: the part of the way from the seed prompt to the optimum; may be negative.
        optimum: the expected accuracy of the optimum.
        calls: how many, by purpose.
        tokens: all of them.
        seconds: the wall time.
        points: the trajectory; the first is the seed prompt, the last the final one.
    """

    task: str
    seed: int
    optimizer: str
    prompt: str
    expected: float
    measured: float
    way: float
    optimum: float
    calls: dict[str, int]
    tokens: int
    seconds: float
    points: tuple[Point, ...]

    def reaching(self, expected: float) -> Point | None:
        """When its best prompt first was as good as `expected`; None when it never was."""
        return next((point for point in self.points if point.expected >= expected - 1e-9), None)


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """The median, and the order statistics between which it lies with at least the given confidence.

    The ranks come from the binomial distribution (Conover, Practical Nonparametric Statistics, 3.2). With fewer than
    six values no two of them reach 95%, and the extremes are given.
    """
    ordered = sorted(values)
    n = len(ordered)
    below = 0.0
    rank = 0
    for k in range(n // 2):
        below += math.comb(n, k) / 2**n
        if 2 * below > 1 - level:
            break
        rank = k
    return statistics.median(ordered), ordered[rank], ordered[n - 1 - rank]


def way_at(runs: Sequence[Run], axis: str, at: float) -> float:
    """The median over runs of how far the best prompt of then was, in tokens or seconds."""
    return statistics.median(
        [max((point for point in run.points if getattr(point, axis) <= at), key=_spent).way for run in runs]
    )


def _spent(point: Point) -> tuple[float, float]:
    return point.tokens, point.seconds


def table(runs: Sequence[Run], task: str) -> str:
    """The results on one task, in Markdown: medians over seeds, with the interval of each median in brackets."""
    of = _by_name(runs, task)
    optimum = statistics.median(run.optimum for run in runs if run.task == task)
    about = (
        f"{task}: {len(next(iter(of.values())))} seeds, median optimum {optimum:.3f}. Medians, in brackets their 95% "
        "intervals. Way: from the seed prompt to the optimum. Calls: forward / backward / optimizer."
    )
    lines = [
        about,
        "",
        "| | test, expected | measured | way, % | calls | tokens | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, seeds in of.items():
        done = list(seeds.values())
        calls = " / ".join(
            f"{statistics.median(run.calls.get(purpose, 0) for run in done):.0f}"
            for purpose in ("forward", "backward", "optimizer")
        )
        cells = (
            name,
            _with_interval([run.expected for run in done], ".3f"),
            f"{statistics.median(run.measured for run in done):.3f}",
            _with_interval([100 * run.way for run in done], ".0f"),
            calls,
            _with_interval([run.tokens for run in done], ",.0f"),
            _with_interval([run.seconds for run in done], ".1f"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def against(runs: Sequence[Run], task: str, name: str, others: Sequence[str]) -> str:
    """What an optimizer had spent when its best prompt was as good as another's final one, in Markdown.

    As a part of what the other had spent when its own best prompt was first that good, which is kinder to it, and of
    all that it spent, as nobody knows beforehand when to stop. Medians over seeds; a seed on which the score was not
    reached counts as infinitely much.
    """
    of = _by_name(runs, task)
    lines = [
        f"| {name} at the final score of | its way, % | reached | tokens | seconds | of all its tokens | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for other in others:
        pairs = [(of[name][seed], theirs) for seed, theirs in of[other].items() if seed in of[name]]
        parts: list[list[float]] = [[], [], [], []]
        for mine, theirs in pairs:
            reached, first = mine.reaching(theirs.expected), theirs.reaching(theirs.expected) or theirs.points[-1]
            for part, axis, whole in zip(parts, ("tokens", "seconds") * 2, (first, first, theirs, theirs)):
                spent = math.inf if reached is None else getattr(reached, axis)
                part.append(0.0 if spent == 0 else spent / max(1e-9, getattr(whole, axis)))
        count = sum(value < math.inf for value in parts[0])
        way = statistics.median(100 * theirs.way for _, theirs in pairs)
        told = [statistics.median(part) for part in parts]
        cells = [other, f"{way:.0f}", f"{count} of {len(pairs)}", *map(_share, told)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def ahead(runs: Sequence[Run], task: str, name: str, others: Sequence[str], tokens: float, seconds: float) -> str:
    """How far an optimizer is with a part of what others spent in all, less how far these end, in Markdown.

    Means over seeds of what the best prompt of then is on its way, in points, and of the differences seed by seed, with
    95% intervals (Student's).

    Args:
        runs: the runs.
        task: on which task.
        name: the optimizer.
        others: what it is put beside.
        tokens: the part of their tokens that it may have.
        seconds: the part of their seconds that it may have.
    """
    of = _by_name(runs, task)
    parts = f"{tokens:.0%} of the tokens and {seconds:.0%} of the seconds"
    lines = [f"| {name} with {parts} of | which ends at, % | is at, % | points ahead |", "|---|---|---|---|"]
    for other in others:
        pairs = [(of[name][seed], theirs) for seed, theirs in of[other].items() if seed in of[name]]
        ends, there = [100 * theirs.way for _, theirs in pairs], []
        for mine, theirs in pairs:
            had = [
                p for p in mine.points if p.tokens <= tokens * theirs.tokens and p.seconds <= seconds * theirs.seconds
            ]
            there.append(100 * max(had, key=_spent).way)
        found = paired_difference(ends, there)
        told = f"{found.difference:+.0f} [{found.low:+.0f}, {found.high:+.0f}]"
        lines.append(f"| {other} | {statistics.mean(ends):.0f} | {statistics.mean(there):.0f} | {told} |")
    return "\n".join(lines)


def underway(runs: Sequence[Run], task: str, name: str, others: Sequence[str], way: float | None) -> str:
    """What an optimizer had spent when it had gone a part of the way, beside all that others spent, in Markdown.

    Medians over seeds, with their intervals; a seed on which it never came so far counts as infinitely much.

    Args:
        runs: the runs.
        task: on which task.
        name: the optimizer.
        others: what it is put beside.
        way: the part of the way from the seed prompt to the optimum; None for as far as the other ends in the mean.
    """
    of = _by_name(runs, task)
    at = "that mean end" if way is None else f"{way:.0%} of the way"
    lines = [f"| {name} at {at}, beside | which ends at, % | reached | tokens | seconds |", "|---|---|---|---|---|"]
    for other in others:
        pairs = [(of[name][seed], theirs) for seed, theirs in of[other].items() if seed in of[name]]
        ends = statistics.mean(theirs.way for _, theirs in pairs)
        enough = (ends if way is None else way) - 1e-9
        points = [next((p for p in mine.points if p.way >= enough), None) for mine, _ in pairs]
        told = []
        for axis in ("tokens", "seconds"):
            middle, low, high = median_interval(
                [
                    math.inf if point is None else getattr(point, axis) / max(1e-9, getattr(theirs, axis))
                    for point, (_, theirs) in zip(points, pairs)
                ]
            )
            told.append(f"{_share(middle)} [{_share(low)}, {_share(high)}]")
        reached = sum(point is not None for point in points)
        lines.append(f"| {' | '.join([other, f'{100 * ends:.0f}', f'{reached} of {len(pairs)}', *told])} |")
    return "\n".join(lines)


def _share(value: float) -> str:
    return "-" if value == math.inf else f"{value:.0%}"


def _by_name(runs: Sequence[Run], task: str) -> dict[str, dict[int, Run]]:
    names = dict.fromkeys(run.optimizer for run in runs if run.task == task)
    return {name: {run.seed: run for run in runs if run.task == task and run.optimizer == name} for name in names}


def _with_interval(values: Sequence[float], form: str) -> str:
    middle, low, high = median_interval(values)
    return f"{middle:{form}} [{low:{form}}, {high:{form}}]"
