"""``textgrad-engine shrink``: leave out the lines of a run's best prompt that it does without."""

from __future__ import annotations

import textwrap
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from textgrad_engine.cli import build
from textgrad_engine.cli.keeping import on_record
from textgrad_engine.cli.options import (
    AddCache,
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    Json,
    JudgeName,
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
    width,
    write,
    write_error,
    write_json,
)
from textgrad_engine.cli.shrinking import Task, carried_out, checked
from textgrad_engine.cli.spending import ModelOptions
from textgrad_engine.errors import CallCancelled, RunError, Stopped
from textgrad_engine.llm.money import cost
from textgrad_engine.report.document import evaluation_as_json, finite, usage_as_json
from textgrad_engine.report.printing import harmless
from textgrad_engine.report.shrunk import render_shrunk
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.words import count, plural, score
from textgrad_engine.store import done_with, write_shrunk
from textgrad_engine.train import ShrinkResult
from textgrad_engine.train.shrinking import USUAL_RUNS, most_runs


@command
def shrink(
    run: RunPath,
    max_tries: Annotated[
        int | None, typer.Option("--max-tries", metavar="N", min=1, help="Race at most N shorter texts.")
    ] = None,
    allowance: Annotated[
        int | None, typer.Option("--allowance", metavar="N", min=2, help="Run at most N examples in a race.")
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin",
            metavar="SHARE",
            min=0.001,
            max=1.0,
            help="The mean may be lower by less than this share of the scale. Default: 0.05, or 6 examples if there "
            "are few.",
        ),
    ] = None,
    lanes: Annotated[int, typer.Option("--lanes", metavar="N", min=1, help="How many races to run at a time.")] = 4,
    model: ModelName = None,
    judge: JudgeName = None,
    base_url: BaseUrl = None,
    price: ModelPrices = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    cache: AddCache = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the shortest prompt that is not worse on validation, and write it beside the run's best one.

    Lines are left out, and what is left is raced against the whole prompt. The run's best prompt stays as it is. The
    limits of the config's [budget] hold here, too, counted from the start. If the command was killed or interrupted, or
    the budget was spent, the same command goes on from there: no answer is paid for twice, and all count in the limits.

    The test split is not opened; `eval RUN --shrunk` tells how good the short prompt is there. For `train --folds` the
    final prompt is shortened, on the examples that it was trained on: only others (`eval RUN --shrunk --data FILE`)
    tell how good it is.
    """
    with checking():
        limits = (budget, budget_calls, budget_tokens)
        task = checked(run, ModelOptions(model, judge, base_url, price, limits))
        answers = build.make_cache(cache, "without --cache")
    if not (quiet or as_json):
        complain("\n".join(textwrap.wrap(_beforehand(task, lanes), 80)))
    began = time.monotonic()
    try:
        result, kept = carried_out(
            task,
            cache=answers,
            quiet=quiet or as_json,
            margin=margin,
            allowance=allowance,
            max_tries=max_tries,
            lanes=lanes,
        )
    except (Stopped, CallCancelled):
        complain(message := f"interrupted: the prompt was not shrunk; {on_record()}")
        write_error(message, INTERRUPTED)
        raise typer.Exit(INTERRUPTED) from None
    about = _document(result, round(time.monotonic() - began, 3))
    try:
        place = write_shrunk(task.run.path, result.after, about)
    except RunError:  # it is paid for, so it is printed all the same
        write_json({"run": str(run), "file": None, **about})
        raise
    if result.ended != "budget":
        done_with(kept)
    if as_json:
        write_json({"run": str(run), "file": str(place), **about})
    elif quiet:
        write(harmless(f"{place}: {_in_short(result)}"))
    else:
        write("\n" + render_shrunk(result, title=str(run), width=width(), color=colors()))
        what = "Nothing was left out; the prompt as it was" if result.after == result.before else "The short prompt"
        complain(f"{what} is in {place}")
        if result.ended == "budget":
            complain(f"the budget was spent; {on_record(task.config.budget)}")
    raise typer.Exit(BUDGET_SPENT if result.ended == "budget" else OK)


def _beforehand(task: Task, lanes: int) -> str:
    """What it may take, said before anything is asked."""
    examples = len(task.val)
    fewest, usual = (count(examples * runs) for runs in USUAL_RUNS)
    most = count(most_runs(examples, len(task.run.best), lanes))
    return (
        f"Usually {fewest} to {usual} runs of the program, each on one of its {plural(examples, 'example')}; more if "
        f"most lines are needed or answers vary by themselves; at most {most}. --budget-calls and --max-tries limit it"
    )


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
