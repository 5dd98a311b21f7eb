"""``textgrad-engine show``: print the report of a run again."""

from __future__ import annotations

import json

import typer

from textgrad_engine import report
from textgrad_engine.cli import runs
from textgrad_engine.cli.options import Json, RunPath
from textgrad_engine.cli.output import FAILED, checking, colors, command, complain, width, write
from textgrad_engine.store import read_run

__all__ = ["show"]


@command
def show(run: RunPath, as_json: Json = False) -> None:
    """Print the report of a run again; of a run that was killed, what is known of it."""
    with checking():
        found = read_run(run)
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
