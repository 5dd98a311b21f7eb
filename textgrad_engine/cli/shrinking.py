"""What shrink works on: a finished run, with all that was checked before a model is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.cli import build, resume_words, run_data, runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import check_columns, load_examples
from textgrad_engine.cli.contracts import make_contracts
from textgrad_engine.cli.folds import dealt, part_of
from textgrad_engine.cli.keeping import keeping
from textgrad_engine.cli.models import check_prices, make_models
from textgrad_engine.cli.progress import score_bar_for
from textgrad_engine.cli.spending import ModelOptions, limits_of
from textgrad_engine.data import Dataset
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Cache, Model, Recording
from textgrad_engine.nn import Module
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.store import Run, check_shrunk, is_folds, read_folds, read_run
from textgrad_engine.train import Guards, ShrinkResult, shrink
from textgrad_engine.train.interrupt import stopping_on_interrupt


@dataclass(frozen=True)
class Task:
    """What is shrunk, on what; all of it was checked.

    Attributes:
        run: whose best texts are shortened; of a cross-validation the final one.
        val: the examples to race on.
        contracts: what each text has to keep, by its name.
    """

    run: Run
    config: Config
    program: Module
    metric: Callable[..., Variable]
    guards: Guards | None
    contracts: dict[str, tuple[Contract, ...]]
    models: dict[str, Model]
    val: Dataset


def checked(path: Path, said: ModelOptions) -> Task:
    """Check all that can be checked before a model is asked.

    Args:
        path: of the run, or of a cross-validation.
        said: what the command line says of models and limits.

    Raises:
        TextgradError: something cannot be used.
    """
    run = read_folds(path).final() if is_folds(path) else read_run(path)
    if run.result is None:
        raise RunError(
            f"{path} has no result, as the run {resume_words.how_it_ended(run)}; only finished runs can be shrunk"
        )
    config = runs.config_of(run, run.best)
    limits = config.budget.model_copy(update=limits_of(*said.limits).model_dump(exclude_none=True))
    config = runs.changed(config, said, limits)
    val = _validation(config, run)
    program = build.make_program(config)
    runs.load_texts(program, run.best, run.path)
    metric, guards = build.make_metric(config), build.make_guards(config, val)
    contracts = _contracts(config, run)
    models = make_models(config, said.model, judge=said.judge)
    check_prices(config, models, said.limits[0], said.model)
    check_shrunk(run.path)
    return Task(run, config, program, metric, guards, contracts, models, val)


def carried_out(
    task: Task, *, cache: Cache | None = None, quiet: bool, **settings: Any
) -> tuple[ShrinkResult, Recording]:
    """Shorten the texts, and show how it goes on.

    Args:
        task: what is shrunk.
        cache: where answers are kept for others, too, and looked for first, if anywhere.
        quiet: show nothing.
        settings: of `train.shrink`: how it searches.

    Returns:
        The short texts, and the calls that were kept for the case that it does not come to its end.

    Raises:
        BudgetExceeded: there is no room for the whole texts.
        Stopped: somebody ended it.
        CallCancelled: the same, while an answer was waited for.
    """
    parameters = dict(task.program.named_parameters())
    with (
        build.surroundings(task.config, task.models, cache=cache),
        keeping(task.run, "shrink", task.config, {"texts": dict(task.run.best)}, quiet=quiet) as kept,
        score_bar_for(len(task.val), quiet) as on_score,
        stopping_on_interrupt(),
    ):
        found = shrink(
            task.program,
            task.metric,
            task.val,
            target=task.config.data.target,
            parameters=[parameters[name] for name in task.run.best],
            contracts=task.contracts,
            guards=task.guards,
            clusters=task.config.data.clusters,
            seed=task.config.seed,
            on_score=on_score,
            **settings,
        )
    return found, kept


def _validation(config: Config, run: Run) -> Dataset:
    """The run's validation examples.

    Raises:
        RunError: they are not those that the run had.
    """
    if (part := part_of(config, run)) is not None:
        return dealt(part.val)
    run_data.check_there(run, config, "train" if config.data.val is None else "val")
    dataset = load_examples(config, config.file(config.data.val or config.data.train))
    check_columns(config, dataset)
    run_data.check_splits(run, config, {"val": dataset})
    return dataset


def _contracts(config: Config, run: Run) -> dict[str, tuple[Contract, ...]]:
    """What each of the run's texts had to keep."""
    asked = config.optimizer.contracts, *config.optimizer.prompts.values()
    examples: Any = ()
    if any(each.no_copying for each in asked):
        part = part_of(config, run)
        examples = load_examples(config, config.file(config.data.train)) if part is None else part.train
    return make_contracts(config, run.seed, examples)
