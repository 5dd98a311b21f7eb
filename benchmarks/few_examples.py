"""What 50 examples show, by how they are cut: how often a true gain is found, and how often it is called one.

Run:  python benchmarks/few_examples.py --cut 20/15/15 25/0/25 folds --gain 0.2 0 --seeds 100

A cut is the number of training, validation and test examples; with no validation examples the training examples
validate, too. ``folds`` is `tg.cross_validate` with five. A gain is what the best prompt there is has over the seed
prompt; 0 is a flat task. Printed are the true gain of the prompts that were found (of folds the mean of theirs), how
often it is called better and worse, how often the interval holds it, and the calls. The model is the simulated one: the
figures say something about the machinery and the statistics, nothing about real models.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import textgrad_engine as tg
from textgrad_engine import optim
from textgrad_engine.testing import SimulatedTask, simulated_task

EXAMPLES = 50
POPULATION = 2000
"""Examples by which the true gain of a prompt is told."""


class Outcome(NamedTuple):
    """What a run came to: the true gain of its prompt, what it said of it, and what that took."""

    gain: float
    comparison: tg.Comparison
    calls: int


def task_with(gain: float, seed: int, train: int, val: int) -> SimulatedTask:
    """A task in which the best prompt is better by about so much than the seed prompt, as rules are missing there."""
    task = simulated_task(rules=12, seed=seed, train=train, val=max(val, 1), test=POPULATION, flat=gain == 0)
    if gain == 0:
        return task
    lines = task.seed_prompt.split("\n")
    rules = task.optimum_prompt.split("\n")[len(lines) :]
    order = list(range(len(rules)))
    random.Random(seed).shuffle(order)
    text, gone = task.optimum_prompt, set[int]()
    while task.optimum - task.expected(text) < gain - 0.02 and len(gone) < len(rules):
        gone.add(order[len(gone)])
        text = "\n".join([*lines, *(rule for number, rule in enumerate(rules) if number not in gone)])
    return dataclasses.replace(task, seed_prompts={"system": text})


def run(cut: str, gain: float, seed: int, name: str) -> Outcome:
    """Train and test with one cut of the examples."""
    sizes = (EXAMPLES, 0, 0) if cut == "folds" else tuple(map(int, cut.split("/")))
    task = task_with(gain, seed, *sizes[:2])
    start = task.expected(task.seed_prompts)

    def begin() -> tuple[Any, Any]:
        program = task.program()
        return program, getattr(optim, name)(program.parameters())

    trainer = tg.Trainer(max_epochs=3, seed=seed)
    with tg.use_models(forward=task.model):
        if cut == "folds":
            whole = tg.cross_validate(begin, task.loss, task.train, trainer=trainer)
            gains = [task.expected(each.best) - start for each in whole.folds]
            assert whole.comparison is not None
            return Outcome(sum(gains) / len(gains), whole.comparison, whole.total.calls)
        val = task.val if sizes[1] else task.train
        program, optimizer = begin()
        result = trainer.fit(program, task.loss, optimizer, task.train, val, task.test[: sizes[2]])
    assert result.comparison is not None
    return Outcome(task.expected(result.best) - start, result.comparison, result.total.calls)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each cut and gain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cut", nargs="+", default=["20/15/15", "25/0/25", "folds"])
    parser.add_argument("--gain", nargs="+", type=float, default=[0.2, 0.0])
    parser.add_argument("--seeds", type=int, default=100, help="how many tasks")
    parser.add_argument("--optimizer", default="TGD")
    options = parser.parse_args(arguments)
    print(f"{'cut':>10}{'gain':>6}{'found':>8}{'better':>8}{'worse':>7}{'held':>6}{'calls':>7}")
    for cut in options.cut:
        for gain in options.gain:
            every = [run(cut, gain, seed, options.optimizer) for seed in range(options.seeds)]
            better, worse, held = (
                sum(flags) / len(every)
                for flags in zip(
                    *[
                        (
                            said.verdict == "better",
                            said.verdict == "worse",
                            said.interval[0] <= true <= said.interval[1],
                        )
                        for true, said, _ in every
                    ]
                )
            )
            found, calls = (sum(each) / len(every) for each in zip(*[(true, calls) for true, _, calls in every]))
            print(f"{cut:>10}{gain:6.1f}{found:8.3f}{better:8.2f}{worse:7.2f}{held:6.2f}{calls:7.0f}", flush=True)


if __name__ == "__main__":
    logging.getLogger("textgrad_engine").setLevel(logging.ERROR)
    main()
