"""Paths that lead to no file, in words."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from textgrad_engine.data.names import suggest
from textgrad_engine.slots import composed

_TABLES = frozenset({".csv", ".json", ".jsonl", ".ndjson", ".tsv"})
"""The endings of files that hold examples."""

_SPLITS = frozenset({"dev", "test", "train", "training", "val", "valid", "validation"})
"""Names that are near each other and never one meant for the other: who lacks a test set is not to test on training."""


_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.EBADF)
"""What the system says where nothing is; the last two are of names that no file of Windows can have, or a console."""


def check_reach(path: Path) -> None:
    """Raise what keeps this user from looking at a path, so that nobody is told that there is nothing.

    On Python 3.14 `Path.is_file` and its like say no there, as of what is missing.

    Raises:
        PermissionError: a folder on the way is closed to this user.
    """
    try:
        path.stat()
    except OSError as error:
        if error.errno not in _NOTHING:
            raise


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in _TABLES and path.is_file()


def missing_file(path: Path, offered: Callable[[Path], bool] = _is_table) -> str:
    """The message about a path that is no file, with the near names of its folder.

    Args:
        path: where there is none.
        offered: what is named where no name is near.

    Raises:
        PermissionError: a folder on the way is closed to this user.
    """
    check_reach(path)
    if path.is_dir():
        files = sorted(each.name for each in path.iterdir() if offered(each))
        return f"{path}: this is a folder; name a file in it" + (f": {', '.join(files[:10])}" if files else "")
    if path.exists():
        return f"{path}: this is a pipe or a device; write what comes of it into a file, and name that"
    if path.name == "-":
        return f"{path}: nothing is read from standard input; write it into a file, and name that"
    if not path.parent.is_dir():
        return f"{path}: there is no folder {path.parent}; check the path, which counts from where you are if relative"
    beside = sorted(path.parent.iterdir())
    other = _SPLITS - {path.stem} if path.stem in _SPLITS else frozenset()
    names = [each.name for each in beside if each.stem not in other and (each.is_file() or offered(each))]
    if any(composed(name) == composed(path.name) for name in names):
        return (
            f"{path}: there is no such file, but one whose name looks the same, with its letters made of other "
            "characters: rename it, or copy its name from the folder"
        )
    near = suggest(path.name, names)
    if not near:
        others = [each.name for each in beside if offered(each)]
        near = f"; the folder has {', '.join(others[:10])}" if others else "; check the path"
    return f"{path}: there is no such file{near}"
