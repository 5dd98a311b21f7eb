"""How many entries a value has, as far as that is known without waiting for it."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from textgrad_engine.autograd import Variable
from textgrad_engine.dispatch import Call

_pending: WeakKeyDictionary[Call, int] = WeakKeyDictionary()
"""The sizes of batches that are still computed, noted by the operations that make them."""


def size_of(value: Any) -> int | None:
    """How many entries a batch has (a list, or a Variable whose data is one); None for a single value.

    A Variable that is still being computed counts as a batch when the operation that makes it knows so beforehand.

    Example:
        >>> size_of(["a", "b"]), size_of(Variable(["a"])), size_of(Variable("a"))
        (2, 1, None)
    """
    if isinstance(value, list):
        return len(value)
    if not isinstance(value, Variable):
        return None
    if value._layer is not None:
        value = value._lowest()
    call = value._call
    if call is not None and (not call.done or call.failed):
        return _pending.get(call)
    data = value.data
    return len(data) if isinstance(data, list) else None


def note_size(value: Variable, size: int | None) -> None:
    """Remember the size of a batch while it is computed."""
    if size is None:
        return
    if value._layer is not None:
        for part in value._inner if isinstance(value._inner, list) else [value._primal()]:
            note_size(part, size)
    elif value._call is not None:
        _pending[value._call] = size


def common_size(named: list[tuple[str, Any]], call: str) -> int | None:
    """The size of all batches among some values, None when there is none.

    Args:
        named: the values with their names, for the message.
        call: who asks, for the message.

    Raises:
        ValueError: two batches differ in size; both are named.
    """
    first: tuple[str, int] | None = None
    for name, value in named:
        size = size_of(value)
        if size is None:
            continue
        if first is None:
            first = name, size
        elif first[1] != size:
            raise ValueError(
                f"{call}: batches go together entry by entry, and {first[0]} has {first[1]} entries, {name} has {size}"
            )
    return None if first is None else first[1]
