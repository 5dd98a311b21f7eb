"""Scores as numbers: the scale that they are on, which of them are a success, and how those of a batch become one."""

from __future__ import annotations

import contextlib
import math
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.plain_values import is_number, plain
from textgrad_engine.wording import told

Reduction: TypeAlias = Callable[[list[Any]], Any] | None
"""Makes one score of a batch's scores; None leaves the list."""


def is_success(score: Any, success_fn: Callable[[Any], Any]) -> bool:
    """What the user's function says of a score; one that takes a list of scores is asked about a list with one.

    Args:
        score: of one entry, so that feedback on each entry depends on its own score.
        success_fn: the function.
    """
    try:
        return bool(success_fn(score))
    except TypeError as error:
        try:
            return bool(success_fn([score]))
        except TypeError:
            raise error from None


def all_succeed(scores: list[Any], success_fn: Callable[[Any], Any]) -> bool:
    """What a function that takes a list says of all scores of a batch; False for one that takes a number.

    The latter is asked about each score by `is_success`. The two are told apart by the TypeError that a function of a
    list raises for a number.

    Args:
        scores: of all entries.
        success_fn: the user's function.
    """
    if not scores:
        return False
    try:
        success_fn(scores[0])
        return False
    except TypeError:
        try:
            return bool(success_fn(list(scores)))
        except TypeError:
            return False  # `is_success` raises the error that says why


def successes(scores: list[Any], success_fn: Callable[[Any], Any]) -> list[bool]:
    """Which entries of a batch need no change."""
    if len(scores) > 1 and all_succeed(scores, success_fn):
        return [True] * len(scores)
    return [is_success(score, success_fn) for score in scores]


def as_scale(scale: Any) -> tuple[float, float]:
    """A scale as two of Python's own numbers; any pair of numbers is one, such as numpy's arrays of two.

    Raises:
        TypeError: it is none.
        ValueError: it does not run from a lower to a higher score.
    """
    in_order = hasattr(scale, "__getitem__") and hasattr(scale, "__len__") and not isinstance(scale, str | Mapping)
    ends = list(scale) if in_order and len(scale) == 2 else []
    if not ends or not all(map(is_number, ends)):
        raise TypeError(f"a scale is the lowest and the highest score, such as (0, 10), got {told(scale)}")
    low, high = map(plain, ends)
    if not low < high:
        raise ValueError(f"a scale runs from the lowest to the highest score, got {(low, high)}")
    return low, high


def reduced(scores: list[Any], reduction: Reduction) -> Any:
    """The score of a batch.

    Raises:
        TypeError: the reduction made something else than a number, a text or a list.
    """
    if reduction is None:
        return scores
    made = reduction(scores)
    if isinstance(made, str | list):
        return made
    score = plain_number(made)
    if score is None:
        raise TypeError(
            f"reduction_fn makes one number of the scores of a batch, and gave {type(made).__name__} {made!r:.60}"
        )
    return score


def decimal_of(score: float) -> float:
    """The decimal number that a score stands for, without what floats lose behind its last digits.

    Products with weights add up to a little less than full marks, or a little more. Whether an answer is right, whether
    scores are 0 or 1 alone, and whether they are within their scale, must not hang on that.

    Example:
        >>> 0.7 + 0.2 + 0.1, decimal_of(0.7 + 0.2 + 0.1), decimal_of(0.99999999), decimal_of(2 / 3) == 2 / 3
        (0.9999999999999999, 1.0, 0.99999999, True)
    """
    near = round(score, 9) if isinstance(score, float) else score
    return near if near != score and math.isclose(near, score, rel_tol=1e-13) else score


_LARGEST = int(sys.float_info.max)


def plain_number(value: Any) -> int | float | None:
    """What numbers of other libraries (numpy, torch) stand for, as one of Python's; None for what is no number.

    Nor is a whole number one here that is larger than any float, as means are made of scores.
    """
    if type(value) in (int, float, bool):
        return _within_floats(value)
    if isinstance(value, str | bytes | Variable) or not hasattr(value, "__float__"):  # numpy's texts have it
        return None
    for of_python in (operator.index, float):
        # torch raises the last one for several numbers
        with contextlib.suppress(TypeError, ValueError, OverflowError, RuntimeError):
            return _within_floats(of_python(value))
    return None


def _within_floats(number: float) -> int | float | None:
    return number if -_LARGEST <= number <= _LARGEST or isinstance(number, float) else None
