"""What is printed of a run: its report, in a line, and for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from textgrad_engine import report
from textgrad_engine.cli import resume_words, run_data
from textgrad_engine.cli.output import FAILED, colors, width, write, write_json
from textgrad_engine.llm.money import cost
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.document import unfinished_as_json
from textgrad_engine.report.notes import looks_in_a_line
from textgrad_engine.report.printing import harmless
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.view import remark_on
from textgrad_engine.report.words import plural
from textgrad_engine.store.reader import Run
from textgrad_engine.train.result import TrainResult


def show_run(run: Run, title: str, *, as_json: bool) -> None:
    """Print what there is of a run.

    Args:
        run: its folder.
        title: what that is called.
        as_json: for machines.

    Raises:
        typer.Exit: it has no result.
    """
    for note in run.notes:
        complain(f"note: {note}")
    if run.result is None:
        if as_json:
            write_json({"run": title, **unfinished_as_json(run), **resume_words.as_json(run)})
        else:
            remark = "" if run.locked else resume_words.goes_on(run)
            write(report.render_unfinished(run, remark=remark, width=width(), color=colors()))
        raise typer.Exit(FAILED)
    if as_json:
        write_json({"run": title, **run_as_json(run, run.result)})
        return
    write_run(run, run.result, title)
    if not run.finished and not run.locked:
        complain(resume_words.goes_on(run))


def write_run(run: Run, result: TrainResult, title: str) -> None:
    """Print the report of a run.

    Args:
        run: its folder.
        result: what it found.
        title: what the folder is called.
    """
    shown = report.render(
        result,
        title=title,
        remark=remark_on(run.by_command),
        openings=run_data.openings(run),  # evaluations of it included
        before=run.looks_before,
        tools=report.tools_of(run.tools()),
        width=width(),
        color=colors(),
    )
    write("\n" + shown)


def run_in_a_line(run: Run, result: TrainResult) -> str:
    """What ``--quiet`` prints of a run.

    Args:
        run: its folder.
        result: what it found.
    """
    looked = looks_in_a_line(result, run_data.openings(run), run.looks_before)
    return quiet_line(run.path, report.one_line(result), result.total, looked)


def quiet_line(path: Path, found: str, used: Usage, looked: str) -> str:
    """The same of what is in a folder, be it one run or several.

    Args:
        path: the folder.
        found: what was found, in a line.
        used: by all calls.
        looked: how often the test set had been opened before, if it had.
    """
    said = f"{path}: {found}; {plural(used.calls, 'call')}, {cost(used.dollars)}{looked and f'; {looked}'}"
    return harmless(said)


def run_as_json(run: Run, result: TrainResult) -> dict[str, Any]:
    """The report as plain JSON values; whether a process is at work on the run, and what goes on with it.

    Args:
        run: its folder.
        result: what it found.
    """
    openings, tools = run_data.openings(run), report.tools_of(run.tools())
    return report.as_json(result, openings, before=run.looks_before, tools=tools) | resume_words.as_json(run)
