"""``textgrad-engine eval``: use what a run found on a dataset, and say how good it is there."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import run_data
from textgrad_engine.cli.evaluating import Asked, Done, carried_out, checked
from textgrad_engine.cli.evaluation_words import as_document, in_one_line, in_words, short_of
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
    TOO_LOW,
    checking,
    command,
    complain,
    write,
    write_json,
)
from textgrad_engine.errors import BudgetExceeded, RunError
from textgrad_engine.report.words import plural
from textgrad_engine.store import Run, append_evaluation, is_folds, read_folds, read_run, typed, whole_of

__all__ = ["evaluate"]


@command
def evaluate(
    run: RunPath,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", help="The examples (.jsonl, .json, .csv). Default: the run's test split."
        ),
    ] = None,
    seed_prompt: Annotated[
        bool, typer.Option("--seed-prompt", help="Evaluate the prompt as it was before the run, not the best one.")
    ] = False,
    shrunk: Annotated[
        bool, typer.Option("--shrunk", help="Evaluate the short prompt that shrink wrote, not the best one.")
    ] = False,
    repeats: Annotated[
        int,
        typer.Option("--repeats", metavar="N", min=1, help="Run each example so often; its score is the mean."),
    ] = 1,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters", metavar="COLUMN", help="The column that says which examples belong together, if any do."
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            "--at-least",
            metavar="SCORE",
            help="End with exit code 4 where the mean score is less. What was not answered counts as the lowest score.",
        ),
    ] = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    price: ModelPrices = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Evaluate the best prompt of a run: mean score with its 95% interval; of `train --folds` that of the final run.

    Models, metric and seed are those of the run's config; its [budget] was the run's, and does not hold here: the
    options do. Each time the test split is opened, that is counted. Where the budget is spent, or after Ctrl-C, the
    score is that of what was answered, with what the rest could make of it.
    """
    limits = (budget, budget_calls, budget_tokens)
    asked = Asked(data, repeats, clusters, at_least, model, base_url, price, limits)
    with checking():
        found = _run_in(run, data)
        prompt, texts = _texts(found, seed_prompt=seed_prompt, shrunk=shrunk)
        task = checked(found, asked, prompt, texts)
        append_evaluation(found.path, {"event": run_data.EVALUATION_STARTED, **task.about})
    done = carried_out(task, quiet=quiet or as_json)
    with contextlib.ExitStack() as stack:  # what cannot be written is printed all the same
        stack.callback(append_evaluation, found.path, {"event": run_data.EVALUATION_ENDED, **done.entry})
        if as_json:
            write_json(as_document(found, done))
        elif done.evaluation is not None:
            write(in_one_line(found, done, done.evaluation) if quiet else in_words(found, done, done.evaluation))
    _end(done, len(task.dataset), at_least)


def _run_in(path: Path, data: Path | None) -> Run:
    """The run in a folder; of a cross-validation the final one, which no example of its own tests.

    Raises:
        RunError: there is none, or it has nothing to test it on.
    """
    found = read_folds(path).final() if is_folds(path) else read_run(path)
    if data is None and whole_of(found.path) is not None and found.path.resolve().name == "final":
        raise RunError(
            f"{path}: no example tests the final prompt, as it was trained on all of them; name others with --data "
            "FILE. What prompts made in the same way score on examples that they have not seen is in "
            f"`textgrad-engine show {typed(whole_of(found.path) or path)}`"
        )
    return found


def _texts(run: Run, *, seed_prompt: bool, shrunk: bool) -> tuple[str, dict[str, str]]:
    """Which texts of a run are evaluated, in a word, and the texts by name.

    Raises:
        RunError: two were asked for, or they are not there.
    """
    if seed_prompt and shrunk:
        raise RunError("--seed-prompt and --shrunk name two prompts; leave one of them out")
    if shrunk:
        return "shrunk", run.shrunk()
    return ("seed", run.seed) if seed_prompt else ("best", run.best)


def _end(done: Done, examples: int, at_least: float | None) -> None:
    """End the command with the exit code of what came of it.

    Raises:
        typer.Exit: it did not go to its end, or the score is too low.
        BudgetExceeded: nothing was answered within the budget.
    """
    evaluation, ended = done.evaluation, done.ended
    if ended is None:
        if at_least is not None and evaluation is not None and (fell := short_of(evaluation, at_least)):
            complain(fell)
            raise typer.Exit(TOO_LOW)
        return
    spent = isinstance(ended, BudgetExceeded)
    if spent and evaluation is None:
        raise ended
    answered = 0 if evaluation is None else len(evaluation.answered)
    complain(f"{ended if spent else 'interrupted'}; {answered} of {plural(examples, 'example')} got a score")
    raise typer.Exit(BUDGET_SPENT if spent else INTERRUPTED)
