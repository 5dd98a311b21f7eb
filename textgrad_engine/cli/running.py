"""What `train` and `resume` share: a run is checked, carried out and shown in one place."""

from __future__ import annotations

import contextlib
import logging
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import typer

from textgrad_engine import report
from textgrad_engine.autograd import Variable
from textgrad_engine.cli import build, resume_words, runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.foresight import early_end, foreseen, shared_with_controls
from textgrad_engine.cli.models import check_prices, make_models
from textgrad_engine.cli.output import (
    BUDGET_SPENT,
    INTERRUPTED,
    OK,
    WRONG,
    CommandFailed,
    say,
    write,
    write_json,
)
from textgrad_engine.cli.progress import progress_for
from textgrad_engine.cli.resumed import Resumed
from textgrad_engine.cli.run_shown import run_as_json, run_in_a_line, write_run
from textgrad_engine.data import Dataset
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Model
from textgrad_engine.llm.cache import Cache
from textgrad_engine.nn import Module
from textgrad_engine.optim import Optimizer
from textgrad_engine.report.notes import looked_at_before
from textgrad_engine.report.terminal import complain
from textgrad_engine.store import FinishedRun, Run, RunFolder, read_run
from textgrad_engine.train import Guards, TrainResult

CODES = {"finished": OK, "interrupted": INTERRUPTED, "budget": BUDGET_SPENT}
"""The exit code by how a run ended."""


@dataclass(frozen=True)
class Job:
    """What is to be trained, on what; all of it was checked."""

    program: Module
    metric: Callable[..., Variable]
    optimizer: Optimizer
    guards: Guards | None
    models: dict[str, Model]
    train: Dataset
    val: Dataset
    test: Dataset | None

    @property
    def splits(self) -> dict[str, Dataset | None]:
        """The data by split."""
        return {"train": self.train, "val": self.val, "test": self.test}


def checked(
    config: Config,
    *,
    feedback: bool,
    run: Run | None = None,
    model: str | None = None,
    judge: str | None = None,
    budget: float | None = None,
) -> Job:
    """Check all that can be checked before a model is asked.

    Args:
        config: what is to be done.
        feedback: whether the optimizer gets feedback.
        run: the run whose seed texts the program begins with; None for the texts that are in it.
        model: what ``--model`` said, if it did; errors then speak of it.
        judge: what ``--judge`` said, likewise.
        budget: what ``--budget`` said, if it did.

    Raises:
        TextgradError: something cannot be used.
    """
    train_set, val_set, test_set = read_data(config)
    program = build.make_program(config)
    if run is not None:
        runs.load_texts(program, run.seed, run.path)
    metric = build.make_metric(config)
    guards = build.make_guards(config, val_set, train_set, test_set)
    optimizer = build.make_optimizer(config, program, train_set, feedback=feedback)
    models = make_models(config, model, judge=judge)
    check_prices(config, models, budget, model)
    with build.prompts_of(config):
        pass
    return Job(program, metric, optimizer, guards, models, train_set, val_set, test_set)


def carry_out(
    config: Config,
    job: Job,
    folder: RunFolder,
    way: runs.Way,
    *,
    name: str,
    before: int,
    cache: Cache | None,
    quiet: bool,
) -> TrainResult:
    """Train, and show how it goes on.

    Args:
        config: of the run.
        job: by `checked`.
        folder: where it is written down, and what was before, where it is resumed.
        way: how the run was begun.
        name: what the run is called.
        before: how often other runs had opened its test examples when it was begun.
        cache: where answers are kept, if anywhere.
        quiet: show nothing.
    """
    about = [f"{name}: {runs.summary(config, job.train, job.val, job.test)}", f"Run folder: {folder.path}"]
    about += runs.prices_in_words(config)
    seen = foreseen(config, job.program, job.metric, job.test)
    looks = looked_at_before(before) if before else ""
    shared = shared_with_controls(config, way.controls)
    early = ""
    if folder.earlier is None:  # one that goes on has scored it, mostly
        early = early_end(config, [job.val, job.test or ()], job.models, cached=cache is not None)
    announce(about, [early, shared, seen, looks], quiet)
    with build.surroundings(config, job.models, cache=cache), progress_for(quiet) as progress:
        trainer = build.make_trainer(config, job.guards, controls=way.controls, callbacks=(folder, *progress))
        return trainer.fit(job.program, job.metric, job.optimizer, job.train, job.val, job.test)


def announce(about: Iterable[str], foreseen: Iterable[str], quiet: bool) -> None:
    """Say what a run is about to do, before anything is paid for.

    Args:
        about: lines: what it is called, where it is written down, and at which prices.
        foreseen: sentences about what can come of it; "" for nothing to say.
        quiet: say nothing.
    """
    say("\n".join([*about, *(line for sentence in foreseen for line in textwrap.wrap(sentence, 80))]), quiet)
    logging.getLogger("textgrad_engine.train.splits").addHandler(logging.NullHandler())  # the progress says the same


def end(result: TrainResult, folder: RunFolder, *, quiet: bool, as_json: bool) -> NoReturn:
    """Print a result, and end the command with its exit code.

    Args:
        result: what the run found.
        folder: where it is.
        quiet: in one line.
        as_json: for machines.

    Raises:
        typer.Exit: always.
    """
    path, resumed = folder.path, None if folder.earlier is None else Resumed.of(folder.earlier)
    run = read_run(path)
    if as_json:
        also: dict[str, Any] = {} if resumed is None else {"resumed": resumed.as_json()}
        write_json({"run": str(path), **run_as_json(run, result), **also})
    elif quiet:
        write(run_in_a_line(run, result))
    else:
        write_run(run, result, str(path))
        complain(f"\n{report.one_line(result)}\nThe best prompt is in {resume_words.best_files(path, result.best)}")
    if resumed is not None:
        as_before = [f"The run in {path} is as it was before."]
        say("\n".join(as_before if result.shortage else resumed.in_words(result, path)), quiet or as_json)
    if not run.finished and not result.shortage:
        say("\n".join([*(f"note: {note}" for note in run.notes), resume_words.goes_on(run)]), quiet or as_json)
    raise typer.Exit(WRONG if result.shortage else CODES[result.status])


@contextlib.contextmanager
def refusing_changes(folder: RunFolder | FinishedRun) -> Iterator[None]:
    """Inside the block, a run that goes on and is refused before it has paid for anything ends the command as wrong."""
    try:
        yield
    except RunError as error:
        if isinstance(folder, FinishedRun):  # a fold
            error.add_note("nothing was asked; --anyway goes on, and takes the folds that are finished as they are")
        elif folder.earlier is None or not folder.earlier.refused:
            raise
        else:
            note = f"nothing was asked, and {folder.path} is as it was; --anyway goes on, and pays for what is new"
            error.add_note(note)
        raise CommandFailed(error, WRONG) from error


@contextlib.contextmanager
def saying_what_is_left(path: Path) -> Iterator[None]:
    """Inside the block, whatever ends the command says what is in the run folder."""
    try:
        yield
    except CommandFailed:
        raise
    except (Exception, SystemExit) as error:
        if resume_words.begun(path):
            error.add_note(resume_words.left_in(path))
        raise
    except KeyboardInterrupt as error:
        error.add_note(resume_words.left_in(path))
        raise
