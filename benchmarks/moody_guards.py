"""Guards where answers vary from time to time: what `Guards(reruns=...)` lets pass, and what it keeps whole.

    python benchmarks/moody_guards.py [--seeds 0:16] [--moods 0.0 0.1 0.2] [--reruns 0 2] [--examples 15]

A simulated task (8 rules, 8 distractors, a critic and a proposer that are often wrong) with a model that gives another
code than it would with the probability `--moods`, drawn anew each time it is asked, as at a temperature above 0. Of the
validation examples that the seed prompt has right, some must never break. Printed are means over the seeds: how far a
search comes without guards and with them, as a part of the way from the seed prompt to the best one, how many of the
guarded examples its prompt breaks in truth (by its rules, without moods), calls, and steps that were kept. The model is
a simulation: the figures are about the rule, and say nothing about real models.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import textgrad_engine as tg
from textgrad_engine import optim
from textgrad_engine.llm import Completion, Request
from textgrad_engine.testing import SimulatedTask, simulated_task
from textgrad_engine.testing.simulated.vocabulary import CODES
from textgrad_engine.train import Guards

SEARCHES: dict[str, Callable[[Any, int], Any]] = {
    "PatchSearch": lambda params, seed: optim.PatchSearch(params, lanes=1, seed=seed),
    "TGD": lambda params, seed: optim.TGD(params, momentum=4, max_edits=8),
}


class Moody:
    """A task's model that gives another code now and then."""

    name = "simulated/moody-parcels"
    free = True

    def __init__(self, task: SimulatedTask, mood: float) -> None:
        self._model, self._mood = task.model, mood
        self._asked: collections.Counter[tuple[str, ...]] = collections.Counter()

    async def complete(self, request: Request) -> Completion:
        """The answer, or another one."""
        answer = await self._model.complete(request)
        if request.purpose != "forward":
            return answer
        key = tuple(message.text for message in request.messages)
        nth, self._asked[key] = self._asked[key], self._asked[key] + 1
        drawn = int.from_bytes(hashlib.sha256(f"{nth}/{key}".encode()).digest()[:8], "big")
        if drawn % 10_000 >= self._mood * 10_000:
            return answer
        return answer.model_copy(update={"text": CODES[drawn // 10_000 % len(CODES)]})


def run(search: str, seed: int, mood: float, examples: int, reruns: int | None) -> dict[str, float]:
    """Search once; with `reruns` None without guards."""
    task = simulated_task(8, noise=0.0, distractors=8, sloppiness=0.5, critic=0.7, seed=seed)
    known = [row for row in task.val if task.expected(task.seed_prompt, [row]) == 1.0][:examples]
    guards = None if reruns is None else Guards([row["id"] for row in known], reruns=reruns)
    program = task.program()
    with tg.use_models(forward=Moody(task, mood)):
        trainer = tg.Trainer(seed=seed, guards=guards, batch_size=16, max_epochs=100, patience=6, max_steps=24)
        result = trainer.fit(program, task.loss, SEARCHES[search](program.parameters(), seed), task.train, task.val)
    best = result.best["system"]
    return {
        "way": task.progress(best),
        "broken": sum(task.expected(best, [row]) < 1.0 for row in known),
        "calls": result.total.calls,
        "kept": sum(step.kept for step in result.steps),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:16", metavar="A:B", help="from A to before B")
    parser.add_argument("--moods", type=float, nargs="+", default=[0.0, 0.1, 0.2], help="how often a code is another")
    parser.add_argument("--reruns", type=int, nargs="+", default=[0, 2], help="Guards(reruns=...)")
    parser.add_argument("--examples", type=int, default=15, help="so many must never break")
    parser.add_argument("--search", choices=SEARCHES, nargs="+", default=[*SEARCHES])
    options = parser.parse_args(arguments)
    first, last = map(int, options.seeds.split(":"))
    print(f"{'':12} {'mood':>5} {'guards':>10} {'way':>6} {'broken':>7} {'calls':>6} {'kept':>5}")
    for search, mood, reruns in itertools.product(options.search, options.moods, [None, *options.reruns]):
        found = [run(search, seed, mood, options.examples, reruns) for seed in range(first, last)]
        mean = {name: statistics.mean(each[name] for each in found) for name in found[0]}
        guards = "none" if reruns is None else f"{reruns} reruns"
        print(
            f"{search:12} {mood:>5.2f} {guards:>10} {mean['way']:>6.1%} {mean['broken']:>7.2f} {mean['calls']:>6.0f} "
            f"{mean['kept']:>5.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
