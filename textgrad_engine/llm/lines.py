"""Files of lines that only grow: what is written of a line is all of it, or nothing."""

from __future__ import annotations

import contextlib
import os


def append_line(fd: int, line: bytes) -> None:
    """Write a line behind the last one; only a process that is killed meanwhile leaves a part of it.

    Nothing else may write to the file at the same time.

    Args:
        fd: of a file that is open for appending.
        line: its bytes, without the line break.

    Raises:
        OSError: it cannot be written, e.g. because the disk is full; the file is as it was.
    """
    end = os.fstat(fd).st_size
    left = line + b"\n"
    try:
        while left:  # a disk that is nearly full takes a part, and says so by a number only
            left = left[os.write(fd, left) :]
    except BaseException:
        with contextlib.suppress(OSError):  # else the next line would stand behind a torn one, which no reader takes
            os.ftruncate(fd, end)
        raise
