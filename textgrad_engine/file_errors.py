"""Why a file or a folder could not be used, in words."""

from __future__ import annotations

import errno
from pathlib import Path


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
