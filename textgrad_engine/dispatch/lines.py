"""Lines of the user's code, for messages."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType
from typing import NamedTuple

__all__ = ["Line", "caller_line"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Line(NamedTuple):
    """A line of code; its text is ``file:line``."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


def caller_line() -> Line | str:
    """The innermost line outside this package on the stack; "" when there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = _OURS.get(file)
        if ours is None:
            ours = _OURS[file] = file.startswith(_PACKAGE)
        if not ours:
            return _line(file, frame.f_lineno)
        frame = frame.f_back
    return ""


@functools.lru_cache(maxsize=4096)
def _line(file: str, number: int) -> Line:
    return Line(file, number)  # one object for all calls of a loop


_OURS: dict[str, bool] = {}
"""Whether the code of a file belongs to this package."""
