"""Ctrl-C: once stops sending and lets what is in flight finish; twice raises `KeyboardInterrupt`."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from textgrad_engine.dispatch import Scope
from textgrad_engine.llm.stop import Stop

__all__ = ["GRACE", "stopping_on_interrupt"]

GRACE = 10.0
"""Seconds that answers in flight get after Ctrl-C before they are given up."""


@contextlib.contextmanager
def stopping_on_interrupt(grace: float = GRACE) -> Iterator[Stop]:
    """Inside the block, the first SIGINT sets the `Stop` that is yielded; the second raises as usual.

    Answers that are not there after `grace` seconds are given up. Outside of the main thread, where Python delivers no
    signals, nothing is listened to, and the `Stop` can be set by hand.
    """
    timer: threading.Timer | None = None
    with Stop() as stop, Scope() as scope:

        def on_signal(number: int, frame: FrameType | None) -> None:
            nonlocal timer
            if stop.is_set:
                raise KeyboardInterrupt
            stop.set()
            timer = threading.Timer(grace, scope.cancel)
            timer.daemon = True
            timer.start()

        listening = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, on_signal) if listening else None
        try:
            yield stop
        finally:
            if listening:
                signal.signal(signal.SIGINT, before)
            if timer is not None:
                timer.cancel()
