"""What the engine itself costs: microseconds per operation, forward and backward, and how that grows with size.

Run:  python benchmarks/engine_overhead.py

Shapes: a chain of plain operations, many leaves into one sum, and dispatched chat completions that share one prompt and
are answered at once by a model in this process. Beside the time that passes stands the CPU time of all threads, each as
the median of several runs. The exponent is the slope of log time over log size: 1 is linear.

A core that others use, too, may run at half its speed for seconds or minutes. So a plain loop is timed before and
after each run, the last line says what a turn of it took, and the third column is the median of the quiet runs: those
with turns of at most 1.25 times the quickest on both sides. There are as many runs as it takes for `--repeats` quiet
ones, but at most four times as many.

If textgrad is installed, its chat completions run in turns with ours, with an engine that answers at once. It works on
one call at a time and comes with a log of each, which is on as it comes. `textgrad` are its rows, and `of its` ours by
its: the median over the pairs of runs that were next to each other.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import importlib.util
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import textgrad_engine as tg
from textgrad_engine import llm, nn, ops


class Shout(tg.Function):
    """A plain operation with a rule of its own."""

    @staticmethod
    def forward(text: tg.Variable) -> tg.Variable:
        return tg.Variable(text.data, role=text.role)

    @staticmethod
    def setup_context(ctx: object, inputs: tuple[tg.Variable], output: tg.Variable) -> None:
        pass

    @staticmethod
    def backward(ctx: object, grad_out: tg.Variable) -> tg.Variable:
        return tg.Variable(grad_out.data, role="feedback")


Times = tuple[float, float, float, float]
"""Of forward and of backward the seconds that passed, and the seconds of CPU."""

Run = Callable[[int], Times]
"""Runs a shape in a size."""


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def between(start: tuple[float, float], middle: tuple[float, float], end: tuple[float, float]) -> Times:
    return middle[0] - start[0], middle[1] - start[1], end[0] - middle[0], end[1] - middle[1]


def turn() -> float:
    """Seconds that a turn of a plain loop takes now."""
    turns, found = 20_000, 0
    start = time.perf_counter()
    for number in range(turns):
        found += number & 3
    return (time.perf_counter() - start) / turns


def chain(n: int) -> Times:
    value = leaf = tg.Variable("text", role="text", requires_grad=True)
    start = now()
    for _ in range(n):
        value = Shout.apply(value)
    middle = now()
    value.backward("shorter")
    end = now()
    assert len(leaf.grad) == 1
    return between(start, middle, end)


def fan_in(n: int) -> Times:
    leaves = [tg.Variable(1.0, role="score", requires_grad=True) for _ in range(n)]
    start = now()
    total = ops.sum(leaves)
    middle = now()
    total.backward("more")
    end = now()
    assert all(len(leaf.grad) == 1 for leaf in leaves)
    return between(start, middle, end)


class Instant:
    """A model that answers at once; what is measured is the engine and the wrappers that `resolve` puts around it."""

    name = "instant"
    free = True

    async def complete(self, request: llm.Request) -> llm.Completion:
        text = '{"case_1": {"system": "shorter"}}' if request.purpose == "backward" else "answer"
        return llm.Completion(text=text, usage=llm.Usage(input_tokens=9, output_tokens=1, calls=1))


def shared_prompt(n: int) -> Times:
    prompt = nn.Parameter("Answer.", role="system prompt")
    with tg.use_models(forward=Instant()):
        chat = nn.ChatCompletion("{question}", system=prompt)
        questions = [f"question {number}" for number in range(n)]
        start = now()
        answers = [chat(question=question) for question in questions]
        for value in answers:
            value.data  # noqa: B018  reading waits
        middle = now()
        tg.backward(answers, ["wrong"] * n)
        end = now()
    assert len(prompt.grad) == n
    return between(start, middle, end)


def with_textgrad() -> Run | None:
    """The same with textgrad, or None if it is not installed."""
    if importlib.util.find_spec("textgrad") is None:
        return None
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # importing it asks the network otherwise
    logs = tempfile.TemporaryDirectory()
    atexit.register(logs.cleanup)
    os.environ.setdefault("TEXTGRAD_LOG_DIR", logs.name)
    textgrad: Any = importlib.import_module("textgrad")
    calls: Any = importlib.import_module("textgrad.autograd.llm_ops")
    engines: Any = importlib.import_module("textgrad.engine")

    class AtOnce(engines.EngineLM):  # type: ignore[misc]
        model_string = "instant"
        system_prompt = "none"

        def generate(self, *given: object, **more: object) -> str:
            return "answer"

        __call__ = generate

    engine = AtOnce()

    def shared_prompt(n: int) -> Times:
        prompt = textgrad.Variable("Answer.", role_description="system prompt", requires_grad=True)
        chat = calls.LLMCall(engine, prompt)
        questions = [f"question {number}" for number in range(n)]
        start = now()
        answers = [
            chat(textgrad.Variable(question, role_description="question", requires_grad=False))
            for question in questions
        ]
        middle = now()
        for answer in answers:
            answer.gradients.add(textgrad.Variable("wrong", role_description="feedback"))
            answer.get_grad_fn()(backward_engine=engine)
        end = now()
        assert len(prompt.gradients) == n
        return between(start, middle, end)

    return shared_prompt


@dataclass(frozen=True)
class Shape:
    """What is measured, at which sizes, the microseconds that are aimed at, and who else does it."""

    name: str
    ours: Run
    sizes: list[int]
    goal: float
    theirs: Callable[[], Run | None] = lambda: None


SHAPES = [
    Shape("chain of plain operations", chain, [500, 5_000, 50_000], 25),
    Shape("leaves into one sum", fan_in, [500, 5_000, 50_000], 25),
    Shape("chat completions sharing a prompt", shared_prompt, [500, 5_000], 60, with_textgrad),
]


@dataclass(frozen=True)
class Timed:
    """A run, one of the other's next to it if there is another, and the slowest turn of a plain loop beside them."""

    ours: Times
    theirs: Times | None
    turn: float


