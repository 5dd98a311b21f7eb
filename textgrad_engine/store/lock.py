"""Who writes into a run folder, or one of several runs: one process at a time; one that was killed holds nothing."""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path

from textgrad_engine.errors import RunError
from textgrad_engine.llm.locking import taken, taken_soon
from textgrad_engine.untrusted_files import UNLINKED

LOCK = ".lock"
"""The file that is locked."""


class Lock:
    """Keeps others from writing into a run folder until it is released, or its process has ended.

    It is a lock of the operating system on the file ``.lock``, which holds the number of the process for people to
    read; the file alone means nothing. Where the file system has no locks, nothing is kept from anybody.

    Args:
        folder: the run folder.

    Raises:
        RunError: somebody else is writing into it.
        OSError: the file cannot be made.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> lock = Lock(folder)
        >>> is_locked(folder)
        True
        >>> lock.release()
        >>> is_locked(folder)
        False
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder.absolute() / LOCK
        while (fd := self._open()) is None:
            pass
        self._close = weakref.finalize(self, os.close, fd)
        _held.add(self)

    def _open(self) -> int | None:
        """The file, locked; None where it was removed by who held it before."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | UNLINKED, 0o666)
        try:
            if not taken_soon(fd):
                raise _at_work(fd, self.path.parent)
            if _is(fd, self.path):
                os.ftruncate(fd, 0)
                os.write(fd, str(os.getpid()).encode())
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None

    def release(self) -> None:
        """Let others write; a second time, nothing happens."""
        if not self._close.alive:
            return
        try:
            self.path.unlink()
        except PermissionError:  # Windows removes no file that is open, also when another one has it by now
            self.forget()
            with contextlib.suppress(OSError):
                self.path.unlink()
        except OSError:  # somebody else has removed it
            pass
        finally:
            self.forget()

    def forget(self) -> None:
        """Close the file."""
        self._close()
        _held.discard(self)


def is_locked(folder: Path) -> bool:
    """Whether somebody is writing into a run folder now; others may look at the same time, and need not own it."""
    try:
        check_unlocked(folder)
    except RunError:
        return True
    return False


def check_unlocked(folder: Path) -> None:
    """Check that nobody is writing into a run folder now; nothing is written to see that.

    Raises:
        RunError: somebody is.
    """
    try:
        fd = os.open(folder / LOCK, (os.O_RDONLY if os.name == "posix" else os.O_RDWR) | UNLINKED)
    except OSError:
        return
    try:
        # Windows has no shared locks: it may be somebody who only looks, for a moment.
        if not (taken(fd, shared=True) if os.name == "posix" else taken_soon(fd)):
            raise _at_work(fd, folder)
    finally:
        os.close(fd)


def is_bare(folder: Path) -> bool:
    """Whether a folder holds nothing, or only what a process leaves that was killed before it wrote anything."""
    return all(file.name == LOCK for file in folder.iterdir())


def _at_work(fd: int, folder: Path) -> RunError:
    holder = os.read(fd, 20).decode("ascii", "replace")
    return RunError(
        f"{folder}: process {holder or 'unknown'} is at work on this run; wait for its end, or end it with Ctrl-C"
    )


def _is(fd: int, path: Path) -> bool:
    """Whether an open file is the one at a place; on Windows nobody can have put another one there."""
    if os.name == "nt":
        return True
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _forget_all() -> None:
    for lock in list(_held):
        lock.forget()


_held: weakref.WeakSet[Lock] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):  # a child that outlives this process would hold its locks
    os.register_at_fork(after_in_child=_forget_all)
