"""What it costs when a program waits: wall time of one run beside that of a program which only asks.

    python benchmarks/waiting_programs.py [--latency 0.2] [--seed 0] [--optimizer TGD PatchSearch]

One simulated task (six rules) with three programs that ask the same and end alike: one that hands its answer on, one
that reads it to decide what comes next, and one that looks something up before it asks, for as long as an answer takes.
Answers take `--latency`. Beside the wall time stands the ratio to the first program with the same optimizer. A program
that looks up first waits twice for each example, so its ratio cannot be far below 2.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import Variable, llm, nn, optim
from textgrad_engine.testing import SimulatedTask, simulated_task

KINDS = ("only asks", "reads its answer", "looks up first")


class Late(llm.Wrapper):
    """The simulated model, which takes its time."""

    def __init__(self, inner: llm.Model, latency: float) -> None:
        super().__init__(inner)
        self.latency, self.asked = latency, 0

    async def complete(self, request: llm.Request) -> llm.Completion:
        self.asked += 1
        await asyncio.sleep(self.latency)
        return await self.inner.complete(request)


class Program(nn.Module):
    """The task's program, which waits as its kind says."""

    def __init__(self, task: SimulatedTask, kind: str, latency: float) -> None:
        super().__init__()
        self.ask, self.kind, self.latency = task.program(), kind, latency

    def forward(self, parcel: str) -> Variable:
        if self.kind == "looks up first":
            time.sleep(self.latency)
        answer = self.ask(parcel=parcel)
        if self.kind == "reads its answer" and not answer.data:
            answer = self.ask(parcel=parcel)
        return answer


def run(kind: str, optimizer: str, latency: float, seed: int) -> tuple[float, int, float]:
    """Train once; gives wall time in seconds, calls, and the expected score of the best prompt."""
    task = simulated_task(rules=6, seed=seed, train=96, val=64)
    program = Program(task, kind, latency)
    model = Late(task.model, latency)
    made = getattr(optim, optimizer)(program.parameters(), **({"seed": seed} if optimizer != "TGD" else {}))
    began = time.perf_counter()
    with tg.use_models(forward=model):
        result = tg.Trainer(seed=seed, batch_size=16, max_steps=8).fit(program, task.loss, made, task.train, task.val)
    return time.perf_counter() - began, model.asked, task.expected(result.best["ask.system"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that every answer takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--optimizer", nargs="+", choices=["TGD", "PatchSearch"], default=["TGD", "PatchSearch"])
    options = parser.parse_args(arguments)
    print(f"{'optimizer':<12} {'program':<18} {'wall':>8} {'ratio':>6} {'calls':>6} {'score':>6}")
    for optimizer in options.optimizer:
        least = 0.0
        for kind in KINDS:
            wall, calls, score = run(kind, optimizer, options.latency, options.seed)
            least = least or wall
            print(
                f"{optimizer:<12} {kind:<18} {wall:>6.1f} s {wall / least:>6.2f} {calls:>6} {score:>6.3f}", flush=True
            )


if __name__ == "__main__":
    main()
