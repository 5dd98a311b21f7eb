"""``textgrad-engine eval``: use what a run found, or what a config begins with, on a dataset; say how good it is."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import build, completion, run_data
from textgrad_engine.cli.evaluating import Asked, Done, Task, carried_out, checked, is_cached
from textgrad_engine.cli.evaluation_words import as_document, in_one_line, in_words, short_of
from textgrad_engine.cli.keeping import IN_THE_CACHE, on_record
from textgrad_engine.cli.options import (
    AddCache,
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    ClustersColumn,
    FrontNumber,
    Json,
    JudgeName,
    ModelName,
    ModelPrices,
    Quiet,
    Repeats,
    TokensLimit,
)
from textgrad_engine.cli.output import BUDGET_SPENT, INTERRUPTED, TOO_LOW, checking, command, write, write_json
from textgrad_engine.cli.sources import other_code
from textgrad_engine.cli.spending import ModelOptions
from textgrad_engine.cli.subject import Subject, prompt_of_config, prompt_of_run, with_files
from textgrad_engine.errors import BudgetExceeded, RunError
from textgrad_engine.report.earlier import measured, worse_than_the_run
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.view import headline
from textgrad_engine.report.words import plural
from textgrad_engine.store import append_evaluation, done_with, keep_for_missing
from textgrad_engine.train.standing import missed_in_words


@command
def evaluate(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A run folder that train wrote, e.g. runs/tickets-1; or a config, for its seed prompt.",
            show_default=False,
            autocompletion=completion.runs_and_configs,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="The examples (.jsonl, .json, .csv). Default: the test split of a run; the validation split of a "
            "config, or its training split if it has no validation split.",
        ),
    ] = None,
    seed_prompt: Annotated[
        bool,
        typer.Option(
            "--seed-prompt", help="Evaluate the seed prompt, as it was before the run, instead of the best one."
        ),
    ] = False,
    shrunk: Annotated[
        bool, typer.Option("--shrunk", help="Evaluate the short prompt that shrink wrote, instead of the best one.")
    ] = False,
    front: FrontNumber = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            "--prompt",
            metavar="FILE",
            help="Evaluate the text in a file instead of the best prompt, e.g. one that you have edited. If there "
            "are several texts: NAME=FILE, once for each.",
        ),
    ] = None,
    repeats: Repeats = 1,
    clusters: ClustersColumn = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Also show the score by the value in a column, such as the answer; for the run's own test examples,"
            " next to the score of its best prompt in the run.",
            autocompletion=completion.columns,
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            "--at-least",
            metavar="SCORE",
            help="End with exit code 4 if the mean score is lower, or a floor of the config is not reached. A "
            "missing answer counts as the lowest score.",
        ),
    ] = None,
    not_worse: Annotated[
        bool,
        typer.Option(
            "--not-worse",
            help="End with exit code 4 if the score is shown to be worse than the run's own on its test split, or "
            "more answers are missing than by chance (5%), or a floor of the config is not reached. Of 40 evaluations "
            "of an equal prompt one is worse by chance, and up to three if the endpoint loses answers.",
        ),
    ] = False,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="Ask only for the answers that the endpoint lost in the last evaluation with the same settings.",
        ),
    ] = False,
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
    """Evaluate the best prompt of a run, or the prompt of a config: mean score with its 95% interval.

    For train --folds it is the prompt of the final run. Models, metric and seed are those of the config. Its [budget]
    is for train, and does not hold here: use the options. Each time that a run's test split is opened is counted. If
    the budget is spent, or after Ctrl-C, the score is that of the answers so far, with the range that the missing ones
    leave open. For a run, the same command then goes on from there, even after it was killed: no answer is paid for
    twice, and all count in the limits. If the run folder cannot be written, the result is not kept, and the test split
    is not evaluated.

    Next to the score are the earlier scores of the same examples, from the run and its evaluations since, each with the
    paired difference. So you can compare another model (--model; add --judge to keep the judge), another prompt of the
    run, one of your own (--prompt), or the same prompt on another day.
    """
    asked = Asked(
        data=data,
        repeats=repeats,
        clusters=clusters,
        options=ModelOptions(model, judge, base_url, price, (budget, budget_calls, budget_tokens)),
        by=by,
        at_least=at_least,
        not_worse=not_worse,
        missing=missing,
    )
    with checking():
        named = _named(seed_prompt=seed_prompt, shrunk=shrunk, front=front, own=bool(prompt))
        subject = _subject(run, data, named, prompt or [], model, judge)
        task = checked(subject, asked)
        if task.unkept:
            complain(f"{task.unkept}; if it is ended early, it begins anew")
        if subject.run is not None and subject.may_change and not quiet:
            complain(f"note: {subject.path}: {headline(subject.run)}; this is the best prompt so far")
        answers = build.make_cache(cache, "without --cache")
        if subject.run is not None and (note := other_code(subject.kept.get("files", {}), subject.config)):
            complain("\n".join(textwrap.wrap(note, 80)))
    done = carried_out(task, cache=answers, quiet=quiet or as_json)
    with contextlib.ExitStack() as stack:  # what cannot be written is printed all the same
        if task.keeps:
            stack.callback(append_evaluation, subject.path, {**run_data.ended(done.entry), **measured(done.evaluation)})
        if as_json:
            write_json(as_document(subject, done))
        elif done.evaluation is not None:
            write(in_one_line(subject, done, done.evaluation) if quiet else in_words(subject, done, done.evaluation))
    if done.kept is not None and done.ended is None:
        (keep_for_missing if done.lacking else done_with)(done.kept)
    _end(done, task, at_least, not_worse, cached=cache and is_cached(task))


def _named(*, seed_prompt: bool, shrunk: bool, front: int | None, own: bool) -> dict[str, str]:
    """The prompts of a run that options name, by these.

    Raises:
        RunError: they name two.
    """
    named = {"--seed-prompt": "seed" * seed_prompt, "--shrunk": "shrunk" * shrunk}
    named["--front"] = "" if front is None else f"front {front}"
    found = {option: prompt for option, prompt in named.items() if prompt}
    if len(options := [*found, *(["--prompt"] if own else [])]) > 1:
        raise RunError(f"{' and '.join(options)} name {len(options)} prompts; leave {len(options) - 1} of them out")
    return found


def _subject(
    path: Path, data: Path | None, named: Mapping[str, str], files: Sequence[str], *models: str | None
) -> Subject:
    """What is evaluated.

    Raises:
        TextgradError: it is not there, or cannot be used.
    """
    if (own := prompt_of_config(path, *models)) is None:
        found = prompt_of_run(path, data, next(iter(named.values()), "best"))
        return with_files(found, files) if files else found
    for option in named:
        raise RunError(f"{path}: {option} is for runs; without it, what a config begins with is evaluated")
    return with_files(own, files) if files else own


def _end(done: Done, task: Task, at_least: float | None, not_worse: bool, *, cached: bool) -> None:
    """End the command with the exit code of what came of it.

    Raises:
        typer.Exit: it did not go to its end, or the score is too low.
        BudgetExceeded: nothing was answered within the budget.
    """
    evaluation, ended = done.evaluation, done.ended
    if ended is None:
        low = "" if at_least is None or evaluation is None else short_of(evaluation, at_least)
        own = task.subject.run
        worse = worse_than_the_run(own, done.earlier) if not_worse and own is not None else ""
        missed = missed_in_words(done.floors) if at_least is not None or not_worse else ""
        for said in filter(None, (low, worse, missed)):
            complain(said)
        if low or worse or missed:
            raise typer.Exit(TOO_LOW)
        return
    spent = isinstance(ended, BudgetExceeded)
    if spent and evaluation is None:
        raise ended
    answered = 0 if evaluation is None else len(evaluation.answered)
    kept = f"; {IN_THE_CACHE}" if cached and answered else ""
    if done.kept is not None:
        kept = f"; {on_record(task.config.budget if spent else None)}"
    examples = plural(len(task.dataset), "example")
    complain(f"{ended if spent else 'interrupted'}; {answered} of {examples} got a score{kept}")
    raise typer.Exit(BUDGET_SPENT if spent else INTERRUPTED)
