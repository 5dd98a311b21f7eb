"""What runs of the benchmark come to: medians with intervals, who is how far at what cost, and a file that keeps it."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["Point", "Run", "common", "dumped", "equal_spend", "line", "loaded", "median_interval", "table", "way_at"]

Axis = Literal["tokens", "waits"]
SPENDS: dict[Axis, tuple[int, ...]] = {"tokens": (50_000, 100_000, 200_000), "waits": (25, 50, 100)}
"""What `equal_spend` gives to everybody."""


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
        latency: seconds that each answer took.
        virtual: whether only the wait for answers counts as time (`proving.virtual`).
        load: how many processes of the machine wanted to compute, on the mean of the last minute (Unix).
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
    latency: float = 0.2
    virtual: bool = False
    load: float = math.nan

    @property
    def timed(self) -> bool:
        """Whether its time is wall time in which answers took as long as they were to take."""
        return self.latency > 0 and not self.virtual

    def spent(self, axis: Axis, at: Point | None = None) -> float:
        """Tokens, or time in answers that could have been waited for in it; until a point, or in all.

        Time is infinite where answers took none.
        """
        whole = self if at is None else at
        if axis == "tokens":
            return whole.tokens
        return whole.seconds / self.latency if self.latency else math.inf

    def gone(self, way: float) -> Point | None:
        """When its best prompt had first gone a part of the way; None when it never had."""
        return next((point for point in self.points if point.way >= way - 1e-9), None)

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


def way_at(runs: Iterable[Run], axis: Axis, at: float) -> float:
    """The median over runs of how far the best prompt of then was."""
    return statistics.median(
        [
            max((point for point in run.points if point.tokens == 0 or run.spent(axis, point) <= at), key=_order).way
            for run in runs
        ]
    )


def _order(point: Point) -> tuple[float, float]:
    return point.tokens, point.seconds


def common(runs: Sequence[Run], task: str) -> list[Run]:
    """The runs on a task with the seeds that all of its optimizers have."""
    of = _by_name(runs, task)
    shared = set.intersection(*(set(seeds) for seeds in of.values())) if of else set()
    return [seeds[seed] for seeds in of.values() for seed in sorted(shared)]


def dumped(runs: Iterable[Run], prompts: bool = True) -> str:
    """Runs as JSON, each on a line of its own; without their prompts it is small enough to be kept."""
    lines = []
    for run in runs:
        values = asdict(run) | {"points": [_rounded(astuple(point)) for point in run.points]}
        if math.isnan(run.load):
            del values["load"]
        if not prompts:
            values["prompt"] = ""
        lines.append(json.dumps(dict(zip(values, _rounded(values.values())))))
    inside = ",\n".join(lines)
    return f"[\n{inside}\n]\n"


def _rounded(values: Iterable[Any]) -> list[Any]:
    return [round(value, 4) if isinstance(value, float) else value for value in values]


def loaded(path: Path) -> list[Run]:
    """Runs from a file that `dumped` made."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Run(**{**row, "points": tuple(Point(*point) for point in row["points"])}) for row in rows]


