"""How many wrong right answers a run finds, and how many of those that it names are wrong.

Run:  python benchmarks/wrong_labels.py --wrong 0.05 --seeds 8 [--optimizer TGD PatchSearch]

In each run that part of the training and validation examples of ``examples/tickets`` is given another queue, drawn at
random. Printed is, for each optimizer, how many of these a run names (`TrainResult.doubtful`), how many it names in
all, and the score on the test set, whose answers stay right. With ``--wrong 0`` all that is named is named in vain. The
model is ``simulated/tickets``: the figures are about the machinery, and say nothing about real models.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import textgrad_engine as tg
from textgrad_engine import data, nn, optim

TICKETS = Path(__file__).parents[1] / "examples" / "tickets"
OPTIMIZERS = {"TGD": optim.TGD, "PatchSearch": optim.PatchSearch, "ParetoSearch": optim.ParetoSearch}
PROMPT = (
    "Sort the ticket into one of these queues: billing, shipping, returns, account, technical, trust. "
    "Answer with the name of the queue and nothing else."
)


class Outcome(NamedTuple):
    """What a run came to: how many answers were made wrong, how many of these it names, how many in all, the score."""

    wrong: int
    found: int
    named: int
    score: float


def run(name: str, wrong: float, seed: int) -> Outcome:
    """Make answers wrong, train, and look which are named."""
    rng = random.Random(seed)
    sets: dict[str, list[dict[str, Any]]] = {
        split: [dict(row) for row in data.load(TICKETS / f"{split}.jsonl")] for split in ("train", "val", "test")
    }
    queues = sorted({row["queue"] for row in sets["train"]})
    changed = set()
    for split in ("train", "val"):
        for row in rng.sample(sets[split], round(len(sets[split]) * wrong)):
            row["queue"] = rng.choice([queue for queue in queues if queue != row["queue"]])
            changed.add((split, row["id"]))
    program = nn.ChatCompletion("{ticket}", system=nn.Parameter(PROMPT, role="system prompt"))
    with tg.use_models(forward="simulated/tickets"):
        trainer = tg.Trainer(max_epochs=3, batch_size=32, target="queue", seed=seed)
        result = trainer.fit(program, nn.ExactMatch(), OPTIMIZERS[name](program.parameters()), *sets.values())
    named = {(each.split, each.id) for each in result.doubtful}
    assert result.best_test is not None
    return Outcome(len(changed), len(named & changed), len(named), result.best_test.mean)


def line(name: str, found: Sequence[Outcome]) -> str:
    """What the runs of an optimizer came to, as a row."""
    wrong, hits, named = (sum(each[at] for each in found) for at in range(3))
    shares = [f"{part / whole:.0%}" if whole else "-" for part, whole in ((hits, wrong), (hits, named))]
    score = sum(each.score for each in found) / len(found)
    return f"{name:>14} {wrong:>6} {hits:>6} {named:>6} {shares[0]:>9} {shares[1]:>10} {score:>6.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all seeds of each optimizer, and print a row for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--wrong", type=float, default=0.05, help="the part of answers that is made wrong")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--optimizer", nargs="+", default=["TGD", "PatchSearch"], choices=sorted(OPTIMIZERS))
    options = parser.parse_args(arguments)
    print(f"{'optimizer':>14} {'wrong':>6} {'found':>6} {'named':>6} {'of wrong':>9} {'of named':>10} {'test':>6}")
    for name in options.optimizer:
        found = [run(name, options.wrong, seed) for seed in range(options.seeds)]
        print(line(name, found), flush=True)


if __name__ == "__main__":
    logging.getLogger("textgrad_engine").setLevel(logging.ERROR)
    main()
