"""``textgrad-engine train``: make a config's prompt better, and show what came of it."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine import report
from textgrad_engine.autograd import Variable
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
    WRONG,
    CommandFailed,
    checking,
    colors,
    command,
    complain,
    say,
    width,
    write,
)
from textgrad_engine.cli.progress import progress_for
from textgrad_engine.data import Dataset
from textgrad_engine.llm import Model
from textgrad_engine.llm.cache import Cache, open_cache
from textgrad_engine.nn import Module
from textgrad_engine.optim import Optimizer
from textgrad_engine.report.words import money, plural
from textgrad_engine.store import RunFolder
from textgrad_engine.train import Guards, Trainer, TrainResult

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
    was found, and prints the result so far; twice ends at once, and says what is in the run folder. SIGTERM counts as
    Ctrl-C.
    """
    with checking():
        found = load_config(config).with_overrides(
            model=model, base_url=base_url, budget=budget, seed=seed, optimizer=optimizer
        )
        job = _checked(found, model, budget, feedback=not no_feedback)
        answers = open_cache(None) if cache else None  # before there is a run folder, as nothing can be run without it
        path = runs.claim(found, run_dir)
    with _saying_what_is_left(path):
        with checking():
            folder = RunFolder(path, config=runs.describe(found, path, job.splits, feedback=not no_feedback))
        result = _run(found, job, folder, controls=controls, cache=answers, quiet=quiet or as_json)
        if as_json:
            write(json.dumps({"run": str(path), **report.as_json(result)}, ensure_ascii=False, indent=2))
        elif quiet:
            total = result.total
            write(f"{path}: {report.one_line(result)}; {plural(total.calls, 'call')}, {money(total.dollars)}")
        else:
            remark = runs.CONTROL if no_feedback else ""
            write("\n" + report.render(result, title=str(path), remark=remark, width=width(), color=colors()))
            complain(f"\n{report.one_line(result)}\nThe best prompt is in {runs.best_files(path, result.best)}")
    raise typer.Exit(WRONG if result.shortage else _CODES[result.status])


@dataclass(frozen=True)
class _Job:
    """What is to be trained, on what; all of it was checked."""

    program: Module
    metric: Callable[..., Variable]
    optimizer: Optimizer
    guards: Guards | None
    models: dict[str, Model]
    train: Dataset
    val: Dataset
    test: Dataset | None

    @property
    def splits(self) -> dict[str, Dataset | None]:
        """The data by split."""
        return {"train": self.train, "val": self.val, "test": self.test}


def _checked(config: Config, model: str | None, budget: float | None, *, feedback: bool) -> _Job:
    """Check all that can be checked before a model is asked."""
    train_set, val_set, test_set = read_data(config)
    program = build.make_program(config)
    metric = build.make_metric(config)
    guards = build.make_guards(config, val_set)
    optimizer = build.make_optimizer(config, program, train_set, feedback=feedback)
    models = build.make_models(config, model)
    build.check_prices(config, models, budget)
    with build.prompts_of(config):
        pass
    return _Job(program, metric, optimizer, guards, models, train_set, val_set, test_set)


def _run(
    config: Config, job: _Job, folder: RunFolder, *, controls: bool, cache: Cache | None, quiet: bool
) -> TrainResult:
    """Train, and show how it goes on."""
    say(
        f"{runs.name_of(config)}: {runs.summary(config, job.train, job.val, job.test)}\nRun folder: {folder.path}",
        quiet,
    )
    logging.getLogger("textgrad_engine.train.splits").addHandler(logging.NullHandler())  # the progress says the same
    settings = config.train
    with build.surroundings(config, job.models, cache=cache), progress_for(quiet) as progress:
        trainer = Trainer(
            max_epochs=settings.max_epochs,
            batch_size=settings.batch_size,
            max_steps=settings.max_steps,
            patience=settings.patience,
            feedback_batch_size=settings.feedback_batch_size,
            target=config.data.target,
            seed=config.seed,
            guards=job.guards,
            clusters=config.data.clusters,
            tokens_weight=settings.tokens_weight or 0.0,
            latency_weight=settings.latency_weight,
            controls=controls,
            callbacks=(folder, *progress),
        )
        return trainer.fit(job.program, job.metric, job.optimizer, job.train, job.val, job.test)


@contextlib.contextmanager
def _saying_what_is_left(path: Path) -> Iterator[None]:
    """Inside the block, whatever ends the command says what is in the run folder."""
    try:
        yield
    except CommandFailed:
        raise
    except Exception as error:
        if runs.begun(path):
            error.add_note(runs.left_in(path))
        raise
    except KeyboardInterrupt as error:
        error.add_note(runs.left_in(path))
        raise
