"""How the Trainer and a cross-validation open the folders that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textgrad_engine.data.dataset import ids_of
from textgrad_engine.errors import RunError
from textgrad_engine.store.finished import FinishedRun
from textgrad_engine.store.folds import FoldsWriter, is_folds, read_folds, write_folds
from textgrad_engine.store.journal import RunFolder
from textgrad_engine.store.lock import is_bare
from textgrad_engine.store.reader import read_run
from textgrad_engine.train.result import TrainResult


def run_folder(path: Path, *, resume: bool, anyway: bool) -> RunFolder | FinishedRun | TrainResult:
    """The run in a folder, as `train.folders.run_folder` says."""
    if resume and (path / "result.json").is_file():
        run = read_run(path)
        if run.result is not None and run.finished:
            return run.result if anyway else FinishedRun(run)
    return RunFolder(path, resume=resume, anyway=anyway)


def folds_folder(
    path: Path,
    examples: Sequence[Mapping[str, Any]],
    *,
    folds: int,
    clusters: Sequence[str],
    final: bool,
    resume: bool,
) -> FoldsWriter:
    """The folder of a cross-validation, as `train.folders.folds_folder` says."""
    writer = FoldsWriter(path)
    try:
        _begin_folds(path, examples, folds=folds, clusters=clusters, final=final, resume=resume)
    except BaseException:  # who keeps the error, as a notebook does, would keep the folder locked
        writer.release()
        raise
    return writer


def _begin_folds(
    path: Path,
    examples: Sequence[Mapping[str, Any]],
    *,
    folds: int,
    clusters: Sequence[str],
    final: bool,
    resume: bool,
) -> None:
    """Write down of what a cross-validation is, or check that it is what is written there."""
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
