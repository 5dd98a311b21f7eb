"""The terminal at stderr: what is said there, and whether it can show more than lines."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textgrad_engine.report.printing import harmless

if TYPE_CHECKING:
    from rich.console import Console

terminal_taken = threading.Lock()
"""Held while bars move: a terminal has room for those of one run."""


def stopping(asking: bool, by: str) -> str:
    """What the first Ctrl-C does, or another signal, in words.

    Args:
        asking: whether models are asked.
        by: what came, and may come again.
    """
    if asking:
        return f"stopping: waiting for answers in flight; {by} again gives them up"
    return f"finishing: no more calls are sent; {by} again ends at once"


def complain(message: str) -> None:
    """Write a line for people to stderr, with nothing in it that a terminal would obey."""
    sys.stderr.write(harmless(message.rstrip("\n")) + "\n")
    sys.stderr.flush()


def moves_its_cursor() -> bool:
    """Whether stderr is a terminal that can move its cursor; on Windows TERM is not set.

    A cell of a notebook (``!textgrad-engine train``) says that it is one, and would show all states of a bar.
    """
    unset = "" if os.name == "nt" else "dumb"
    able = os.environ.get("TERM", unset) not in ("dumb", "unknown") and _OF_A_KERNEL not in os.environ
    return sys.stderr.isatty() and able and not prints_codes()


_OF_A_KERNEL = "JPY_PARENT_PID"
"""Jupyter tells its kernels by it who began them, and so what they begin; a terminal of Jupyter's has it not."""


def prints_codes() -> bool:
    """Whether the terminal is a console of Windows that shows escape codes instead of obeying them."""
    from rich.console import detect_legacy_windows  # heavy, and wanted only in a terminal

    return detect_legacy_windows()


def terminal() -> Console | None:
    """The console of stderr, if that is a terminal that can move its cursor."""
    if not moves_its_cursor():
        return None
    from rich.console import Console  # heavy, and wanted only in a terminal

    return Console(stderr=True, highlight=False)


@contextlib.contextmanager
def cursor_back(console: Console) -> Iterator[None]:
    """Behind the block, in which something moves, the cursor is seen, also where Ctrl-C came while that was taken down.

    At the latest it is when the program ends: a thread that was left behind may not come to the end of the block.
    """

    def show() -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            console.show_cursor(True)

    atexit.register(show)
    try:
        yield
    finally:
        atexit.unregister(show)
        show()
