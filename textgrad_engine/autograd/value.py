"""What a Variable may hold: text, numbers, and batches of them."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Scalar", "checked", "checked_entries"]

Scalar: TypeAlias = str | int | float


def checked(data: Any) -> Any:
    """The data of a Variable, a batch as a copy.

    Raises:
        TypeError: it is no text, number, or list of these.
        ValueError: a text holds a lone surrogate; the position is named.
    """
    kind = type(data)
    if kind is str:
        if not data.isascii():
            _check_text(data)
        return data
    if kind is int or kind is float or kind is bool:
        return data
    if kind is list:
        return checked_entries(data)
    if isinstance(data, str | int | float):  # a subclass, such as an enum of strings
        if isinstance(data, str):
            _check_text(data)
        return data
    raise TypeError(f"a Variable holds a string, a number, or a list of either, got {kind.__name__}: {data!r:.60}")


def checked_entries(entries: list[Any]) -> list[Any]:
    """A copy of a batch, also of batches inside it.

    Raises:
        TypeError: an entry is no text or number.
        ValueError: a text holds a lone surrogate.
    """
    checked: list[Any] = []
    for item in entries:
        if type(item) is list:
            checked.append(checked_entries(item))
            continue
        if not isinstance(item, str | int | float):
            raise TypeError(f"a batch holds strings or numbers, got {type(item).__name__}: {item!r:.60}")
        if isinstance(item, str) and not item.isascii():
            _check_text(item)
        checked.append(item)
    return checked


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text has a lone surrogate (U+{ord(text[error.start]):04X}) at position {error.start}: no endpoint "
            "accepts it. Decode the source with errors='replace', or remove the character."
        ) from None