def table(runs: Sequence[Run], task: str) -> str:
    """The results on one task, in Markdown: medians over seeds, with the interval of each median in brackets."""
    of = _by_name(runs, task)
    optimum = statistics.median(run.optimum for run in runs if run.task == task)
    lines = [
        f"{task}: {len(next(iter(of.values())))} seeds, median optimum {optimum:.3f}.",
        "",
        "| | way, % | score | calls | tokens | time |",
        "|---|---|---|---|---|---|",
    ]
    for name, seeds in of.items():
        done = list(seeds.values())
        calls = " / ".join(
            f"{statistics.median(run.calls.get(purpose, 0) for run in done):.0f}"
            for purpose in ("forward", "backward", "optimizer")
        )
        cells = (
            name,
            _with_interval([100 * run.way for run in done], ".0f"),
            f"{statistics.median(run.expected for run in done):.3f}",
            calls,
            _with_interval([run.tokens for run in done], ",.0f"),
            _time(done, _with_interval([run.spent("waits") for run in done], ".0f")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _time(runs: Sequence[Run], text: str) -> str:
    """A time of runs; with a star where it is only the wait, and a dash where there was none."""
    if not all(run.latency for run in runs):
        return "-"
    return text if all(run.timed for run in runs) else f"{text}*"


def equal_spend(runs: Sequence[Run], task: str) -> str:
    """How far everybody is with the same tokens, and in the same time, in Markdown: medians over seeds.

    Nobody's rule for when to stop matters here.
    """
    heads = [f"{spend // 1000}k tokens" for spend in SPENDS["tokens"]] + [f"time {spend}" for spend in SPENDS["waits"]]
    lines = [f"| {task}: way, % with | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name, seeds in _by_name(runs, task).items():
        done = list(seeds.values())
        cells = [f"{100 * way_at(done, 'tokens', spend):.0f}" for spend in SPENDS["tokens"]]
        cells += [_time(done, f"{100 * way_at(done, 'waits', spend):.0f}") for spend in SPENDS["waits"]]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def line(
    runs: Sequence[Run], task: str, name: str, other: str, way: float = 0.8, tokens: float = 0.4, time: float = 0.2
) -> str:
    """What an optimizer had spent when it was good enough, as a part of what another spent, in Markdown.

    "Good enough" is a part of the way, or the other's final score on the same seed; what the other spent is counted
    until its end, or until its best prompt was first as good as its final one, which nobody knows then. By medians over
    all seeds of each, or seed by seed; what was not reached counts as infinitely much. Time is compared on the seeds on
    which both have a wall time.

    Args:
        runs: the runs.
        task: on which task.
        name: the optimizer.
        other: what it is put beside.
        way: the part of the way that is good enough.
        tokens: the part of the tokens that it may take.
        time: the part of the time that it may take.
    """
    of = _by_name(runs, task)
    pairs = [(of[name][seed], run) for seed, run in of[other].items() if seed in of[name]]
    timed = [(mine, run) for mine, run in pairs if mine.timed and run.timed]
    everything = [*of[name].values()], [*of[other].values()]
    whole: dict[Axis, tuple[list[Run], list[Run]]] = {
        "tokens": everything,
        "waits": ([mine for mine, _ in timed], [run for _, run in timed]),
    }
    part = f"{way:.0%} of the way"
    lines = [
        f"| {name} at | beside {other} | compared | tokens | time | within {tokens:.0%} and {time:.0%} |",
        "|---|---|---|---|---|---|",
    ]
    for first in (False, True):
        shares = [
            _ratio([_until(run, axis, run.gone(way)) for run in mine], [_beside(run, axis, first) for run in others])
            for axis, (mine, others) in whole.items()
        ]
        within = "yes" if shares[0] <= tokens and shares[1] <= time else "no"
        lines.append(_row(part, first, "medians", shares, within))
    for goal in (part, "the same score"):
        for first in (False, True):
            found = [
                [
                    _until(mine, axis, mine.gone(way) if goal == part else mine.reaching(run.expected))
                    / max(1e-9, _beside(run, axis, first))
                    for axis in whole
                ]
                for mine, run in pairs
            ]
            both = [own for own, pair in zip(found, pairs) if pair in timed]
            shares = [_ratio([own[0] for own in found]), _ratio([own[1] for own in both])]
            count = sum(own[0] <= tokens and own[1] <= time for own in both)
            lines.append(_row(goal, first, "seed by seed", shares, f"{count} of {len(both)}"))
    return "\n".join(lines)


def _row(goal: str, first: bool, by: str, shares: Sequence[float], within: str) -> str:
    beside = "first at its final score" if first else "at its end"
    return f"| {' | '.join([goal, beside, by, *map(_share, shares), within])} |"


def _ratio(values: Sequence[float], others: Sequence[float] = (1.0,)) -> float:
    """A median as a part of another; infinite where there is nothing to be compared."""
    return statistics.median(values) / statistics.median(others) if values and others else math.inf


def _until(run: Run, axis: Axis, point: Point | None) -> float:
    return math.inf if point is None else run.spent(axis, point)


def _beside(run: Run, axis: Axis, first: bool) -> float:
    return run.spent(axis, run.reaching(run.expected) if first else None)


def _share(value: float) -> str:
    return "-" if value == math.inf else f"{value:.0%}"


def _by_name(runs: Iterable[Run], task: str) -> dict[str, dict[int, Run]]:
    of: dict[str, dict[int, Run]] = {}
    for run in runs:
        if run.task == task:
            of.setdefault(run.optimizer, {})[run.seed] = run
    return of


def _with_interval(values: Sequence[float], form: str) -> str:
    middle, low, high = median_interval(values)
    return f"{middle:{form}} [{low:{form}}, {high:{form}}]"
