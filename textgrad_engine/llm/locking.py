"""Locks of the operating system on open files: one process has each, and one that was killed has none."""

from __future__ import annotations

import os
import time
from typing import Any

from textgrad_engine.dispatch import Moment

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

_BYTE = 2**30
"""On Windows what is locked cannot be read, so it is a byte far behind what the file holds."""
_PATIENCE = 0.5
"""So many seconds a lock is tried for: who looks whether there is one (`is_locked`) has one for a moment."""


def taken_soon(fd: int) -> bool:
    """Lock an open file, as soon as those who only look are done; False says that somebody else has it."""
    moment = Moment(_PATIENCE)
    while not (found := taken(fd)) and not moment.over():
        time.sleep(0.005)
    return found


def taken(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file; False says that somebody else has.

    Args:
        fd: the file.
        shared: several may have it then; on Windows, that is not to be had.
    """
    try:
        if os.name == "posix":
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        else:
            os.lseek(fd, _BYTE, os.SEEK_SET)
            windows: Any = msvcrt
            windows.locking(fd, windows.LK_NBLCK, 1)
            os.lseek(fd, 0, os.SEEK_SET)
    except (BlockingIOError, PermissionError):
        os.lseek(fd, 0, os.SEEK_SET)
        return False
    except OSError:  # the file system knows no locks
        return True
    return True
