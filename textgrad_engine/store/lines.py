"""Files of lines in a run folder, which only grow."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

from textgrad_engine.llm.lines import append_line
from textgrad_engine.store.calls import canonical_order
from textgrad_engine.store.files import write_atomically
from textgrad_engine.untrusted_files import UNLINKED


def open_lines(path: Path, flags: int = 0) -> int:
    """The descriptor of a file to whose end lines are written, made where it is missing.

    Args:
        path: the file.
        flags: for `os.open`, beside what that takes.

    Raises:
        OSError: it cannot be opened; or it is a link, as what is written into a run folder is to stay in it.
    """
    for_lines = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    return os.open(path, for_lines | UNLINKED | flags, 0o666)


class Lines:
    """A file of JSON lines that only grows; a killed run tears the last at most."""

    def __init__(self, path: Path, *, new: bool = True) -> None:
        self.path = path
        self._open(os.O_EXCL if new else 0)

    def _open(self, flags: int) -> None:
        self._fd = open_lines(self.path, flags)
        self.close = weakref.finalize(self, os.close, self._fd)

    def append(self, line: bytes) -> None:
        """Write one line, without its line break; where the file was closed, it is opened for that."""
        if self.close.alive:
            append_line(self._fd, line, self.path)
            return
        self._open(0)
        try:
            append_line(self._fd, line, self.path)
        finally:
            self.close()

    def sort(self) -> None:
        """Put the lines into their canonical order; further ones can still be appended."""
        self.close()  # before the replacement, which Windows refuses for an open file
        try:
            write_atomically(self.path, self._sorted())
        finally:
            self._open(0)

    def _sorted(self) -> Iterator[bytes]:
        """The whole lines in order, one after the other: a file may hold more than there is memory."""
        with self.path.open("rb") as file:
            places = []
            begin = 0
            for line in file:
                if line.endswith(b"\n"):
                    places.append((canonical_order(json.loads(line)), begin))
                begin += len(line)
            for _, begin in sorted(places):
                file.seek(begin)
                yield file.readline()
