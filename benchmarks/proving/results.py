"""What runs of the benchmark come to: medians with intervals, and who reached whose score at what cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Point", "Run", "median_interval", "table", "way_at"]


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


def table(runs: Sequence[Run], task: str, references: Sequence[str] = ("gepa", "textgrad")) -> str:
    """The results on one task in plain text: medians over seeds, with the interval of each median in brackets."""
    names = list(dict.fromkeys(run.optimizer for run in runs if run.task == task))
    of = {name: {run.seed: run for run in runs if run.task == task and run.optimizer == name} for name in names}
    reference = max(
        (name for name in references if any(run.way > 0 for run in of.get(name, {}).values())),
        key=lambda name: statistics.median(run.way for run in of[name].values()),
        default=None,
    )
    seeds = len(next(iter(of.values())))
    optimum = statistics.median(run.optimum for run in runs if run.task == task)
    about = f"{task}: {seeds} seeds, median optimum {optimum:.3f}. Medians, in brackets their 95% intervals."
    lines = [
        f"{about} Way: from the seed prompt to the optimum.",
        f"{'':<24}{'test, expected':<22}{'measured':>9}  {'way, %':<18}{'calls: forward, backward, optimizer':<37}"
        f"{'tokens':<27}{'seconds':<20}" + (f"at {reference}'s score: tokens, seconds" if reference else ""),
    ]
    for name in names:
        done = list(of[name].values())
        calls = "/".join(
            f"{statistics.median(run.calls.get(purpose, 0) for run in done):.0f}"
            for purpose in ("forward", "backward", "optimizer")
        )
        lines.append(
            f"{name:<24}{_with_interval([run.expected for run in done], '.3f'):<22}"
            f"{statistics.median(run.measured for run in done):>9.3f}  "
            f"{_with_interval([100 * run.way for run in done], '.0f'):<18}{calls:<37}"
            f"{_with_interval([run.tokens for run in done], ',.0f'):<27}"
            f"{_with_interval([run.seconds for run in done], '.1f'):<20}"
            + (_against(of[name], of[reference]) if reference else "")
        )
    return "\n".join(lines)


def _with_interval(values: Sequence[float], form: str) -> str:
    middle, low, high = median_interval(values)
    return f"{middle:{form}} [{low:{form}}, {high:{form}}]"


def _against(mine: dict[int, Run], theirs: dict[int, Run]) -> str:
    """Tokens and seconds at the reference's final score, as parts of what the reference had spent when it had that
    score first, which is kinder to it than all that it spent; medians over seeds.
    """
    tokens, seconds = [], []
    for seed in mine.keys() & theirs.keys():
        level = theirs[seed].expected
        reached, their = mine[seed].reaching(level), theirs[seed].reaching(level) or theirs[seed].points[-1]
        tokens.append(reached.tokens / max(1, their.tokens) if reached else math.inf)
        seconds.append(reached.seconds / max(1e-9, their.seconds) if reached else math.inf)
    count = sum(value < math.inf for value in tokens)
    if statistics.median(tokens) == math.inf:
        return f"reached in {count} of {len(tokens)}"
    return (
        f"{statistics.median(tokens):.0%}, {statistics.median(seconds):.0%}; reached in {count} of {len(tokens)} seeds"
    )
