"""What is printed of a cross-validation."""

from __future__ import annotations

from typing import Any

import typer

from textgrad_engine import report
from textgrad_engine.cli import resume_words
from textgrad_engine.cli.output import FAILED, colors, width, write, write_json
from textgrad_engine.cli.run_shown import quiet_line
from textgrad_engine.report.notes import opened_before
from textgrad_engine.report.terminal import complain
from textgrad_engine.store.folds import Folds


def show_folds(folds: Folds, *, as_json: bool) -> None:
    """Print what there is of a cross-validation.

    Raises:
        typer.Exit: runs have no result, and none says why.
    """
    for run in folds.runs.values():
        for note in run.notes:
            complain(f"note: {run.path}: {note}")
    if as_json:
        write_json({"run": str(folds.path), **folds_as_json(folds)})
    else:
        write_report(folds)
        if folds.missing and folds.locked:
            complain("It still goes on.")
        elif _is_cut(folds):
            complain(resume_words.goes_on_together(folds))
    if folds.missing and not folds.found.stopped:
        raise typer.Exit(FAILED)


def folds_in_a_line(folds: Folds) -> str:
    """What ``--quiet`` prints of a cross-validation."""
    found = folds.found
    looked = f"test {opened_before(folds.looks_before)}" if folds.looks_before and found.comparison else ""
    return quiet_line(folds.path, report.folds_in_a_line(found), found.total, looked)


def folds_as_json(folds: Folds) -> dict[str, Any]:
    """The report as plain JSON values; whether a process is at work on it, and what goes on with it."""
    way_on = resume_words.goes_on_together(folds) if _is_cut(folds) and not folds.locked else None
    return {**report.folds_as_json(folds), "running": folds.locked, "way_on": way_on}


def _is_cut(folds: Folds) -> bool:
    """Whether a cross-validation has not come to its end."""
    return bool(folds.runs) and (bool(folds.missing) or folds.found.status != "finished")


def write_report(folds: Folds) -> None:
    """Print the report of a cross-validation."""
    write("\n" + report.render_folds(folds, title=str(folds.path), width=width(), color=colors()))
