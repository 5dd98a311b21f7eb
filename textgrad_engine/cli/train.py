"""``textgrad-engine train``: make a config's prompt better, and show what came of it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine import report
from textgrad_engine.cli import build, runs
from textgrad_engine.cli.config import Config, load_config, read_data
from textgrad_engine.cli.options import (
    BaseUrl,
    BudgetLimit,
    ConfigPath,
    Controls,
    Json,
    ModelName,
    OptimizerName,
    Quiet,
    RunDir,
    Seed,
    UseCache,
)
from textgrad_engine.cli.output import (
    BUDGET_SPENT,
    INTERRUPTED,
    OK,
    checking,
    colors,
    command,
    complain,
    say,
    width,
    write,
)
from textgrad_engine.cli.progress import progress_for
from textgrad_engine.errors import TextgradError
from textgrad_engine.report.words import money, plural
from textgrad_engine.store import RunFolder
from textgrad_engine.train import Trainer, TrainResult

__all__ = ["train"]

_CODES = {"finished": OK, "interrupted": INTERRUPTED, "budget": BUDGET_SPENT}


@command
def train(
    config: ConfigPath,
    model: ModelName = None,
    base_url: BaseUrl = None,
    budget: BudgetLimit = None,
    optimizer: OptimizerName = None,
    seed: Seed = None,
    run_dir: RunDir = None,
    no_feedback: Annotated[
        bool,
        typer.Option("--no-feedback", help="Withhold the feedback from the optimizer: a control to compare with."),
    ] = False,
    controls: Controls = False,
    cache: UseCache = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train prompts on examples: keep what does best on validation, report on test.

    Everything that can be checked is checked before the first call of a model. Ctrl-C once stops sending, keeps what
    was found, and prints the result so far.
    """
    with checking():
        found = load_config(config).with_overrides(
            model=model, base_url=base_url, budget=budget, seed=seed, optimizer=optimizer
        )
    path, result = _run(
        found, model, budget, run_dir, feedback=not no_feedback, controls=controls, cache=cache, quiet=quiet or as_json
    )
    if as_json:
        write(json.dumps({"run": str(path), **report.as_json(result)}, ensure_ascii=False, indent=2))
    elif quiet:
        total = result.total
        write(f"{path}: {report.one_line(result)}; {plural(total.calls, 'call')}, {money(total.dollars)}")
    else:
        remark = runs.CONTROL if no_feedback else ""
        write("\n" + report.render(result, title=str(path), remark=remark, width=width(), color=colors()))
        complain(f"\n{report.one_line(result)}\nThe best prompt is in {runs.best_files(path, result.best)}")
    raise typer.Exit(_CODES[result.status])


def _run(
    config: Config,
    model: str | None,
    budget: float | None,
    run_dir: Path | None,
    *,
    feedback: bool,
    controls: bool,
    cache: bool,
    quiet: bool,
) -> tuple[Path, TrainResult]:
    """Check all that can be checked, then train."""
    with checking():
        train_set, val_set, test_set = read_data(config)
        program = build.make_program(config)
        metric = build.make_metric(config)
        guards = build.make_guards(config, val_set)
        optimizer = build.make_optimizer(config, program, train_set, feedback=feedback)
        models = build.make_models(config, model)
        build.check_prices(config, models, budget)
        with build.prompts_of(config):
            pass
        path = runs.claim(config, run_dir)
        splits = {"train": train_set, "val": val_set, "test": test_set}
        folder = RunFolder(path, config=runs.describe(config, path, splits, feedback=feedback))
    say(f"{runs.name_of(config)}: {runs.summary(config, train_set, val_set, test_set)}\nRun folder: {path}", quiet)
    logging.getLogger("textgrad_engine.train.splits").addHandler(logging.NullHandler())  # the progress says the same
    settings = config.train
    with build.surroundings(config, models, cache=cache), progress_for(quiet) as progress:
        trainer = Trainer(
            max_epochs=settings.max_epochs,
            batch_size=settings.batch_size,
            max_steps=settings.max_steps,
            patience=settings.patience,
            feedback_batch_size=settings.feedback_batch_size,
            target=config.data.target,
            seed=config.seed,
            guards=guards,
            tokens_weight=settings.tokens_weight or 0.0,
            latency_weight=settings.latency_weight,
            controls=controls,
            callbacks=(folder, *progress),
        )
        try:
            return path, trainer.fit(program, metric, optimizer, train_set, val_set, test_set)
        except TextgradError as error:
            error.add_note(f"what was paid for until then is in {path}, and `show {path}` prints what is known")
            raise
