"""The scores that a loss gives: from where to where they go, and each as a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.callables import name_of
from textgrad_engine.errors import ScoreError
from textgrad_engine.nn import Module
from textgrad_engine.ops.scores import as_scale, decimal_of

_OURS = __name__.partition(".")[0] + "."

_LARGEST = 1e100
"""No score is larger: squares of some are added up, which ends at 1e308."""


def scale_of(loss: Callable[..., Any]) -> tuple[float, float] | None:
    """The lowest and the highest score that a loss names as its `scale`, as nn.Judge does; None for others.

    An end that no score comes near, such as the largest number there is, is none, and so infinite.

    Raises:
        TypeError: it names something else than two numbers.
        ValueError: these do not run from a lower to a higher one.

    Example:
        >>> from textgrad_engine import nn
        >>> scale_of(nn.Judge("Is it polite?", scale=(1, 5))), scale_of(nn.ExactMatch())
        ((1.0, 5.0), None)
    """
    scale = getattr(loss, "scale", None)
    if isinstance(scale, str | Mapping | Variable) or not all(
        hasattr(type(scale), n) for n in ("__len__", "__getitem__")
    ):
        return None  # a factor, say, that happens to have that name
    try:
        ends = as_scale(scale)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the `scale` of the loss {_called(loss)}: {error}") from None
    low, high = (end if abs(end) <= _LARGEST else math.copysign(math.inf, end) for end in ends)
    return float(low), float(high)


def held_to(loss: Callable[..., Any]) -> tuple[float, float] | None:
    """The scale that each score of a user's own loss must be on; None for the library's, which look by themselves."""
    return None if type(loss).__module__.startswith(_OURS) else scale_of(loss)


def _called(loss: Callable[..., Any]) -> str:
    return type(loss).__name__ if isinstance(loss, Module) else name_of(loss)


def as_score(loss: Variable) -> float:
    """The number that a loss gave; of several with weights, `decimal_of` their sum.

    Raises:
        ScoreError: it gave text, or a number that no mean can be taken of.
    """
    data = loss.data
    if isinstance(data, int | float):
        if not abs(data) <= _LARGEST:
            raise ScoreError(
                f"the loss gave {data!s:.40}, which is no score: a mean, and how sure it is, are worked out of numbers "
                f"up to {_LARGEST:g}, so bound what it gives, or give the logarithm"
            )
        return decimal_of(float(data))
    raise ScoreError(
        f"a score must be a number, and this loss gave {type(data).__name__}. A TextLoss only gives words: "
        "score with nn.ExactMatch, nn.Metric or nn.Judge."
    )
