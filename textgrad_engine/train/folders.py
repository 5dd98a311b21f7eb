"""Where runs are written down: by `textgrad_engine.store`, which is above this package."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textgrad_engine.train.events import Callback

if TYPE_CHECKING:
    from textgrad_engine.train.fold_parts import FoldsFolder
    from textgrad_engine.train.result import TrainResult


def run_folder(path: Path, *, resume: bool = False, anyway: bool = False) -> Callback | TrainResult:
    """The callback that writes a run folder; or the result of a finished run, where that is taken as it is.

    Args:
        path: the folder.
        resume: take up the run in it; one that is finished is played back.
        anyway: also where it has changed since; one that is finished is not looked into.
    """
    found: Callback | TrainResult = _store().run_folder(path, resume=resume, anyway=anyway)
    return found


def folds_folder(
    path: Path,
    examples: Sequence[Mapping[str, Any]],
    *,
    folds: int,
    clusters: Sequence[str],
    final: bool,
    resume: bool = False,
) -> FoldsFolder:
    """The folder of a cross-validation, in which is written down of what examples it is.

    Args:
        path: the folder that holds all of its runs.
        examples: all of them.
        folds: how many.
        clusters: of each example; empty where each stands for itself.
        final: whether there is a run on all examples, too.
        resume: go on with what is in it.

    Raises:
        RunError: it cannot be written, or what is written there is of other examples or not to be gone on with; or
            another process is at work on it.
    """
    found: FoldsFolder = _store().folds_folder(
        path, examples, folds=folds, clusters=clusters, final=final, resume=resume
    )
    return found


def _store() -> Any:
    return importlib.import_module("textgrad_engine.store.opening")  # by name, as it is above
