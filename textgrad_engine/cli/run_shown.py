"""What is printed of a run that has a result: in a line, and for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textgrad_engine import report
from textgrad_engine.cli import run_data, way_on
from textgrad_engine.llm.money import cost
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.notes import looks_in_a_line
from textgrad_engine.report.printing import harmless
from textgrad_engine.report.words import plural
from textgrad_engine.store.reader import Run
from textgrad_engine.train.result import TrainResult


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
    return report.as_json(result, openings, before=run.looks_before, tools=tools) | way_on.as_json(run)
