"""The three standard streams of the program, whatever became of them: closed, full, or with nobody who reads."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO, TypeVar

UNREAD = 141
"""The exit code of a program that whoever reads its output has left, as shells tell of one that SIGPIPE ended."""

_OF_A_PIPE = (errno.EPIPE, errno.EINVAL) if os.name == "nt" else (errno.EPIPE,)
"""What a pipe that nobody reads any more gives; to Windows' C library it is mostly an invalid argument (bpo-35754)."""

T = TypeVar("T")


def open_streams() -> None:
    """Open what the shell has closed of the three standard streams, and keep stderr from ending what is paid for.

    A file that is opened where one of them was closed would get what is written to that stream. A closed stdout stays
    None, so that `write` can say so.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
    stream: Any = _Stderr(_nowhere() if sys.stderr is None else sys.stderr)
    sys.stderr = stream
    if sys.stdout is not None:
        out: Any = _Stdout(sys.stdout)
        sys.stdout = out


@contextlib.contextmanager
def stdout_apart() -> Iterator[Any]:
    """Inside the block, stdout for who is given it: what else is written there, by other processes too, is on stderr.

    A process that a metric or a tool begins, and a library that is not Python's, write to the descriptor.
    """
    out = sys.stdout
    if not isinstance(out, _Stdout):  # closed, or in the place of the program's own, which no other process has
        with contextlib.redirect_stdout(sys.stderr):
            yield out
        return
    out.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        stream = open(kept, "w", encoding=out.encoding, errors=out.errors, closefd=False)  # noqa: SIM115
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield _Stdout(stream, out.failures)
        finally:
            with contextlib.suppress(OSError):  # it is among the failures
                stream.close()
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def ending(run: Callable[[], Any]) -> int:
    """Run a program that ends with `SystemExit`, and give its exit code, with what became of stdout counted in.

    Where whoever reads stdout has gone, that is `UNREAD`, and nothing is said: they have read enough. Where stdout
    cannot be written otherwise, and nobody has said so, it is said, and the code is 1.

    Args:
        run: the program; `open_streams` was called before.
    """
    out, code = sys.stdout, 0
    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except OSError as error:
        if not isinstance(out, _Stdout) or error not in out.failures:
            raise
    if not isinstance(out, _Stdout):
        return code
    said = bool(code and out.failures)
    with contextlib.suppress(OSError):  # it is among the failures
        out.flush()
    if not out.failures:
        return code
    with _nowhere() as nowhere:
        os.dup2(nowhere.fileno(), 1)  # what is left in buffers goes there when Python ends
    if is_unread(out.failures[0]):
        return UNREAD if code in (0, 1) else code
    if not said:
        sys.stderr.write(f"error: {unprintable(out.failures[0])}\n")
    return code or 1


def is_unread(error: BaseException) -> bool:
    """Whether stdout cannot be written because whoever read it has gone."""
    return isinstance(error, OSError) and error.errno in _OF_A_PIPE


def unprintable(error: OSError) -> str:
    """What is said where stdout cannot be written."""
    return f"the result cannot be printed: {(error.strerror or str(error)).lower()}"


class _Stdout:
    """Stdout, or the bytes below it, that remembers how writing has failed."""

    def __init__(self, stream: Any, failures: list[OSError] | None = None) -> None:
        self._stream = stream
        self.failures: list[OSError] = [] if failures is None else failures

    def write(self, text: Any) -> int:
        return self._remembering(lambda: int(self._stream.write(text)))

    def flush(self) -> None:
        self._remembering(self._stream.flush)

    @property
    def buffer(self) -> _Stdout:
        return _Stdout(self._stream.buffer, self.failures)

    def _remembering(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except OSError as error:
            self.failures.append(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Stderr:
    """Stderr until it cannot be written, as who reads it has gone or the disk is full; nothing is said from then on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            self._stream = _nowhere()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._stream = _nowhere()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
