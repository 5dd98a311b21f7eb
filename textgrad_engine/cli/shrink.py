"""``textgrad-engine shrink``: leave out the lines of a run's best prompt that it does without."""

from __future__ import annotations

import textwrap
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from textgrad_engine.cli import build, run_data, runs, way_on
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import check_columns, load_examples
from textgrad_engine.cli.contracts import make_contracts
from textgrad_engine.cli.folds import part_of
from textgrad_engine.cli.options import (
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    Json,
    ModelName,
    ModelPrices,
    Quiet,
    RunPath,
    TokensLimit,
)
from textgrad_engine.cli.output import (
    BUDGET_SPENT,
    INTERRUPTED,
    OK,
    checking,
    colors,
    command,
    complain,
    width,
    write,
    write_error,
    write_json,
)
from textgrad_engine.cli.progress import score_bar
from textgrad_engine.cli.spending import limits_of, price_of
from textgrad_engine.data import Dataset
from textgrad_engine.errors import CallCancelled, RunError, Stopped
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.report.document import evaluation_as_json, finite, usage_as_json
from textgrad_engine.report.shrunk import render_shrunk
from textgrad_engine.report.words import cost, count, plural, score
from textgrad_engine.store import Run, check_shrunk, is_folds, read_folds, read_run, write_shrunk
from textgrad_engine.train import ShrinkResult
from textgrad_engine.train import shrink as shortened
from textgrad_engine.train.interrupt import stopping_on_interrupt
from textgrad_engine.train.shrinking import USUAL_RUNS, most_runs


@command
def shrink(
    run: RunPath,
    max_tries: Annotated[
        int | None, typer.Option("--max-tries", metavar="N", min=1, help="Race at most so many shorter texts.")
    ] = None,
    allowance: Annotated[
        int | None, typer.Option("--allowance", metavar="N", min=2, help="Run at most so many examples in a race.")
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin",
            metavar="SHARE",
            min=0.001,
            max=1.0,
            help="The mean may be lower by less than this of the scale: 0.05, or 6 examples where there are few.",
        ),
    ] = None,
    lanes: Annotated[int, typer.Option("--lanes", metavar="N", min=1, help="So many races at a time.")] = 4,
    model: ModelName = None,
    base_url: BaseUrl = None,
    price: ModelPrices = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the shortest prompt that is not worse on validation, and write it beside the run's best one.

    Lines are left out, and what is left is raced against the whole prompt; the run's best prompt stays as it is. The
    limits of the config's [budget] hold here, too, counted from the start. The test split is not opened;
    `eval RUN --shrunk` tells how good the short prompt is there. Of `train --folds` the final prompt is shortened, on
    the examples that it was trained on: only others (`eval RUN --shrunk --data FILE`) tell what it is worth.
    """
    with checking():
        found = read_folds(run).final() if is_folds(run) else read_run(run)
        if found.result is None:
            raise RunError(
                f"{run} has no result, as the run {way_on.how_it_ended(found)}; only finished runs can be shrunk"
            )
        config = runs.config_of(found, found.best)
        said = limits_of(budget, budget_calls, budget_tokens).model_dump(exclude_none=True)
        limits = config.budget.model_copy(update=said)
        config = runs.changed(config, model=model, base_url=base_url, price=price_of(price), limits=limits)
        val = _validation(config, found)
        program = build.make_program(config)
        runs.load_texts(program, found.best, found.path)
        metric, guards = build.make_metric(config), build.make_guards(config, val)
        contracts = _contracts(config, found)
        models = build.make_models(config, model)
        build.check_prices(config, models, budget)
        check_shrunk(found.path)
    if not (quiet or as_json):
        fewest, usual = (count(len(val) * runs) for runs in USUAL_RUNS)
        most = count(most_runs(len(val), len(found.best), lanes))
        beforehand = (
            f"Usually {fewest} to {usual} runs of the program on one of its {plural(len(val), 'example')}, more where "
            f"most lines are needed or answers change by themselves, and at most {most}; --budget-calls and "
            "--max-tries limit it"
        )
        complain("\n".join(textwrap.wrap(beforehand, 80)))
    began = time.monotonic()
    parameters = dict(program.named_parameters())
    with (
        build.surroundings(config, models),
        score_bar(len(val), quiet or as_json) as on_score,
        stopping_on_interrupt(),
    ):
        try:
            result = shortened(
                program,
                metric,
                val,
                target=config.data.target,
                parameters=[parameters[name] for name in found.best],
                contracts=contracts,
                guards=guards,
                clusters=config.data.clusters,
                margin=margin,
                allowance=allowance,
                max_tries=max_tries,
                lanes=lanes,
                seed=config.seed,
                on_score=on_score,
            )
        except (Stopped, CallCancelled):
            complain(message := "interrupted: the prompt was not shrunk, and nothing was written")
            write_error(message, INTERRUPTED)
            raise typer.Exit(INTERRUPTED) from None
    about = _document(result, round(time.monotonic() - began, 3))
    try:
        place = write_shrunk(found.path, result.after, about)
    except RunError:  # it is paid for, so it is printed all the same
        write_json({"run": str(run), "file": None, **about})
        raise
    if as_json:
        write_json({"run": str(run), "file": str(place), **about})
    elif quiet:
        write(f"{place}: {_in_short(result)}")
    else:
        write("\n" + render_shrunk(result, title=str(run), width=width(), color=colors()))
        what = (
            "Nothing could be left out; the prompt as it was" if result.after == result.before else "The short prompt"
        )
        complain(f"{what} is in {place}")
    raise typer.Exit(BUDGET_SPENT if result.ended == "budget" else OK)


def _validation(config: Config, run: Run) -> Dataset:
    """The run's validation examples.

    Raises:
        RunError: they are not those that the run had.
    """
    if (part := part_of(config, run)) is not None:
        return Dataset(part.val)
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


def _document(result: ShrinkResult, seconds: float) -> dict[str, Any]:
    body = {
        **{name: getattr(result, name) for name in ("before", "after", "tried", "ended")},
        "removed": {name: list(numbers) for name, numbers in result.removed.items()},
        **{name: getattr(result, name) for name in ("margin", "at_worst")},
        "refused": finite(dict(result.refused)),
        "needed": None if result.needed is None else dict(zip(("examples", "margin"), result.needed)),
        "tokens": {"before": result.tokens[0], "after": result.tokens[1]},
        "val": {"before": evaluation_as_json(result.before_val), "after": evaluation_as_json(result.after_val)},
        "comparison": finite(asdict(result.comparison)),
        "front": [asdict(point) for point in result.front],
        "usage": usage_as_json(result.usage),
    }
    return {**body, "seconds": seconds}


def _in_short(result: ShrinkResult) -> str:
    before, after = result.tokens
    scores = f"val {score(result.before_val.mean)} -> {score(result.after_val.mean)}"
    used = f"{plural(result.usage.calls, 'call')}, {cost(result.usage.dollars)}"
    return f"{before} -> {after} tokens; {scores}; {used}"
