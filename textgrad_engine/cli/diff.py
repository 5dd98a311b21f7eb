"""``textgrad-engine diff``: what a run changed in its prompts, or how two runs differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine import report
from textgrad_engine.cli import completion, run_data
from textgrad_engine.cli.options import Json, RunPath
from textgrad_engine.cli.output import at_terminal, checking, colors, command, width, write_exactly, write_json
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.view import headline
from textgrad_engine.store.folds import Folds, is_folds, read_folds
from textgrad_engine.store.reader import Run, read_run
from textgrad_engine.train.none_kept import none_kept


@command
def diff(
    run: RunPath,
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN_B",
            help="Another run folder, to compare with the first.",
            show_default=False,
            autocompletion=completion.run_folders,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what a run changed in its prompts, or compare two runs. Differences do not change the exit code.

    For one run: a unified diff from the texts in RUN/seed to those in RUN/best. A pipe gets it byte for byte, as in
    `diff RUN | patch prompt.txt`; a prompt that came from a file ends as the file does. If nothing changed, nothing is
    printed. `show RUN` says who asked for each line.

    For two runs: their scores, the paired difference of their best prompts on the examples that both were tested on (or
    why there is none), the settings in which they differ, what they cost, and a unified diff of their best prompts. For
    a run without a result, the best prompt so far is used.

    A folder of `train --folds` is taken, too: its prompt is the final one. Two such folders, or one and a run, are
    paired on the examples that both have tested.
    """
    if other is not None:
        with checking():
            found = _read(run), _read(other)
            beside = report.beside_of(*found, (_openings(found[0]), _openings(found[1])))
        if as_json:
            write_json(report.beside_as_json(beside))
        else:
            write_exactly(report.render_beside(beside, width=width(), terminal=at_terminal(), color=colors()))
        return
    with checking():
        one = _read(run)
        if isinstance(one, Folds):
            one = one.final()
            complain(f"note: {run}: several runs; this is what the run on all examples changed")
        texts = report.changes_of(one)
    if as_json:
        write_json(report.changes_as_json(one, texts))
        return
    if one.result is None:
        complain(f"note: {run}: {headline(one)}; this is the best prompt so far")
    if patches := report.render_patches(texts, terminal=at_terminal(), color=colors()):
        write_exactly(patches)
    else:
        complain(f"{run}: nothing was changed{_why(one)}")


def _read(path: Path) -> Run | Folds:
    """The run in a folder, or the cross-validation; what is not as it should be is told."""
    found = read_folds(path) if is_folds(path) else read_run(path)
    for each in found.runs.values() if isinstance(found, Folds) else (found,):
        for note in each.notes:
            complain(f"note: {each.path}: {note}")
    return found


def _openings(found: Run | Folds) -> int:
    """How often the test examples were looked at; all folds are one look."""
    if isinstance(found, Folds):
        return max(map(run_data.openings, found.runs.values()), default=0)
    return run_data.openings(found)


def _why(run: Run) -> str:
    if run.result is None:
        return ""
    return f": {none_kept(run.result) if run.result.steps else headline(run)}"
