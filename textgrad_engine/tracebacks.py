"""Tracebacks without the frames of this library, in notebooks and in pytest.

NOTE [Frames that are hidden]
    IPython and pytest leave a frame out that has a local ``__tracebackhide__``, as JAX marks its own. Of ten frames,
    all with some lines of code, who uses this library wrote the first one, and the error says the rest. So where an
    error leaves the library, its frames are marked, and those of Python's that wait for it. IPython shows the last
    frame all the same, and how many it skips. All are shown of an error that Python raised in the library itself: that
    is a fault of the library, and whoever reports it needs the place; Ctrl-C and a cancelled wait are none. Python,
    `traceback`, ``pytest --full-trace`` and ``InteractiveTB.skip_hidden = False`` of IPython show all of them in any
    case.
"""

from __future__ import annotations

import inspect
import opcode
import sys
from types import FrameType, TracebackType

PACKAGE = __name__.partition(".")[0]
_WAITED_IN = (PACKAGE, "asyncio", "concurrent", "contextlib", "queue", "threading")


def hide(error: BaseException, *, boundary: str) -> None:
    """Mark the frames of the library in the traceback of an error that leaves it; see NOTE [Frames that are hidden].

    Args:
        error: that the caller of this has caught, and raises again.
        boundary: the module, or the package, whose functions a user calls, of which the caller is one.

    Example:
        >>> def public():
        ...     try:
        ...         raise ValueError("of the library, if this were in it")
        ...     except BaseException as error:
        ...         hide(error, boundary="textgrad_engine.public")
        ...         raise
    """
    frame: FrameType | None = sys._getframe(1)
    own = []
    while frame is not None and _module(frame).startswith(boundary):
        own.append(frame)
        frame = frame.f_back
    if frame is not None and _part_of(frame, (PACKAGE,)):  # nobody's boundary: the library asks itself
        return
    entries = _entries(error)
    here = bool(entries) and _part_of(entries[-1].tb_frame, (PACKAGE,)) and not _is_raised(entries[-1])
    if here and not _is_meant(error):
        return
    for each in (*own, *(entry.tb_frame for entry in entries)):
        if _part_of(each, _WAITED_IN) and each.f_code.co_flags & inspect.CO_OPTIMIZED:
            _mark(each)


def _mark(frame: FrameType) -> None:
    names = frame.f_locals
    if type(names) is dict:  # before Python 3.13, a copy, in which the error would keep itself alive
        names.clear()
    names["__tracebackhide__"] = True


def _entries(error: BaseException) -> list[TracebackType]:
    found, entry = [], error.__traceback__
    while entry is not None:
        found.append(entry)
        entry = entry.tb_next
    return found


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _part_of(frame: FrameType, packages: tuple[str, ...]) -> bool:
    return _module(frame).partition(".")[0] in packages


def _is_meant(error: BaseException) -> bool:
    """Whether an error is none that Python has of wrong code: Ctrl-C, a cancelled wait, or one of the library's."""
    return not isinstance(error, Exception) or type(error).__module__.partition(".")[0] == PACKAGE


def _is_raised(entry: TracebackType) -> bool:
    """Whether an error was raised by a `raise` of the code, and not by Python in an expression of it."""
    return entry.tb_frame.f_code.co_code[entry.tb_lasti] == opcode.opmap["RAISE_VARARGS"]
