"""Files of folders that somebody may have sent: what is no file is not read, and links lead writing nowhere else."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

UNLINKED: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""For `os.open`: a link is not followed, and no pipe waited for."""


def content_of(path: Path) -> bytes:
    """What a file holds; a pipe may give nothing for ever, and a device have no end, so neither is read.

    Raises:
        OSError: it cannot be read, or is a pipe or a device.
    """
    check_plain(path)
    return path.read_bytes()


def check_plain(path: Path) -> None:
    """Check that what is at a place, or where a link there leads, is no pipe and no device.

    Raises:
        OSError: it is one; or there is nothing.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # of a folder the system has its own words
        raise OSError(errno.EINVAL, "it is a pipe or a device, and a file is wanted there", str(path))


def check_unlinked(path: Path) -> None:
    """Check that what is at a place, if anything, is no link: it would lead to what the folder was not sent with.

    Raises:
        OSError: it is one, with the number that `os.open` has for it.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
