"""Which conversation with tools is which: each has a place in its example, in the order of the program.

NOTE [The place of a conversation]
    Two parts of a program may ask the same, with tools of one name that do different things; and a program may ask the
    same part twice, to vote. Their requests are equal, and when each is answered depends on the network. So what is
    recorded of a conversation says which one it is: the number of its part among those whose tools have the same names,
    and the number of the conversation among those of that part. Both are counted where the program asks, not when a
    model does, and begin anew in each run of a program on an example, in each item of a `pmap`, and inside of each call
    of a tool. A search runs a program with other texts than its own, several at a time. What a tool gives may depend on
    them, as it may ask the program's own parts, so a place says with which texts, too.

    What is recorded of one conversation is not given to another. In a coroutine, such as an `async` tool, the order in
    which a program asks may depend on who answered first: there parts are told apart, and their conversations are not.
    What was recorded before there were places is that of any.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextvars import ContextVar

from textgrad_engine.callables import name_of
from textgrad_engine.llm import loops
from textgrad_engine.llm.usage import call_item, call_place
from textgrad_engine.scoped import setting
from textgrad_engine.signed import unsigned

Place = tuple[int, ...]
"""What stands for the texts that are tried, 0 for the program's own; then the number of a part and that of one of its
conversations, as far as that is known. () outside of conversations."""

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
            if loops.is_running():
                return (part,)
            number = self._count[key, part] = self._count.get((key, part), -1) + 1
            return part, number


def numbering_places() -> setting[_Places | None]:
    """Inside the block, conversations are counted anew.

    Example:
        >>> with numbering_places(), in_place((print,)):
        ...     call_place.get()
        (0, 0, 0)
    """
    return setting(_places, _Places())


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
    names = tuple([name_of(function) for function in functions])
    with setting(call_place, (_number_of(_texts.get()), *places.next((example, call_item.get(), names), functions))):
        yield


def trying(texts: Iterable[str]) -> setting[tuple[str, ...] | None]:
    """Inside the block, a program is run with these texts in the place of its own."""
    return setting(_texts, tuple(texts))


def same_item(recorded: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    """Whether what was recorded of an item of a `pmap` may be that of another: of no other one.

    Folders of before know of no items, so what is recorded without one may be that of any.
    """
    return recorded in ((), asked)


def same_place(recorded: Place, asked: Place) -> bool:
    """Whether what was recorded of a conversation may be that of another, as far as is known of the two.

    Example:
        >>> same_place((0, 0, 1), (0, 0, 0)), same_place((0, 0), (0, 0, 1)), same_place((), (0, 0, 0))
        (False, True, True)
    """
    return all(known == own for known, own in zip(recorded, asked))


def _number_of(texts: tuple[str, ...] | None) -> int:
    return 0 if texts is None else int.from_bytes(hashlib.sha256(unsigned(repr(texts)).encode()).digest()[:6])


_texts: ContextVar[tuple[str, ...] | None] = ContextVar("textgrad_engine_texts_tried", default=None)
"""None for the program's own. They are hashed where a conversation begins, as most programs have none with tools."""

_places: ContextVar[_Places | None] = ContextVar("textgrad_engine_places", default=None)
