"""The run folder: what happened, what was paid for, and the best texts. Importing this lets the Trainer write one."""

from pathlib import Path

from textgrad_engine.store.afterwards import append_evaluation, check_shrunk, write_shrunk
from textgrad_engine.store.files import FOLDS, file_name, typed, whole_of, write_atomically
from textgrad_engine.store.finished import FinishedRun
from textgrad_engine.store.journal import RunFolder
from textgrad_engine.store.lock import is_locked
from textgrad_engine.store.reader import Run, read_run
from textgrad_engine.store.records import (
    FORMAT,
    evaluation_from_json,
    evaluation_to_json,
    result_from_json,
    result_to_json,
)
from textgrad_engine.train import events as _events

__all__ = [
    "FOLDS",
    "FORMAT",
    "FinishedRun",
    "Run",
    "RunFolder",
    "append_evaluation",
    "check_shrunk",
    "evaluation_from_json",
    "evaluation_to_json",
    "file_name",
    "is_locked",
    "read_run",
    "result_from_json",
    "result_to_json",
    "typed",
    "whole_of",
    "write_atomically",
    "write_shrunk",
]


def _run_folder(path: Path, *, resume: bool) -> RunFolder | FinishedRun:
    """The run in a folder, as `train.events.run_folder` says."""
    if resume and (path / "result.json").is_file():
        run = read_run(path)
        if run.result is not None and run.result.status == "finished":
            return FinishedRun(run)
    return RunFolder(path, resume=resume)


_events.RUN_FOLDERS.append(_run_folder)
