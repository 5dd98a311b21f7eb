"""Paths that lead to no file, in words."""

from __future__ import annotations

import contextlib
from pathlib import Path

from textgrad_engine.data.dataset import suggest

__all__ = ["check_reach", "missing_file"]

_TABLES = frozenset({".csv", ".json", ".jsonl"})
"""The endings of files that hold examples."""


def check_reach(path: Path) -> None:
    """Raise what keeps this user from looking at a path, so that nobody is told that there is nothing.

    On Python 3.14 `Path.is_file` and its like say no there, as of what is missing.

    Raises:
        PermissionError: a folder on the way is closed to this user.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        path.stat()


def missing_file(path: Path) -> str:
    """The message about a path that is no file, with the near names of its folder.

    Raises:
        PermissionError: a folder on the way is closed to this user.
    """
    check_reach(path)
    if path.is_dir():
        files = sorted(file.name for file in path.iterdir() if file.suffix.lower() in _TABLES)
        return f"{path}: this is a folder; name a file in it" + (f": {', '.join(files[:10])}" if files else "")
    if not path.parent.is_dir():
        return f"{path}: there is no folder {path.parent}; check the path, which counts from where you are if relative"
    names = [file.name for file in path.parent.iterdir() if file.is_file()]
    near = suggest(path.name, names)
    if not near:
        others = sorted(name for name in names if Path(name).suffix.lower() in _TABLES)
        near = f"; the folder has {', '.join(others[:10])}" if others else ""
    return f"{path}: there is no such file{near}"
