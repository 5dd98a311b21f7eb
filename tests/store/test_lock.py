"""The lock of a run folder: one writer at a time, and none that is gone."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from textgrad_engine.dispatch import waiting
from textgrad_engine.errors import RunError
from textgrad_engine.llm import locking as file_locks
from textgrad_engine.store import lock as locks
from textgrad_engine.store.lock import Lock, is_locked

HOLDING = """
import sys, pathlib
from textgrad_engine.store.lock import Lock
lock = Lock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_one_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """Also within one process."""
    lock = Lock(tmp_path)
    with pytest.raises(RunError, match=f"process {os.getpid()} is at work on this run; wait for its end, or end it"):
        Lock(tmp_path)
    assert is_locked(tmp_path)
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path).release()


def test_where_an_open_file_cannot_be_removed_it_is_closed_first(tmp_path: Path, windows_files: None) -> None:
    """Else every run folder on Windows kept a file that says nothing."""
    lock = Lock(tmp_path)
    lock.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise on Windows")
def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    """What it leaves is a file, which means nothing by itself."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=f"process {process.pid} is at work"):
            Lock(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / ".lock").is_file()
    assert not is_locked(tmp_path)
    Lock(tmp_path).release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_holds_nothing(tmp_path: Path) -> None:
    """A worker of the user's program may outlive its killed parent."""
    lock = Lock(tmp_path)
    said, say = os.pipe()
    stay, end = os.pipe()
    code = "import os, sys; os.read(int(sys.argv[1]), 1)"
    if (child := os.fork()) == 0:
        os.write(say, b"!")
        os.close(end)
        os.execv(sys.executable, [sys.executable, "-c", code, str(os.dup(stay))])
    os.read(said, 1)
    assert is_locked(tmp_path)
    lock.forget()
    assert not is_locked(tmp_path)
    os.close(end)
    os.waitpid(child, 0)
    for each in (said, say, stay):
        os.close(each)


@pytest.mark.skipif(sys.platform == "win32", reason="nobody removes a file that is open there")
def test_a_file_that_its_holder_removed_is_not_taken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two that came between would each hold a file of their own."""
    first = Lock(tmp_path)
    real, opened = os.open, []

    def late(*args: object, **kwargs: object) -> int:
        opened.append(real(*args, **kwargs))  # type: ignore[arg-type]
        if len(opened) == 1:
            first.release()
        return opened[-1]

    monkeypatch.setattr(os, "open", late)
    second = Lock(tmp_path)
    monkeypatch.undo()
    assert len(opened) == 2
    assert is_locked(tmp_path)
    second.release()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no shared locks")
def test_who_only_looks_keeps_nobody_from_writing_or_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`show` and `report` look at a killed run at any time, also while `resume` takes it."""
    (tmp_path / ".lock").write_text("1")  # of a killed process
    looking, looked, real = threading.Event(), threading.Event(), os.close

    def late(fd: int) -> None:
        looking.set()
        looked.wait(60)
        real(fd)

    def look() -> None:
        seen.append(is_locked(tmp_path))

    seen: list[bool] = []
    monkeypatch.setattr(locks.os, "close", late)  # type: ignore[attr-defined]
    thread = threading.Thread(target=look)
    thread.start()
    assert looking.wait(60)
    monkeypatch.undo()
    assert not is_locked(tmp_path)
    leaping, looks = count(step=3600), count(1)  # the machine is asleep between two looks, and so is who looks

    def pause(_: float) -> None:
        if next(looks) == 3:
            looked.set()
            thread.join()

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: next(leaping)))
    monkeypatch.setattr(file_locks, "time", SimpleNamespace(sleep=pause))
    Lock(tmp_path).release()
    assert (seen, next(looks)) == ([False], 4)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows locks no file that is only read")
def test_whether_a_run_goes_on_is_seen_by_those_who_may_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of a colleague is not said to be killed."""
    real = os.open

    def read_only(path: str, flags: int, *rest: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *rest)

    lock = Lock(tmp_path)
    monkeypatch.setattr(locks.os, "open", read_only)  # type: ignore[attr-defined]
    assert is_locked(tmp_path)
    lock.release()


@pytest.fixture
def windows_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks as `msvcrt` has them: of a byte, for one file alone, told apart by the place where the file is read."""
    fcntl: Any = pytest.importorskip("fcntl")
    if not hasattr(fcntl, "F_OFD_SETLK"):
        pytest.skip("a process cannot lock a byte against itself here")

    def locking(fd: int, mode: int, count: int) -> None:
        assert (mode, count) == (2, 1)
        wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, os.lseek(fd, 0, os.SEEK_CUR), count, 0)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, wanted)
        except OSError:
            raise PermissionError(13, "Permission denied") from None

    there = SimpleNamespace(**{name: getattr(os, name) for name in dir(os)} | {"name": "nt"})
    monkeypatch.setattr(locks, "os", there)
    monkeypatch.setattr(file_locks, "os", there)
    monkeypatch.setattr(file_locks, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking), raising=False)
    monkeypatch.delattr(file_locks, "fcntl")


def test_the_locks_of_windows_keep_others_out_too(
    tmp_path: Path, windows_locks: None, windows_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds one can be read, as what is locked is behind the text of the file."""
    monkeypatch.setattr(file_locks, "_PATIENCE", 0.0)
    lock = Lock(tmp_path)
    assert (tmp_path / ".lock").read_text(encoding="ascii") == str(os.getpid())
    for _ in range(2):
        with pytest.raises(RunError, match=f"process {os.getpid()} is at work on this run"):
            Lock(tmp_path)
        assert is_locked(tmp_path)
    lock.release()
    assert not is_locked(tmp_path)
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path).release()


def test_who_only_looks_is_not_taken_for_a_writer_on_windows(
    tmp_path: Path, windows_locks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are no shared locks there, so one that looks has the lock for a moment."""
    other = os.open(tmp_path / ".lock", os.O_RDWR | os.O_CREAT)
    assert file_locks.taken(other)
    monkeypatch.setattr(file_locks, "time", SimpleNamespace(sleep=lambda _: os.close(other)))
    assert not is_locked(tmp_path)
