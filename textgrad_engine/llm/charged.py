"""What calls have used, as far as anybody knows it of one that failed or was not sent."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from textgrad_engine.errors import APIError, ModelError
from textgrad_engine.llm.response import Completion, Usage

E = TypeVar("E", bound=BaseException)
M = TypeVar("M", bound=ModelError)


def is_estimated(completion: Completion) -> bool:
    """Whether what an answer used was counted here, since the endpoint did not say it."""
    return completion.raw is not None and bool(completion.raw.get("usage_estimated"))


def mark(
    error: E,
    *,
    usage: Usage | None = None,
    sent: bool | None = None,
    estimated: bool = False,
    unknown: Usage | None = None,
) -> E:
    """Note on an error what the failed call used, and whether that is an estimate; or whether it was sent at all.

    What it may have used at most, in attempts of which nobody knows whether they were charged, is `unknown`.

    A call that is cancelled may have paid for attempts too, so `asyncio.CancelledError` is marked like any other.
    """
    noted: Any = error
    if usage is not None:
        noted.usage = usage
        noted.usage_estimated = estimated or getattr(error, "usage_estimated", False)
    if sent is not None:
        noted.sent = sent
    if unknown is not None:
        noted.unknown = unknown
    return error


def own_copy(error: M) -> M:
    """The failure of another request, for a caller whose own was not sent because of it.

    Each caller needs an object of its own: notes and tracebacks are added to it on its way up.
    """
    own = copy.copy(error)
    own.__notes__ = [*getattr(error, "__notes__", ())]
    own.usage = own.unknown = None  # it is counted once, where it was paid
    return mark(own, sent=False)


def usage_of(error: BaseException) -> Usage | None:
    """What a failed call is known to have used, or None when nobody knows."""
    found = getattr(error, "usage", None)
    return found if isinstance(found, Usage) else None


def unknown_of(outcome: Completion | BaseException) -> Usage | None:
    """The worst case of attempts of which nobody knows whether they were charged; None where there were none."""
    found = getattr(outcome, "unknown", None)
    return found if isinstance(found, Usage) else None


def costs_nothing(error: BaseException) -> bool:
    """Whether a failed call is neither known to have used anything, nor may have in an attempt before its end."""
    return usage_of(error) is None and unknown_of(error) is None


def plus(one: Usage | None, other: Usage | None) -> Usage | None:
    """The sum of what is known; None when nothing is."""
    return other if one is None else one if other is None else one + other


def was_sent(error: BaseException) -> bool:
    """Whether a failed call may have been charged: False only when the error says or proves that it was not."""
    if isinstance(error, ModelError) and error.sent is not None:
        return error.sent
    return not (isinstance(error, APIError) and error.status is not None and 400 <= error.status < 500)
