"""The order of a cassette's lines: that in which was asked, whoever was answered first."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from textgrad_engine.llm.replace_file import move


class Line(NamedTuple):
    """Where a line belongs, and where it stands in its file.

    Attributes:
        first: the number of the first call of its example.
        number: of its own call.
        start: its first byte.
        end: the byte behind it.
    """

    first: int
    number: int
    start: int
    end: int


class LineOrder:
    """Lines that are written as answers come, and belong where was asked for them.

    An example's lines stay together, where its first call began: its later calls wait for its answers, and so begin
    sooner or later from time to time. So a cassette that is recorded again differs in what was answered otherwise.

    Example:
        >>> import pathlib, tempfile
        >>> path, order = pathlib.Path(tempfile.mkdtemp(), "lines"), LineOrder()
        >>> numbers = [order.begin(example) for example in ("a", "b", "a")]
        >>> _ = path.write_bytes(b"b1 a1 a2 ")
        >>> for place, (example, number) in enumerate([("b", numbers[1]), ("a", numbers[0]), ("a", numbers[2])]):
        ...     order.add(example, number, 3 * place, 3 * place + 3)
        >>> order.put_right(path)
        >>> path.read_bytes()
        b'a1 a2 b1 '
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._first: dict[str, int] = {}
        self._lines: list[Line] = []

    def begin(self, example: str) -> int:
        """The number of a call that begins now.

        Args:
            example: what it belongs to.
        """
        number = next(self._numbers)
        self._first.setdefault(example, number)
        return number

    def add(self, example: str, number: int, start: int, end: int) -> None:
        """A line was written, behind all others.

        Args:
            example: what its call belonged to.
            number: of the call.
            start: its first byte.
            end: the byte behind it.
        """
        self._lines.append(Line(self._first.setdefault(example, number), number, start, end))

    def put_right(self, path: Path) -> None:
        """Replace the file by one with its lines in order, whole or not at all.

        Raises:
            OSError: it cannot be written, or (on Windows) not be replaced while somebody has it open; it is as it was.
        """
        ordered = sorted(self._lines)
        if ordered == self._lines:
            return
        place = Path(os.path.realpath(path))
        held = place.read_bytes()
        content = held[: self._lines[0].start] + b"".join([held[line.start : line.end] for line in ordered])
        fd, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            try:
                left = content + held[self._lines[-1].end :]
                while left:
                    left = left[os.write(fd, left) :]
                os.fsync(fd)
            finally:
                os.close(fd)
            os.chmod(name, place.stat().st_mode & 0o777)
            move(name, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        self._lines = []
