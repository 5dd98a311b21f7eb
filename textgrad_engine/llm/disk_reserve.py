"""Room on a disk that is kept free for the answers that are under way when it fills."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

SIZE = 8 << 20
"""Bytes: 200 calls of 40 kB each, which is a prompt of ten pages, its answer, and what JSON makes of them."""

_PREFIX = ".disk-reserve-"
"""Of its name, on Windows: no file there is without one, and this one stands in the folder while it is held."""

_FULL = {errno.ENOSPC, errno.EDQUOT}


class Room:
    """A file that takes room on a disk until that is full, or the process ends, however it does.

    What is to be written is then written in its place, and who writes is told all the same, so that nothing more is
    begun. What is paid for and under way finds room, too. Where the disk has none from the beginning, or does not say
    that it took it, there is none; and whatever else is written on that disk may take it first.

    Args:
        folder: is on the disk.
        size: its bytes.

    Example:
        >>> import tempfile
        >>> room, lines = Room(Path(tempfile.gettempdir()), 4096), []
        >>> room.write(lambda: lines.append("a line"))
        >>> lines
        ['a line']
    """

    def __init__(self, folder: Path, size: int = SIZE) -> None:
        try:
            file = tempfile.TemporaryFile(dir=folder, prefix=_PREFIX, buffering=0)  # noqa: SIM115
        except OSError:
            self.give_back: Callable[[], object] = lambda: None
            return
        self.give_back = weakref.finalize(self, file.close)
        try:
            _take(file.fileno(), size)
        except OSError:
            self.give_back()

    def write(self, write: Callable[[], None]) -> None:
        """Write something; where the disk is full, give the room back, write it then, and raise all the same.

        Args:
            write: writes all of it, or nothing.

        Raises:
            OSError: what it raises.
        """
        try:
            write()
        except OSError as error:
            if error.errno in _FULL:
                self.give_back()
                with contextlib.suppress(OSError):  # it was not enough, or is used up
                    write()
            raise


def _take(fd: int, size: int) -> None:
    """Have so many bytes of the disk.

    Raises:
        OSError: there are not so many, or the file system cannot promise them.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
        return
    left = size
    while left:
        left -= os.write(fd, bytes(min(left, 1 << 20)))
