"""Lines of the user's code, for messages."""

from __future__ import annotations

import functools
import os
import sys
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple

_PYTHON = os.path.dirname(os.__file__)
_NOBODYS = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    os.path.join(_PYTHON, "threading.py"),
    os.path.join(_PYTHON, "concurrent", ""),
    os.path.join(_PYTHON, "asyncio", ""),
    "<frozen ",
)
"""Where code lies that no user wrote: this package, and what Python begins threads and tasks with."""

_OF_KERNELS = tuple(
    os.path.join(os.sep, "site-packages", name)
    for name in (
        "IPython" + os.sep,
        "ipykernel" + os.sep,
        "ipykernel_launcher.py",
        "tornado" + os.sep,
        "traitlets" + os.sep,
    )
)
"""Within where packages lie, what a notebook begins its cells and tasks with."""


class Line(NamedTuple):
    """A line of code; its text is ``file:line``, of a notebook ``Cell In[3], line 1``, as IPython tells it."""

    file: str
    number: int

    def __str__(self) -> str:
        cell = _cell(self.file)
        return f"{cell}, line {self.number}" if cell else f"{self.file}:{self.number}"


def _cell(file: str) -> str:
    """What IPython calls the cell whose code has this for its file; "" where it is that of none."""
    found: Any = sys.modules.get("IPython")  # where there are cells, it was imported
    shell = None if found is None else found.get_ipython()
    name = getattr(getattr(shell, "compile", None), "format_code_name", None)  # since IPython 8
    told = None if name is None else name(file)
    return "" if told is None else " ".join(told)


asked_from: ContextVar[Line | str | None] = ContextVar("textgrad_engine_asked_from", default=None)
"""The line that asked for the backward pass that is under way here."""


begun_from: ContextVar[Line | str] = ContextVar("textgrad_engine_begun_from", default="")
"""The line that began the work of this thread; whoever hands work to a thread sets it in the work's context."""


def caller_line(*, of_pass: bool = False) -> Line | str:
    """The innermost line of user code on the stack; where a thread has none, the line that began its work, or "".

    Args:
        of_pass: nobody's code but ours lies between here and the backward pass that is under way, if one is: that one
            knows its line, and the frames from here to there need not be made, which takes a few microseconds.
    """
    if of_pass and (line := asked_from.get()) is not None:
        return line
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = _OURS.get(file)
        if ours is None:
            ours = _OURS[file] = file.startswith(_NOBODYS) or any(part in file for part in _OF_KERNELS)
        if not ours:
            return _line(file, frame.f_lineno)
        frame = frame.f_back
    return begun_from.get()


@functools.lru_cache(maxsize=4096)
def _line(file: str, number: int) -> Line:
    return Line(file, number)  # one object for all calls of a loop


_OURS: dict[str, bool] = {}
"""Whether the code of a file is nobody's."""
