"""``textgrad-engine train``: make a config's prompt better, and show what came of it."""

from __future__ import annotations

from typing import Annotated

import typer

from textgrad_engine.cli import build, runs
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.folds import carry_out_folds, check_shown, end_folds, parts_for
from textgrad_engine.cli.options import (
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    ConfigPath,
    Controls,
    FoldsCount,
    Jobs,
    Json,
    JudgeName,
    MaxMinutes,
    ModelName,
    ModelPrices,
    NoCritic,
    OptimizerName,
    PromptFiles,
    Quiet,
    RunDir,
    Seed,
    TokensLimit,
    UseCache,
)
from textgrad_engine.cli.output import checking, command
from textgrad_engine.cli.prompt_files import begun_with
from textgrad_engine.cli.running import carry_out, checked, end, saying_what_is_left
from textgrad_engine.cli.spending import limits_of, price_of
from textgrad_engine.errors import ConfigError, RunError
from textgrad_engine.store import RunFolder, is_bare


@command
def train(
    config: ConfigPath,
    model: ModelName = None,
    judge: JudgeName = None,
    base_url: BaseUrl = None,
    price: ModelPrices = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    optimizer: OptimizerName = None,
    seed: Seed = None,
    max_minutes: MaxMinutes = None,
    prompt: PromptFiles = None,
    run_dir: RunDir = None,
    no_feedback: Annotated[
        bool,
        typer.Option("--no-feedback", help="Give the optimizer no feedback: a control to compare with."),
    ] = False,
    no_critic: NoCritic = False,
    controls: Controls = False,
    folds: FoldsCount = None,
    jobs: Jobs = None,
    cache: UseCache = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train prompts on examples: select on the validation set, report on the test set.

    Everything that can be checked is checked before the first call of a model. Ctrl-C stops sending, keeps what was
    found, and prints the result so far. A second Ctrl-C ends at once, and says what is in the run folder. SIGTERM
    counts as Ctrl-C. `resume` goes on with an unfinished run.
    """
    way = runs.Way(feedback=not no_feedback, controls=controls, cache=cache)
    with checking():
        if no_feedback and no_critic:
            raise ConfigError("--no-critic means nothing beside --no-feedback, which leaves no feedback; take one out")
        if jobs is not None and folds is None:
            raise ConfigError(f"--jobs {jobs} is about the runs of --folds; name it, too, or leave --jobs out")
        found = load_config(config, model, judge).with_overrides(
            model=model,
            judge=judge,
            base_url=base_url,
            price=price_of(price),
            limits=limits_of(budget, budget_calls, budget_tokens),
            seed=seed,
            optimizer=optimizer,
            max_minutes=max_minutes,
            critic=not no_critic,
        )
        if prompt:
            found = begun_with(found, config, prompt, folds)
        check_shown(found, folds)
        job = checked(found, feedback=way.feedback, model=model, judge=judge, budget=budget)
        # before there is a run folder, as nothing can be run without it
        answers = build.make_cache(cache, "with --no-cache")
        if folds is not None:
            parts_for(found, job.program, tuple(job.splits.values()), folds)
            if run_dir is not None and run_dir.exists() and not (run_dir.is_dir() and is_bare(run_dir)):
                raise RunError(f"{run_dir}: there is something there; name a new or empty folder with --run-dir")
        path = runs.claim(found, run_dir)
    if folds is not None:
        with saying_what_is_left(path):
            name, quietly = runs.name_of(found), quiet or as_json
            carry_out_folds(found, job, path, way, folds=folds, name=name, cache=answers, quiet=quietly, jobs=jobs)
        end_folds(path, quiet=quiet, as_json=as_json)
    with saying_what_is_left(path):
        with checking():
            described = runs.describe(found, path, job.splits, way)
            folder = RunFolder(path, config=described)
        quietly = quiet or as_json
        name, before = runs.name_of(found), described["looks_before"]
        result = carry_out(found, job, folder, way, name=name, before=before, cache=answers, quiet=quietly)
        end(result, folder, quiet=quiet, as_json=as_json)
