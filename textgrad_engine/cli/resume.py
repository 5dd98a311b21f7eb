"""``textgrad-engine resume``: go on with a run that did not come to its end."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from textgrad_engine.cli import build, resume_words, run_data, runs
from textgrad_engine.cli.folds import carry_out_folds, check_as_before, end_folds, last_of, parts_for
from textgrad_engine.cli.folds_shown import folds_as_json, folds_in_a_line
from textgrad_engine.cli.options import (
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    Jobs,
    Json,
    MaxMinutes,
    ModelPrices,
    Quiet,
    RunPath,
    TokensLimit,
)
from textgrad_engine.cli.output import OK, checking, command, say, write, write_json
from textgrad_engine.cli.run_shown import run_as_json, run_in_a_line
from textgrad_engine.cli.running import carry_out, checked, end, refusing_changes, saying_what_is_left
from textgrad_engine.cli.sources import changed_since
from textgrad_engine.cli.spending import limits_of, price_of, spent_already
from textgrad_engine.errors import RunError
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.terminal import complain
from textgrad_engine.store import Folds, Run, RunFolder, is_folds, read_folds, read_run, typed, whole_of


@command
def resume(
    run: RunPath,
    base_url: BaseUrl = None,
    price: ModelPrices = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    max_minutes: MaxMinutes = None,
    cache: Annotated[
        bool | None,
        typer.Option(
            "--cache/--no-cache",
            help="Keep the endpoint's answers on disk, for other runs, too. Default: as the run was started.",
            show_default=False,
        ),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Go on although the first recorded answers no longer fit (program, prompts or version have "
            "changed), or recorded answers are gone, and pay for new ones. Finished folds are taken as they "
            "are.",
        ),
    ] = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Go on with a run that was killed or interrupted, or was ended by an error or its budget.

    The run starts over with the config in its folder, and replays every answer that it has paid for. A replayed answer
    is not asked for again, but counts in the budget, which is for the whole run. So the result is that of an
    uninterrupted run. The data must be unchanged.

    Without `--anyway` nothing is asked if paid answers are no longer on record, or if the first requests (the
    validation of the seed prompt, or the first ones to critic or optimizer) differ from those on record.
    """
    with checking():
        limited = any(each is not None for each in (budget, budget_calls, budget_tokens))
        folds, found = _unfinished(run, limited=limited, quiet=quiet, as_json=as_json)
        config = runs.config_of(found, found.seed)
        run_data.check_there(found, config, *run_data.SPLITS)
        limits = limits_of(budget, budget_calls, budget_tokens)
        config = config.with_overrides(base_url=base_url, price=price_of(price), limits=limits, max_minutes=max_minutes)
        way = runs.Way.of(found)
        if jobs is not None and folds is None:
            raise RunError(f"{run}: --jobs {jobs} is about the runs of --folds, and this is a single one; leave it out")
        job = checked(config, feedback=way.feedback, run=found, budget=budget)
        answers = build.make_cache(way.cache if cache is None else cache, "with --no-cache")
        if folds is None:
            run_data.check_splits(found, config, job.splits)
        else:
            check_as_before(folds, *parts_for(config, job.program, tuple(job.splits.values()), folds.folds))
    for other in changed_since((found.by_command or {}).get("files", {}), config):
        complain("\n".join(textwrap.wrap(other, 80)))
    begun = [found] if folds is None else folds.runs.values()
    if limited and (spent := spent_already(limits, sum(map(_on_record, begun), Usage()))):
        say("\n".join(textwrap.wrap(spent, 80)), quiet or as_json)
    if folds is not None:
        quietly, name = quiet or as_json, runs.name_in(found)
        with saying_what_is_left(run):
            carry_out_folds(
                config,
                job,
                run,
                way,
                folds=folds.folds,
                name=name,
                cache=answers,
                quiet=quietly,
                begun=found,
                anyway=anyway,
                jobs=jobs,
            )
        end_folds(run, quiet=quiet, as_json=as_json)
    with saying_what_is_left(run):
        with checking():
            folder = RunFolder(run, config=runs.with_limits(found, config), resume=True, anyway=anyway)
        quietly, name = quiet or as_json, runs.name_in(found)
        with refusing_changes(folder):
            result = carry_out(
                config, job, folder, way, name=name, before=found.looks_before, cache=answers, quiet=quietly
            )
        end(result, folder, quiet=quiet, as_json=as_json)


def _unfinished(run: Path, *, limited: bool, quiet: bool, as_json: bool) -> tuple[Folds | None, Run]:
    """What is to go on: a cross-validation and that run of it which began last, or None and a run.

    A finished one is left at once.

    Args:
        run: the folder.
        limited: whether a budget is given, which may have room for what that of before had none for.
        quiet: print the line of one that is left.
        as_json: write what it is to stdout.

    Raises:
        RunError: it cannot be read, or is one of the runs of a cross-validation.
    """
    folds = read_folds(run) if is_folds(run) else None
    if folds is not None and folds.finished:
        _leave(run, _shown_by(run), folds_in_a_line(folds), lambda: folds_as_json(folds), quiet=quiet, as_json=as_json)
    found = read_run(run) if folds is None else last_of(folds)
    if (
        folds is None
        and (result := found.result) is not None
        and (found.finished or (result.kept_short and not limited))
    ):
        how = _shown_by(run) if found.finished else resume_words.goes_on(found)
        line = run_in_a_line(found, result)
        _leave(run, how, line, lambda: run_as_json(found, result), quiet=quiet, as_json=as_json)
    if (whole_run := whole_of(run)) is not None:
        raise RunError(
            f"{run}: this is one of the runs of a cross-validation; go on with all of them: textgrad-engine resume "
            f"{typed(whole_run)}"
        )
    return folds, found


def _on_record(run: Run) -> Usage:
    """What a run has used, as far as its calls are on record."""
    try:
        return run.usage()
    except RunError:  # they are gone, which is told where the run goes on
        return Usage()


def _shown_by(run: Path) -> str:
    return f"`textgrad-engine show {typed(run)}` prints its result"


def _leave(
    run: Path, how: str, line: str, document: Callable[[], dict[str, Any]], *, quiet: bool, as_json: bool
) -> NoReturn:
    """Say of a finished run that nothing is to be done; who wants its result in a line or as JSON gets it."""
    say(f"{run} is finished, so there is nothing to resume; {how}", quiet or as_json)
    if as_json:
        write_json({"run": str(run), **document()})
    elif quiet:
        write(line)
    raise typer.Exit(OK)
