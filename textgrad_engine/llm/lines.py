"""Files of lines that only grow: what is written of a line is all of it, or nothing."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path


def append_line(fd: int, line: bytes, path: Path | None = None) -> None:
    """Write a line behind the last one; only a process that is killed meanwhile leaves a part of it.

    Nothing else may write to the file at the same time.

    Args:
        fd: of a file that is open for appending.
        line: its bytes, without the line break.
        path: where the file is, if it is to be there still: what is written into one that was deleted is lost.

    Raises:
        OSError: it cannot be written, e.g. because the disk is full; the file is as it was.
    """
    found = os.fstat(fd)
    if path is not None and not found.st_nlink and not _is(found, path):
        raise FileNotFoundError(errno.ENOENT, "it was deleted, or another file put in its place, meanwhile", str(path))
    end = found.st_size
    left = line + b"\n"
    try:
        while left:  # a disk that is nearly full takes a part, and says so by a number only
            left = left[os.write(fd, left) :]
    except BaseException:
        with contextlib.suppress(OSError):  # else the next line would stand behind a torn one, which no reader takes
            os.ftruncate(fd, end)
        raise


def _is(found: os.stat_result, path: Path) -> bool:
    """Whether an open file is the one at a place; some file systems say of none that it has a name."""
    try:
        return os.path.samestat(found, path.stat())
    except OSError:
        return False
