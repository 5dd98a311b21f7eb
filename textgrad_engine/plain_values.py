"""What counts as a number or a truth, and Python's own values for those of other libraries."""

from __future__ import annotations

import contextlib
import numbers
import operator
from enum import Enum
from typing import Any


def is_flag(value: Any) -> bool:
    """Whether a value is True or False, or numpy's."""
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def is_whole(value: Any) -> bool:
    """Whether a value counts as a whole number; True and False do not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value counts as a number; True, False and NaN do not, nor what cannot be added to a float (Decimal)."""
    if isinstance(value, bool) or not hasattr(type(value), "__abs__"):  # a Variable gives a float, too, and may wait
        return False
    try:
        number = float(value + 0.0)
    except (TypeError, ValueError, OverflowError):
        return False
    return number == number


def plain(number: Any) -> int | float:
    """Python's own number for one of another library, as what is written to JSON needs it.

    Example:
        >>> from fractions import Fraction
        >>> plain(3), plain(Fraction(1, 2))
        (3, 0.5)
    """
    return operator.index(number) if is_whole(number) else float(number)


def as_python(value: Any) -> Any:
    """What an array, a column or a scalar of another library holds, in Python's own types; the rest as it is.

    Example:
        >>> import array
        >>> as_python(array.array("i", [1, 2])), as_python("one")
        ([1, 2], 'one')
    """
    if not isinstance(value, type) and callable(to_list := getattr(value, "tolist", None)):
        return to_list()
    return value


def as_own(value: Any) -> Any:
    """Python's own for truths, numbers and arrays of another library, also in lists and dicts; the rest as it is.

    A number of few digits has these digits: 0.1 of 32 bits is 0.1.

    Example:
        >>> import array
        >>> as_own({"sizes": array.array("i", [1, 2]), "day": None})
        {'sizes': [1, 2], 'day': None}
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {key: as_own(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        made = [as_own(each) for each in value]
        return made if isinstance(value, list) else tuple(made)
    found = as_python(value)
    if isinstance(found, list):
        return [as_own(each) for each in value]
    if isinstance(found, float):
        with contextlib.suppress(ValueError):  # of what writes more than its number
            return float(str(value))
    return found if isinstance(found, str | int | float) else value


def of_member(value: Any) -> Any:
    """The text or number that a member of an enum of these is, whose name `str` may give; anything else as it is.

    Example:
        >>> import enum
        >>> of_member(enum.Enum("Tone", {"DRY": "dry"}, type=str).DRY), of_member(3)
        ('dry', 3)
    """
    if not isinstance(value, Enum):
        return value
    return str.__str__(value) if isinstance(value, str) else plain(value) if isinstance(value, int | float) else value
