"""Answers that are under way when a run comes to an end: they are paid for, so they are waited for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from textgrad_engine.dispatch import current_scope, nudge
from textgrad_engine.llm.meters import Meter
from textgrad_engine.llm.stop import Stop
from textgrad_engine.train.interrupt import GRACE


@contextlib.contextmanager
def answers_kept(stop: Stop, used: Meter) -> Iterator[None]:
    """Where the block ends by an error, nothing more is sent, and what was sent is waited for as at Ctrl-C.

    Those answers are paid for, and the process mostly ends with the error: they go on record, or are lost.

    Args:
        stop: the switch of the block's calls.
        used: counts them.
    """
    try:
        yield
    except Exception:
        stop.set()
        wait_for(used, GRACE)
        raise


def wait_for(used: Meter, patience: float = 30.0) -> None:
    """Wait until no call is under way or about to begin, so that every paid answer is counted and recorded."""
    scope, end = current_scope(), time.monotonic() + patience
    while (used.in_flight or (scope is not None and scope.busy)) and time.monotonic() < end:
        nudge()
        time.sleep(0.005)
