"""``textgrad-engine show``: print the report of a run again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from textgrad_engine import report
from textgrad_engine.cli import completion, run_data, way_on
from textgrad_engine.cli.folds_shown import show_folds
from textgrad_engine.cli.options import Json, RunPath
from textgrad_engine.cli.output import FAILED, checking, colors, command, complain, width, write, write_json
from textgrad_engine.errors import RunError
from textgrad_engine.report.view import remark_on
from textgrad_engine.store.folds import Folds, is_folds, read_folds
from textgrad_engine.store.reader import read_run
from textgrad_engine.train.result import TrainResult


@command
def show(
    run: RunPath,
    line: Annotated[
        int | None,
        typer.Option(
            "--line",
            metavar="N",
            min=1,
            help="Where line N of the best text comes from: feedback, examples, the race that accepted it, ablations. "
            "For a line that was removed, see --step.",
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(
            "--step",
            metavar="N",
            min=1,
            help="What step N did, also which lines it removed: feedback, examples, the race that decided, ablations. "
            "The report names the step of each line that was added or removed.",
        ),
    ] = None,
    parameter: Annotated[
        str | None,
        typer.Option(
            "--parameter",
            metavar="NAME",
            help="Which text, where several were trained.",
            autocompletion=completion.parameters,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the report of a run again; of a run that was killed or ended with an error, what is known of it."""
    folds: Folds | None = None
    explained: tuple[dict[str, Any], str] | None = None
    with checking():
        if line is not None and step is not None:
            raise RunError("--line N explains a line and --step N a step: give one of them")
        if parameter is not None and line is None and step is None:
            raise RunError("--parameter says which text's line to explain, so it needs --line N or --step N")
        if is_folds(run):
            if line is not None or step is not None:
                raise RunError(f"{run}: these are several runs, and a line or step is of one; name {run / 'final'}")
            folds = read_folds(run)
            _ = folds.found  # or it is damaged
        else:
            found = read_run(run)
        if folds is None and (line is not None or step is not None):
            if found.result is None:
                what = "a line" if step is None else "a step"
                ended = way_on.how_it_ended(found)
                raise RunError(f"{run} has no result, as the run {ended}; only finished runs can explain {what}")
            explained = _explained(found.result, line, step, parameter)
    if folds is not None:
        show_folds(folds, as_json=as_json)
        return
    if explained is not None:
        body, shown = explained
        if as_json:
            write_json(body)
        else:
            write(shown)
        return
    for note in found.notes:
        complain(f"note: {note}")
    if found.result is None:
        if as_json:
            write_json({"run": str(run), "status": None, "error": found.error or None, "best": found.best})
        else:
            remark = "" if found.locked else way_on.goes_on(found)
            write(report.render_unfinished(found, remark=remark, width=width(), color=colors()))
        raise typer.Exit(FAILED)
    if as_json:
        tools = report.tools_of(found.tools())
        document = report.as_json(found.result, run_data.openings(found), before=found.looks_before, tools=tools)
        write_json({"run": str(run), **document})
    else:
        remark = remark_on(found.config)
        openings = run_data.openings(found)
        shown = report.render(
            found.result,
            title=str(run),
            remark=remark,
            openings=openings,
            before=found.looks_before,
            tools=report.tools_of(found.tools()),
            width=width(),
            color=colors(),
        )
        write("\n" + shown)
        if found.result.status != "finished" and not found.locked:
            complain(way_on.goes_on(found))


def _explained(
    result: TrainResult, line: int | None, step: int | None, parameter: str | None
) -> tuple[dict[str, Any], str]:
    """Where a line comes from, or what a step did: for machines and for people."""
    if line is not None:
        of_line = report.lineage_of(result, line, parameter)
        return report.lineage_as_json(of_line), report.render_line(of_line, width=width(), color=colors())
    assert step is not None
    of_step = report.step_of(result, step, parameter)
    return report.step_as_json(of_step), report.render_step(of_step, width=width(), color=colors())
