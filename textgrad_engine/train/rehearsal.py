"""Whether a run is only rehearsed, for an estimate: on a few examples, with placeholders for answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from textgrad_engine.scoped import setting

_rehearsing: ContextVar[bool] = ContextVar("textgrad_engine_rehearsing", default=False)


@contextlib.contextmanager
def rehearsal() -> Iterator[None]:
    """Inside the block answers are placeholders, and examples few.

    So feedback may not get where that of a run does, and nothing is told of the examples.
    """
    with setting(_rehearsing, True):
        yield


def is_rehearsed() -> bool:
    """Whether this is inside of such a block."""
    return _rehearsing.get()
