"""The run folder: what happened, what was paid for, and the best texts. Importing this lets the Trainer write one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textgrad_engine.data import ids_of
from textgrad_engine.errors import RunError
from textgrad_engine.store.afterwards import append_evaluation, check_shrunk, write_shrunk
from textgrad_engine.store.files import FOLDS, file_name, typed, whole_of, write_atomically
from textgrad_engine.store.finished import FinishedRun
from textgrad_engine.store.folds import Folds, FoldsWriter, is_folds, read_folds, way_on_with, write_folds
from textgrad_engine.store.journal import RunFolder
from textgrad_engine.store.lock import check_unlocked, is_bare, is_locked
from textgrad_engine.store.reader import Run, read_run
from textgrad_engine.store.records import (
    FORMAT,
    evaluation_from_json,
    evaluation_to_json,
    result_from_json,
    result_to_json,
)
from textgrad_engine.train import TrainResult
from textgrad_engine.train import events as _events

__all__ = [
    "FOLDS",
    "FORMAT",
    "FinishedRun",
    "Folds",
    "FoldsWriter",
    "Run",
    "RunFolder",
    "append_evaluation",
    "check_shrunk",
    "check_unlocked",
    "evaluation_from_json",
    "evaluation_to_json",
    "file_name",
    "is_bare",
    "is_folds",
    "is_locked",
    "read_folds",
    "read_run",
    "result_from_json",
    "result_to_json",
    "typed",
    "way_on_with",
    "whole_of",
    "write_atomically",
    "write_folds",
    "write_shrunk",
]


def _run_folder(path: Path, *, resume: bool, anyway: bool) -> RunFolder | FinishedRun | TrainResult:
    """The run in a folder, as `train.events.run_folder` says."""
    if resume and (path / "result.json").is_file():
        run = read_run(path)
        if run.result is not None and run.result.status == "finished":
            return run.result if anyway else FinishedRun(run)
    return RunFolder(path, resume=resume, anyway=anyway)


def _folds_folder(
    path: Path,
    examples: Sequence[Mapping[str, Any]],
    *,
    folds: int,
    clusters: Sequence[str],
    final: bool,
    resume: bool,
) -> FoldsWriter:
    """The folder of a cross-validation, as `train.events.folds_folder` says."""
    writer = FoldsWriter(path)
    if not resume and path.is_dir() and not is_bare(path):
        raise RunError(
            f"{path}: there is something in this folder; name a new one, or go on with what is there by "
            "Trainer(resume=True)"
        )
    ids = ids_of(examples)
    if is_folds(path):
        known = read_folds(path)
        if (known.folds, list(known.ids)) != (folds, list(ids)):
            others = " others, or in another order" if len(ids) == len(known.ids) and folds == known.folds else ""
            raise RunError(
                f"{path}: the cross-validation there is of {known.folds} folds of {len(known.ids)} examples, and this "
                f"one of {folds} folds of {len(ids)}{others}; put them back, or name another run_dir"
            )
    write_folds(path, ids, folds=folds, clusters=clusters, final=final, python=True)
    return writer


_events.RUN_FOLDERS.append(_run_folder)
_events.FOLDS_FOLDERS.append(_folds_folder)
