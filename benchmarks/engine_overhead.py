"""What the engine itself costs: microseconds per operation, forward and backward, and how that grows with size.

Run:  python benchmarks/engine_overhead.py

Shapes: a chain of plain operations, many leaves into one sum, and dispatched chat completions that share one prompt and
are answered at once by a model in this process. The exponent is the slope of log time over log size: 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable

import textgrad_engine as tg
from textgrad_engine import nn, ops
from textgrad_engine.testing import FunctionModel


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


def chain(n: int) -> tuple[float, float]:
    value = leaf = tg.Variable("text", role="text", requires_grad=True)
    start = time.perf_counter()
    for _ in range(n):
        value = Shout.apply(value)
    middle = time.perf_counter()
    value.backward("shorter")
    end = time.perf_counter()
    assert len(leaf.grad) == 1
    return middle - start, end - middle


def fan_in(n: int) -> tuple[float, float]:
    leaves = [tg.Variable(1.0, role="score", requires_grad=True) for _ in range(n)]
    start = time.perf_counter()
    total = ops.sum(leaves)
    middle = time.perf_counter()
    total.backward("more")
    end = time.perf_counter()
    assert all(len(leaf.grad) == 1 for leaf in leaves)
    return middle - start, end - middle


def answer(request: object) -> object:
    """The program's answer, or the critic's."""
    if request.purpose == "backward":  # type: ignore[attr-defined]
        return '{"case_1": {"system": "shorter"}}'
    return "answer"


def shared_prompt(n: int) -> tuple[float, float]:
    prompt = nn.Parameter("Answer.", role="system prompt")
    with tg.use_models(forward=FunctionModel(answer)):
        chat = nn.ChatCompletion("{question}", system=prompt)
        questions = [f"question {number}" for number in range(n)]
        start = time.perf_counter()
        answers = [chat(question=question) for question in questions]
        for value in answers:
            value.data  # noqa: B018  reading waits
        middle = time.perf_counter()
        tg.backward(answers, ["wrong"] * n)
        end = time.perf_counter()
    assert len(prompt.grad) == n
    return middle - start, end - middle


SHAPES: list[tuple[str, Callable[[int], tuple[float, float]], list[int], float]] = [
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
    parser.add_argument("--repeats", type=int, default=5, help="runs of each size; the median is printed")
    repeats = parser.parse_args().repeats
    print(f"{'shape':36}{'size':>8}{'forward µs':>12}{'backward µs':>13}{'goal':>7}")
    for name, shape, sizes, goal in SHAPES:
        forward, backward = [], []
        for size in sizes:
            runs = []
            for _ in range(repeats):
                gc.collect()
                runs.append(shape(size))
            forward.append(statistics.median(run[0] for run in runs))
            backward.append(statistics.median(run[1] for run in runs))
            print(f"{name:36}{size:>8,}{forward[-1] / size * 1e6:>12.1f}{backward[-1] / size * 1e6:>13.1f}{goal:>7g}")
        print(f"{'  growth exponent':44}{exponent(sizes, forward):>12.2f}{exponent(sizes, backward):>13.2f}")


if __name__ == "__main__":
    main()
