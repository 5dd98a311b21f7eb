"""What there is in `textgrad_engine.store`."""

from textgrad_engine.store.afterwards import (
    append_evaluation,
    check_shrunk,
    check_writable,
    done_with,
    keep_for_missing,
    kept_calls,
    write_shrunk,
)
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
    "check_writable",
    "done_with",
    "evaluation_from_json",
    "evaluation_to_json",
    "file_name",
    "is_bare",
    "is_folds",
    "is_locked",
    "keep_for_missing",
    "kept_calls",
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