class Machine:
    """The machine, which is not always as quick: what a turn of a plain loop took so far."""

    def __init__(self) -> None:
        self.turns: list[float] = []

    def turn(self) -> float:
        """What one takes now."""
        gc.collect()
        self.turns.append(turn())
        return self.turns[-1]

    def timed(self, size: int, ours: Run, theirs: Run | None) -> Timed:
        """One run of each."""
        beside = [self.turn()]
        ours_took = ours(size)
        beside.append(self.turn())
        if theirs is None:
            return Timed(ours_took, None, max(beside))
        theirs_took = theirs(size)
        beside.append(self.turn())
        return Timed(ours_took, theirs_took, max(beside))

    def quiet(self, runs: list[Timed]) -> list[Timed]:
        """Those beside which a turn took hardly more than at best."""
        return [run for run in runs if run.turn <= 1.25 * min(self.turns)]

    def runs(self, size: int, ours: Run, theirs: Run | None, repeats: int) -> list[Timed]:
        """As many as it takes for so many quiet ones, but at most four times as many."""
        runs: list[Timed] = []
        while len(self.quiet(runs)) < repeats and len(runs) < 4 * repeats:
            runs.append(self.timed(size, ours, theirs))
        return runs


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of log seconds over log size, by least squares; NaN where a clock was too coarse to see any."""
    if not all(s > 0 for s in seconds):
        return math.nan
    return statistics.linear_regression([math.log(n) for n in sizes], [math.log(s) for s in seconds]).slope


def medians(runs: Sequence[Sequence[float]]) -> list[float]:
    """Of each column."""
    return [statistics.median(column) for column in zip(*runs)] if runs else [math.nan] * 4


def figures(runs: Sequence[Sequence[float]], quiet: Sequence[Sequence[float]]) -> list[float]:
    """Forward and backward: what passed, the CPU, and the CPU of the quiet runs, if there were any."""
    passed_to, cpu_to, passed_back, cpu_back = medians(runs)
    _, quiet_to, _, quiet_back = medians(quiet)
    return [passed_to, cpu_to, quiet_to, passed_back, cpu_back, quiet_back]


def row(name: str, figures: Sequence[float], digits: int) -> str:
    """A line of the table."""
    return f"{name:>14}" + "".join(
        f"{'-' if math.isnan(each) else format(each, f'.{digits}f'):>10}" for each in figures
    )


def table(shape: Shape, machine: Machine, repeats: int) -> Iterator[str]:
    """Lines for each size, and how it grows."""
    yield f"{shape.name} (goal: {shape.goal:g})"
    theirs = shape.theirs()
    found = []
    for size in shape.sizes:
        runs = machine.runs(size, shape.ours, theirs, repeats)
        quiet = machine.quiet(runs)
        found.append(figures([run.ours for run in runs], [run.ours for run in quiet]))
        yield row(f"{size:,}", [seconds / size * 1e6 for seconds in found[-1]], 1)
        if theirs is not None:
            took = figures([run.theirs for run in runs if run.theirs], [run.theirs for run in quiet if run.theirs])
            yield row("textgrad", [seconds / size * 1e6 for seconds in took], 1)
            yield row("of its", figures(shares(runs), shares(quiet)), 2)
    yield row("exponent", [exponent(shape.sizes, list(column)) for column in zip(*found)], 2)


def shares(runs: list[Timed]) -> list[list[float]]:
    """Ours by theirs, for each pair of runs."""
    return [[ours / theirs for ours, theirs in zip(run.ours, run.theirs)] for run in runs if run.theirs]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, help="quiet runs of each size")
    parser.add_argument("--only", default="", help="only shapes with this in their name, such as 'chat'")
    options = parser.parse_args()
    machine = Machine()
    machine.turn()
    print(f"{'microseconds':14}{'forward':>30}{'backward':>30}")
    print(f"{'size':>14}" + f"{'passed':>10}{'CPU':>10}{'quiet CPU':>10}" * 2)
    for shape in [each for each in SHAPES if options.only in each.name]:
        for line in table(shape, machine, options.repeats):
            print(line, flush=True)
    least, middle, most = (1e9 * f(machine.turns) for f in (min, statistics.median, max))
    print(f"beside, a turn of a plain loop took {least:.0f} to {most:.0f} ns, {middle:.0f} in the median")


if __name__ == "__main__":
    main()
