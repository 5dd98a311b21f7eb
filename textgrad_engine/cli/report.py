"""``textgrad-engine report``: a run as one HTML page that can be sent to somebody."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import run_data
from textgrad_engine.cli.options import ByColumn, RunPath
from textgrad_engine.cli.output import checking, command, write_exactly
from textgrad_engine.errors import RunError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.report.folds_page import page_of_folds
from textgrad_engine.report.page import is_page, page_of
from textgrad_engine.report.slices import Sliced
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.view import remark_on
from textgrad_engine.store.files import write_atomically
from textgrad_engine.store.folds import is_folds, read_folds
from textgrad_engine.store.reader import read_run


@command
def report(
    run: RunPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where to write the page; - for standard output. Default: RUN/report.html. An existing report is "
            "replaced, any other file is not.",
            show_default=False,
        ),
    ] = None,
    by: ByColumn = None,
) -> None:
    """Write one HTML page about a run, to send to a colleague: it loads nothing, runs nothing, and prints well.

    It shows the verdict and the scores with their intervals; what changed in the prompts, and for each line who asked
    for it and which races decided; the steps in order, controls, cost, and every remark that `show` prints; and how to
    run it again. For a cross-validation (`train --folds`) it shows the verdict of all folds, and which prompt to use.
    It contains prompts, feedback and the ids of examples: read it before you send it. For a run without a result it
    shows what is known so far. The same folder gives the same bytes.
    """
    with checking():
        page = _page_of(run, by)
        place = None if out == Path("-") else _place(out or run / "report.html")
    if place is None:
        write_exactly(page)
        return
    try:
        # A link that the user names is followed; one that a folder came with is replaced.
        write_atomically(place if out is None else place.resolve(), page.encode("utf-8"))
    except OSError as error:
        raise _unwritable(place, error) from None
    complain(f"The report is in {place}")


def _page_of(path: Path, by: str | None) -> str:
    slices = None if by is None else _sliced(path, by)
    if is_folds(path):
        return page_of_folds(read_folds(path), slices)
    found = read_run(path)
    for note in found.notes:
        complain(f"note: {note}")
    return page_of(found, run_data.openings(found), remark_on(found.by_command), slices)


def _sliced(path: Path, by: str) -> Sliced:
    from textgrad_engine.cli import sliced  # reads data and makes programs, which takes longer than all else here

    return sliced.of_path(path, by)


def _place(out: Path) -> Path:
    """Where the page goes.

    Raises:
        RunError: there is something else.
    """
    try:
        if out.is_dir():
            raise RunError(f"{out}: this is a folder; name a file in it, such as {out / 'report.html'}")
        if not out.resolve().parent.is_dir():
            raise RunError(f"{out}: there is no folder {out.parent}; make it, or name another place")
        with contextlib.suppress(FileNotFoundError):
            out.stat()  # what is wrong with a name, which `exists` does not tell on Python 3.14
        if out.exists() and not (out.is_file() and is_page(out)):
            raise RunError(f"{out}: this is there already and no report, so it is left as it is; name another file")
    except OSError as error:
        raise _unwritable(out, error) from None
    return out


def _unwritable(place: Path, error: OSError) -> RunError:
    reason = reason_of(error)
    return RunError(f"{place}: the report cannot be written: {reason}; name another place with --out")
