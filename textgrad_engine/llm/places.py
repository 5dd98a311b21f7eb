"""Which conversation with tools is which: each has a place in its example, in the order of the program.

NOTE [The place of a conversation]
    Two parts of a program may ask the same, with tools of one name that do different things; and a program may ask the
    same part twice, to vote. Their requests are equal, and when each is answered depends on the network. So what is
    recorded of a conversation says which one it is: the number of its part among those whose tools have the same names,
    and the number of the conversation among those of that part. Both are counted where the program asks, not when a
    model does, and begin anew in each run of a program on an example, in each item of a `pmap`, and inside of each call
    of a tool.

    What is recorded of one part is never given to another. Of one part, a conversation gets its own, and where nothing
    is on record of that, what is left of an equal one. What was recorded before there were places is that of any.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar

from textgrad_engine.llm.usage import call_item, call_place

__all__ = ["Place", "in_place", "numbering_places", "same_part"]

Place = tuple[int, ...]
"""The number of a part and that of one of its conversations; () outside of conversations with tools."""

Functions = tuple[Callable[..., object], ...]


class _Places:
    """The places that conversations were given so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[Hashable, dict[Functions, int]] = {}
        self._count: dict[tuple[Hashable, int], int] = {}

    def next(self, key: Hashable, functions: Functions) -> Place:
        with self._lock:
            parts = self._parts.setdefault(key, {})
            part = parts.setdefault(functions, len(parts))
            number = self._count[key, part] = self._count.get((key, part), -1) + 1
            return part, number


@contextlib.contextmanager
def numbering_places() -> Iterator[None]:
    """Inside the block, conversations are counted anew.

    Example:
        >>> with numbering_places(), in_place((print,)):
        ...     call_place.get()
        (0, 0)
    """
    token = _places.set(_Places())
    try:
        yield
    finally:
        _places.reset(token)


@contextlib.contextmanager
def in_place(functions: Functions, example: str = "") -> Iterator[None]:
    """Inside the block, calls belong to a conversation that begins now, where such are counted.

    Args:
        functions: its tools.
        example: what it belongs to.
    """
    places = _places.get()
    if places is None:
        yield
        return
    names = tuple([function.__name__ for function in functions])
    token = call_place.set(places.next((example, call_item.get(), names), functions))
    try:
        yield
    finally:
        call_place.reset(token)


def same_part(recorded: Place, asked: Place) -> bool:
    """Whether what was recorded of a conversation may be that of another; see NOTE [The place of a conversation].

    Example:
        >>> same_part((0, 1), (0, 0)), same_part((1, 0), (0, 0)), same_part((), (0, 0))
        (True, False, True)
    """
    return not recorded or not asked or recorded[0] == asked[0]


_places: ContextVar[_Places | None] = ContextVar("textgrad_engine_places", default=None)
