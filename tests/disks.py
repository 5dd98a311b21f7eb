"""A disk that fills, where tests write lines on it."""

from __future__ import annotations

import errno
import os


class SmallDisk:
    """In the place of `os.write` and `os.posix_fallocate`: what is written and promised is as much as there is room.

    Args:
        free: bytes.
        promises: whether the file system can promise room.
    """

    def __init__(self, free: int, *, promises: bool = True) -> None:
        self.free = free
        self._promises = promises
        self._promised: list[tuple[int, int, int]] = []
        self._write = os.write

    def allocate(self, fd: int, offset: int, size: int) -> None:
        if not self._promises:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        self._take(size)
        self._promised.append((fd, os.fstat(fd).st_ino, size))

    def write(self, fd: int, content: bytes) -> int:
        self._take(len(content))
        return self._write(fd, content)

    @property
    def promised(self) -> int:
        """How many bytes are promised to files that are open."""
        self._promised = [each for each in self._promised if _is_open(*each[:2])]
        return sum(size for _, _, size in self._promised)

    def _take(self, size: int) -> None:
        before = sum(each[2] for each in self._promised)
        self.free += before - self.promised
        if size > self.free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.free -= size


def _is_open(fd: int, inode: int) -> bool:
    try:
        return os.fstat(fd).st_ino == inode
    except OSError:
        return False
