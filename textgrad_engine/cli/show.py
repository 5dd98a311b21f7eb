"""``textgrad-engine show``: print the report of a run again."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from textgrad_engine import report
from textgrad_engine.cli import runs
from textgrad_engine.cli.options import Json, RunPath
from textgrad_engine.cli.output import FAILED, checking, colors, command, complain, width, write
from textgrad_engine.errors import RunError
from textgrad_engine.store import read_run

__all__ = ["show"]


@command
def show(
    run: RunPath,
    line: Annotated[
        int | None,
        typer.Option(
            "--line",
            metavar="N",
            min=1,
            help="Where line N of the best text comes from: feedback, examples, the race that accepted it, ablations.",
        ),
    ] = None,
    parameter: Annotated[
        str | None, typer.Option("--parameter", metavar="NAME", help="Which text's line, where several were trained.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the report of a run again; of a run that was killed, what is known of it."""
    with checking():
        if parameter is not None and line is None:
            raise RunError("--parameter says which text's line to explain, so it needs --line N")
        found = read_run(run)
        if line is not None:
            if found.result is None:
                raise RunError(f"{run} has no result, as the run was killed; only finished runs can explain a line")
            explained = report.lineage_of(found.result, line, parameter)
            if as_json:
                write(json.dumps(report.lineage_as_json(explained), ensure_ascii=False, indent=2))
            else:
                write(report.render_line(explained, width=width(), color=colors()))
            return
    for note in found.notes:
        complain(f"note: {note}")
    if found.result is None:
        if as_json:
            write(json.dumps({"run": str(run), "status": None, "best": found.best}, ensure_ascii=False, indent=2))
        else:
            write(report.render_unfinished(found, width=width(), color=colors()))
        raise typer.Exit(FAILED)
    if as_json:
        write(
            json.dumps(
                {"run": str(run), **report.as_json(found.result, runs.openings(found))}, ensure_ascii=False, indent=2
            )
        )
    else:
        remark = "" if (found.config or {}).get("feedback", True) else runs.CONTROL
        openings = runs.openings(found)
        shown = report.render(
            found.result, title=str(run), remark=remark, openings=openings, width=width(), color=colors()
        )
        write("\n" + shown)
