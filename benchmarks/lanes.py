"""What lanes are worth: `PatchSearch` at 1, 2, 4 and 8 lanes, wall time and final score, paired over seeds.

    python benchmarks/lanes.py [--task most much little] [--seeds 0:10] [--lanes 1 2 4 8] [--latency 0.5] [--real]

The tasks are simulated ones: 48 rules with 1,536 training examples, where most is to be done at the same time, 24 with
768, and 20 with 384. A minibatch is to have 8 failures, and every answer takes as long as `--latency` says. Time is
virtual (`proving/virtual.py`): what is printed as wall time is the critical path of the answers, without what this
machine needs for its own work, so it is the same on every machine and under any load. With ``--real`` answers are
waited for. A run is one `Trainer.fit`, validation of the seed prompt and of the result included.

How much lanes save depends on how much can be done at the same time. A quarter of the time of one lane is for eight
where there is most to do; on the smaller tasks one lane is done after five or six patches in a row, each of which
builds on the one before, and the last lines say so.

The score is that of the final prompt on the test set, expected over the slips of the simulation. The last lines are the
differences to one lane over the seeds, with 95% intervals (Student's). The model is a simulation: the figures are about
how the search uses lanes, and say nothing about real models.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proving.virtual import virtual_time

import textgrad_engine as tg
from textgrad_engine import optim
from textgrad_engine.llm import Completion, Request
from textgrad_engine.testing import SimulatedTask, simulated_task
from textgrad_engine.train.statistics import paired_difference

TASKS: dict[str, dict[str, Any]] = {
    "most": {"rules": 48, "train": 1536, "val": 384},
    "much": {"rules": 24, "train": 768, "val": 192},
    "little": {"rules": 20, "train": 384, "val": 192},
}
BATCH = 8
GOAL = 0.25
"""The wall time with most lanes, as a part of that with one, that is aimed at."""


@dataclass(frozen=True)
class Run:
    """One search.

    Attributes:
        seed: of the task and of the search.
        lanes: how many.
        seconds: the wall time.
        expected: the final prompt's expected accuracy on the test set.
        way: the part of the way from the seed prompt to the optimum.
        steps: decisions.
        calls: of all purposes.
        tokens: of all of them.
        cpu: seconds that this machine computed.
    """

    seed: int
    lanes: int
    seconds: float
    expected: float
    way: float
    steps: int
    calls: int
    tokens: int
    cpu: float


class Slow:
    """A task's model whose answers take a while."""

    name = "simulated/slow-parcels"
    free = True

    def __init__(self, task: SimulatedTask, latency: float) -> None:
        self._model, self._latency = task.model, latency

    async def complete(self, request: Request) -> Completion:
        """The answer, later."""
        await asyncio.sleep(self._latency)
        answer = await self._model.complete(request)
        return answer.model_copy(update={"latency": self._latency})


def run(name: str, seed: int, lanes: int, latency: float, now: Callable[[], float], steps: int | None) -> Run:
    """Search once."""
    task = simulated_task(seed=seed, **TASKS[name])
    program = task.program()
    search = optim.PatchSearch(program.parameters(), lanes=lanes, batch_size=BATCH, seed=seed)
    began, cpu = now(), time.process_time()
    with tg.use_models(forward=Slow(task, latency)):
        result = tg.Trainer(seed=seed, max_steps=steps).fit(program, task.loss, search, task.train, task.val)
    text = result.best["system"]
    return Run(
        seed=seed,
        lanes=lanes,
        seconds=now() - began,
        expected=task.expected(text),
        way=task.progress(text),
        steps=len(result.steps),
        calls=result.total.calls,
        tokens=result.total.total_tokens,
        cpu=time.process_time() - cpu,
    )


