"""How long a cross-validation takes: runs that go on at once beside the same runs one after the other.

    python benchmarks/folds_at_once.py [--latency 0.5] [--folds 5] [--seed 0] [--optimizer TGD PatchSearch]

Fifty examples of one simulated task (six rules, two of which interact). Answers take `--latency`, and the optimizer's
ten times as long, as they are longer. Beside the wall time stands its ratio to that of one run after the other. Calls
and the difference that the folds show are those of all runs; they are to be equal in both rows.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.testing import simulated_task


class Late(llm.Wrapper):
    """The simulated model, which takes its time."""

    def __init__(self, inner: llm.Model, latency: float) -> None:
        super().__init__(inner)
        self.latency = latency

    async def complete(self, request: llm.Request) -> llm.Completion:
        await asyncio.sleep(self.latency * (10 if request.purpose == "optimizer" else 1))
        return await self.inner.complete(request)


def run(optimizer: str, n_jobs: int, folds: int, latency: float, seed: int) -> tuple[float, int, float]:
    """Cross-validate once; gives wall time in seconds, calls, and the mean gain of the folds' prompts."""
    task = simulated_task(rules=6, seed=seed, train=50, interactions=1)

    def start() -> tuple[nn.Module, optim.Optimizer]:
        program = task.program()
        return program, getattr(optim, optimizer)(program.parameters())

    trainer = tg.Trainer(seed=seed, max_epochs=3)
    with tg.use_models(forward=Late(task.model, latency)):
        found = tg.cross_validate(start, task.loss, task.train, folds=folds, trainer=trainer, n_jobs=n_jobs)
    assert found.comparison is not None
    return found.seconds, found.total.calls, found.comparison.difference


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that an answer takes")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--optimizer", nargs="+", choices=["TGD", "PatchSearch"], default=["TGD", "PatchSearch"])
    options = parser.parse_args(arguments)
    print(f"{'optimizer':<12} {'runs at once':<12} {'wall':>8} {'ratio':>6} {'calls':>6} {'gain':>7}")
    for optimizer in options.optimizer:
        alone = 0.0
        for n_jobs in (1, options.folds + 1):
            wall, calls, gain = run(optimizer, n_jobs, options.folds, options.latency, options.seed)
            alone = alone or wall
            print(
                f"{optimizer:<12} {n_jobs:<12} {wall:>6.1f} s {wall / alone:>6.2f} {calls:>6} {gain:>+7.3f}", flush=True
            )


if __name__ == "__main__":
    main()
