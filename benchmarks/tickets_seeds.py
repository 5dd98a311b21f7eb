"""How far the tickets example climbs, seed by seed, and what it does without feedback.

Run:  python benchmarks/tickets_seeds.py [--optimizer PatchSearch] [--no-critic]

For each seed the run of ``textgrad-engine train examples/tickets --seed N``, and the same with ``--no-feedback``, which
searches do not have. Tokens are those of critic and optimizer, in and out: what a dearer model than the program's would
be paid for. The last line has the means. The model is the embedded simulation: the figures say something about
the machinery, nothing about real models.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

import textgrad_engine as tg
from textgrad_engine import data, llm, nn, optim
from textgrad_engine.cli.config_file import load_config

TICKETS = Path(__file__).parent.parent / "examples" / "tickets"


def run(seed: int, name: str, *, feedback: bool, critic: bool) -> tg.TrainResult:
    """Train on the tickets with that optimizer."""
    config = load_config(TICKETS)
    assert config.program.user is not None
    train, val, test = (data.load(TICKETS / f"{name}.jsonl") for name in ("train", "val", "test"))
    system = nn.Parameter(config.system_text(), role="system prompt")
    program = nn.ChatCompletion(config.program.user, system=system)
    optimizer: optim.Optimizer
    if name == "TGD":
        optimizer = optim.TGD(program.parameters(), use_feedback=feedback, **config.optimizer.given())
    else:
        optimizer = optim.PatchSearch(program.parameters(), seed=seed)
    trainer = tg.Trainer(
        config.train.max_epochs,
        batch_size=config.train.batch_size,
        critic=critic,
        target=config.data.target,
        seed=seed,
    )
    with tg.use_models(forward=llm.resolve("simulated/tickets", seed=seed)):
        return trainer.fit(program, nn.ExactMatch(), optimizer, train, val, test)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument(
        "--first", type=int, default=10, help="the first; 0 to 9 were looked at while the example was made"
    )
    parser.add_argument("--optimizer", choices=["TGD", "PatchSearch"], default="TGD")
    parser.add_argument("--no-critic", action="store_true", help="the optimizer reads the wrong answers themselves")
    options = parser.parse_args(arguments)
    critic = not options.no_critic
    seeds = options.seeds
    names = ("seed prompt", "best prompt", "verdict", "no feedback", "calls", "tokens", "seconds")
    print(f"{'seed':>4}" + "".join(f"{name:>13}" for name in names) + "   (scores on the test split)")
    found = []
    for seed in range(options.first, options.first + seeds):
        with_feedback = run(seed, options.optimizer, feedback=True, critic=critic)
        control = None
        if options.optimizer == "TGD":
            control = run(seed, options.optimizer, feedback=False, critic=True).best_test  # which it never asks
        before, after = with_feedback.seed_test, with_feedback.best_test
        assert before is not None
        assert after is not None
        assert with_feedback.comparison is not None
        told = (with_feedback.usage.get(purpose, llm.Usage()) for purpose in ("backward", "optimizer"))
        tokens = sum(usage.total_tokens for usage in told)
        found.append((before.mean, after.mean, with_feedback.total.calls, tokens))
        alone = "-" if control is None else f"{control.mean:.3f}"
        scores = f"{before.mean:>13.3f}{after.mean:>13.3f}{with_feedback.comparison.verdict:>13}{alone:>13}"
        print(f"{seed:>4}{scores}{with_feedback.total.calls:>13}{tokens:>13,}{with_feedback.seconds:>13.2f}")
    first, last, calls, tokens = (statistics.mean(each) for each in zip(*found))
    print(f"{'mean':>4}{first:>13.3f}{last:>13.3f}{'':>26}{calls:>13.0f}{tokens:>13,.0f}")
    reached = sum(before < 0.60 and after > 0.85 for before, after, *_ in found)
    print(f"from under 0.60 to over 0.85 on the test split: {reached} of {seeds} seeds (goal: nine of ten)")


if __name__ == "__main__":
    main()