def table(runs: Sequence[Run], lanes: Sequence[int]) -> str:
    """Means by the number of lanes, and the paired differences to the first of them."""
    by = {count: {one.seed: one for one in runs if one.lanes == count} for count in lanes}
    first = by[lanes[0]]
    lines = [f"{'lanes':>5} {'wall':>9} {'ratio':>7} {'score':>7} {'way':>6} {'steps':>6} {'calls':>7} {'tokens':>10}"]
    for count, own in by.items():
        several = list(own.values())
        ratio = statistics.mean(one.seconds / first[one.seed].seconds for one in several)
        shown = {
            name: statistics.mean(getattr(one, name) for one in several)
            for name in ("seconds", "expected", "way", "steps", "calls", "tokens")
        }
        lines.append(
            f"{count:>5} {shown['seconds']:>7.1f} s {ratio:>7.3f} {shown['expected']:>7.3f} {shown['way']:>6.1%} "
            f"{shown['steps']:>6.0f} {shown['calls']:>7.0f} {shown['tokens']:>10,.0f}"
        )
    lines.append("")
    for count in lanes[1:]:
        pairs = [(first[seed], own) for seed, own in by[count].items()]
        told = f"{count} lanes against {lanes[0]}, {len(pairs)} seeds:"
        for name, value in (("ratio of wall", _ratio), ("score", _score)):
            before, after = zip(*(value(one, other) for one, other in pairs))
            difference, low, high, _ = paired_difference(before, after)
            told += f" {name} {difference:+.3f} [{low:+.3f}, {high:+.3f}]"
        lines.append(told)
    if len(lanes) < 2:
        return "\n".join(lines[:-1])
    most = lanes[-1]
    ratio = statistics.mean(one.seconds / first[one.seed].seconds for one in by[most].values())
    word = "reached" if ratio <= GOAL else "not reached"
    lines.append(f"goal: wall at {most} lanes at most {GOAL:g} of that at {lanes[0]}: {word} ({ratio:.3f})")
    return "\n".join(lines)


def _ratio(one: Run, other: Run) -> tuple[float, float]:
    return 0.0, other.seconds / one.seconds


def _score(one: Run, other: Run) -> tuple[float, float]:
    return one.expected, other.expected


def _seeds(text: str) -> range:
    first, _, last = text.rpartition(":")
    found = range(int(first or 0), int(last))
    if not found:
        raise argparse.ArgumentTypeError(f"seeds are A:B with A below B, got {text!r}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=["much"], help="how much there is to do")
    parser.add_argument("--seeds", type=_seeds, default=range(10), metavar="A:B", help="from A to before B")
    parser.add_argument(
        "--lanes", type=int, nargs="+", default=[1, 2, 4, 8], help="the first is what others are beside"
    )
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that every answer takes")
    parser.add_argument("--steps", type=int, help="decisions at most; without it, until nothing is left to try")
    parser.add_argument("--real", action="store_true", help="wait for the answers")
    parser.add_argument("--out", type=Path, help="write the runs there, as JSON")
    options = parser.parse_args(arguments)
    if options.real:
        now = time.monotonic
    else:
        clock = virtual_time()
        now = lambda: clock.now  # noqa: E731
    runs: dict[str, list[Run]] = {name: [] for name in options.task}
    for name, seed, lanes in itertools.product(options.task, options.seeds, options.lanes):
        made = run(name, seed, lanes, options.latency, now, options.steps)
        runs[name].append(made)
        print(
            f"{name}, seed {seed}, {lanes} lanes: {made.seconds:.1f} s, way {made.way:.1%}, {made.steps} steps, "
            f"{made.calls} calls, {made.tokens:,} tokens, {made.cpu:.1f} s computed",
            file=sys.stderr,
        )
        if options.out is not None:
            options.out.write_text(json.dumps({n: [asdict(one) for one in some] for n, some in runs.items()}, indent=1))
    for name, some in runs.items():
        print(f"task: {name} to do")
        print(table(some, options.lanes), end="\n\n")


if __name__ == "__main__":
    main()
