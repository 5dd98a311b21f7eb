"""What the engine itself costs: microseconds per operation, forward and backward, and how that grows with size.

Run:  python benchmarks/engine_overhead.py

Shapes: a chain of plain operations, many leaves into one sum, and dispatched chat completions that share one prompt and
are answered at once by a model in this process. Beside the time that passes stands the CPU time of all threads, each as
the median of several runs, and the least CPU time of them. The exponent is the slope of log time over log size: 1 is
linear.

A core that others use, too, may run at half its speed for minutes, and two of them lose more than one, so medians of
calls, which two threads work on, differ by half from one minute to the next. The last line tells such minutes apart: it
says what a turn of a plain loop took beside the runs. `taskset -c 0` in front binds all to one core.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable

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


SHAPES: list[tuple[str, Callable[[int], Times], list[int], float]] = [
    ("chain of plain operations", chain, [500, 5_000, 50_000], 25),
    ("leaves into one sum", fan_in, [500, 5_000, 50_000], 25),
    ("chat completions sharing a prompt", shared_prompt, [500, 5_000], 60),
]


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of log seconds over log size, by least squares."""
    return statistics.linear_regression([math.log(n) for n in sizes], [math.log(s) for s in seconds]).slope


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, help="runs of each size")
    parser.add_argument("--only", default="", help="only shapes with this in their name, such as 'chat'")
    options = parser.parse_args()
    print(f"{'microseconds':14}{'forward':>30}{'backward':>30}")
    print(f"{'size':>14}" + f"{'passed':>10}{'CPU':>10}{'least CPU':>10}" * 2)
    turns = []
    for name, shape, sizes, goal in [each for each in SHAPES if options.only in each[0]]:
        print(f"{name} (goal: {goal:g})")
        columns: list[list[float]] = [[] for _ in range(6)]
        for size in sizes:
            runs = []
            for _ in range(options.repeats):
                gc.collect()
                turns.append(turn() * 1e9)
                runs.append(shape(size))
            passed_to, cpu_to, passed_back, cpu_back = zip(*runs)
            found = [
                *(statistics.median(passed_to), statistics.median(cpu_to), min(cpu_to)),
                *(statistics.median(passed_back), statistics.median(cpu_back), min(cpu_back)),
            ]
            for column, seconds in zip(columns, found):
                column.append(seconds)
            print(f"{size:>14,}" + "".join(f"{seconds / size * 1e6:>10.1f}" for seconds in found))
        print(f"{'exponent':>14}" + "".join(f"{exponent(sizes, column):>10.2f}" for column in columns))
    middle = statistics.median(turns)
    print(f"beside, a turn of a plain loop took {min(turns):.0f} to {max(turns):.0f} ns, {middle:.0f} in the median")


if __name__ == "__main__":
    main()
