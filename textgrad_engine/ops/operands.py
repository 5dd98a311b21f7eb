"""What operations on texts and numbers are given: checked, and named one by one."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine import fences
from textgrad_engine.autograd import Variable
from textgrad_engine.checks import in_order
from textgrad_engine.ops.fillers import is_written

_VALUES = (Variable, str, int, float, list, numbers.Number)


def listed(operation: str, values: Any) -> list[Any]:
    """The values of an operation on several.

    Raises:
        TypeError: it is no list of them.
    """
    if isinstance(values, str | Variable | Mapping) or not isinstance(values, Iterable):
        batch = "; a batch, such as losses of func.vmap, goes backward as it is" if isinstance(values, Variable) else ""
        raise TypeError(
            f"{operation}: takes a list of Variables, texts and numbers, got {type(values).__name__} {values!r:.40}; "
            f"write ops.{operation}([a, b]){batch}"
        )
    given = list(in_order(values, f"{operation}: "))
    check_operands(operation, given)
    return given


def check_operands(operation: str, values: Sequence[Any], where: str = "") -> None:
    """Check that values are what text can be made of: None in a prompt is a mistake made elsewhere.

    Raises:
        TypeError: one is not; a template string says so itself where it is read.
    """
    for position, value in enumerate(values):
        if not isinstance(value, _VALUES) and not is_written(value) and not fences.unfilled(value):
            place = where or (f"at position {position}" if len(values) > 1 else "")
            raise TypeError(
                f"{operation}: a value is a text, a number or a Variable (or a batch of these), got "
                f"{type(value).__name__} {value!r:.40} {place}".rstrip()
            )


def numbered(values: Sequence[Any], edits: Sequence[Variable | None] | None) -> list[tuple[str, Any, Variable | None]]:
    """Values by the names of their places, with the edit of each."""
    given = edits or [None] * len(values)
    return list(zip(places_of(len(values)), values, given))


def places_of(count: int) -> list[str]:
    """What the values of an operation are called in feedback on its result."""
    return [f"part {number} of {count}" for number in range(1, count + 1)]
