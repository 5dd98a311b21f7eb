"""Why a file or a folder could not be used, in words."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


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


UNLINKED: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""For `os.open`: what is written into a folder that somebody sent goes to no file elsewhere, and waits for no pipe."""


def reason_of(error: Exception) -> str:
    """Why it could not be read or written: what stands in the way where a folder should be, else the system's words.

    Args:
        error: an `OSError`, or what a database says.

    Example:
        >>> reason_of(OSError(28, "No space left on device"))
        'no space left on device'
    """
    if isinstance(error, FileExistsError | NotADirectoryError) and error.filename is not None:
        path = Path(error.filename)
        for place in (path, *path.parents):
            if place.is_file():
                return f"{place} is a file, and a folder is wanted there"
            if place.is_symlink() and not place.exists():
                return f"{place} is a link that leads nowhere"
    if getattr(error, "errno", None) == errno.ELOOP:
        return "it is a link, which leads elsewhere; put what is to be there in its place"
    return (getattr(error, "strerror", None) or str(error)).lower()
