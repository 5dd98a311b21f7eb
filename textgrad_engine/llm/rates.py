"""Requests and tokens per minute: what was stated, and what an endpoint says about itself in its headers."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DAY = 86400.0
_LONGEST = 100
"""Characters of a duration; what is longer is none, and looking for its parts could take hours."""

hear: ContextVar[Callable[[Mapping[str, str]], None] | None] = ContextVar("textgrad_engine_hear", default=None)
"""Whoever wants the headers of the response to the call being made; `Limit` sets it, the adapter calls it by `tell`."""


def tell(headers: Mapping[str, str]) -> None:
    """Pass the headers of a response to whoever wants them."""
    if (listener := hear.get()) is not None:
        listener(headers)


class Bucket:
    """A token bucket: holds a tenth of a minute's amount and fills so that no minute passes more than is allowed.

    What is larger than the whole bucket passes when the bucket is full, and leaves a debt that is filled first.

    Args:
        per_minute: how much may pass in any minute.

    Raises:
        ValueError: it is not a number of at least 1.

    Example:
        >>> bucket = Bucket(60)
        >>> [bucket.take(1, now=0.0) for _ in range(7)]
        [True, True, True, True, True, True, False]
        >>> round(bucket.wait(1, now=0.0), 2)
        1.09
    """

    def __init__(self, per_minute: float) -> None:
        if not 1 <= per_minute < math.inf:
            raise ValueError(
                f"an amount per minute must be a number of at least 1, or None for no limit, got {per_minute}"
            )
        self.per_minute = per_minute
        self.size = max(1.0, float(per_minute // 10))
        # One comes back: a full bucket and what flows in during 60 s, that moment excluded, are then just the amount.
        self.rate = (per_minute - self.size + 1) / 60.0
        self._level = self.size
        self._at: float | None = None

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may pass; 0.0 when it may now."""
        self._fill(now)
        missing = min(amount, self.size) - self._level
        return missing / self.rate if missing > 1e-9 else 0.0

    def take(self, amount: float, now: float) -> bool:
        """Let `amount` pass, if it may."""
        if self.wait(amount, now):
            return False
        self._level -= amount
        return True

    def correct(self, difference: float) -> None:
        """Take `difference` more (give back, when negative): a call used that much more than was taken for it."""
        self._level = min(self.size, self._level - difference)

    def _fill(self, now: float) -> None:
        if self._at is not None and now > self._at:
            self._level = min(self.size, self._level + (now - self._at) * self.rate)
        self._at = now


class Allowance:
    """All that an endpoint has said in its headers about what it has left.

    Example:
        >>> allowance = Allowance()
        >>> allowance.hear({"x-ratelimit-remaining-tokens-minute": "50", "x-ratelimit-limit-tokens-minute": "600"},
        ...                requests=0, tokens=0, now=0.0)
        True
        >>> allowance.wait(tokens=100, now=0.0)
        5.0
    """

    def __init__(self) -> None:
        self._kept: dict[str, Learned] = {}

    def hear(self, headers: Mapping[str, str], requests: float, tokens: float, now: float) -> bool:
        """Read a response's headers; False where they say nothing of this.

        Args:
            headers: with lower-case names.
            requests: so many were sent and have not been answered yet.
            tokens: what these count with.
            now: the time in seconds; only differences matter.
        """
        names = [name for name in headers if "ratelimit" in name and _LEFT.fullmatch(name)]
        for name in names:
            learned = self._kept.get(name)
            if learned is None:
                learned = self._kept[name] = Learned(name)
            learned.hear(headers, tokens if learned.of_tokens else requests, now)
        return bool(names)

    def wait(self, tokens: float, now: float) -> float:
        """Seconds until one request of so many tokens should be allowed by all that was said."""
        return max([each.wait(tokens if each.of_tokens else 1, now) for each in self._kept.values()], default=0.0)

    def take(self, tokens: float) -> None:
        """Count a request of so many tokens that is sent now."""
        for each in self._kept.values():
            each.take(tokens if each.of_tokens else 1)


class Learned:
    """One number that an endpoint has said it has left, less what was sent since.

    Args:
        left: the name of the header that says it, one of those that `_LEFT` knows.

    Example:
        >>> learned = Learned("x-ratelimit-remaining-requests")
        >>> learned.hear(
        ...     {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0",
        ...      "x-ratelimit-reset-requests": "1m0s"}, in_flight=0.0, now=0.0)
        >>> learned.wait(1, now=0.0)
        1.0
    """

    def __init__(self, left: str) -> None:
        self.of_tokens = "-tokens" in left
        self._names = tuple(left.replace("remaining", word) for word in ("limit", "remaining", "reset"))
        self._window = next((seconds for name, seconds in _WINDOWS.items() if left.endswith(name)), 60.0)
        self._left = math.inf
        self._limit = math.inf
        self._rate = 0.0
        self._at = 0.0

    def hear(self, headers: Mapping[str, str], in_flight: float, now: float) -> None:
        """Read a response's headers; `in_flight` is what was sent and has not been answered yet."""
        limit, left = (_amount(headers.get(name)) for name in self._names[:2])
        if left is None:
            return
        if limit is None:
            limit = max(left, self._limit if self._limit < math.inf else left)
        reset = _until(headers.get(self._names[2]))
        # The answer to an older request may come late; what is under way may or may not be counted in it. Counting it
        # again errs on the slow side, by what is in flight, and the next answer puts it right.
        self._left, self._limit, self._at = left - in_flight, max(limit, 1.0), now
        missing = max(limit - left, 0.0)
        self._rate = missing / reset if reset and missing > 1e-9 else self._limit / self._window

    def wait(self, amount: float, now: float) -> float:
        """Seconds until there should be `amount` left; 0.0 when there is, or when nothing was ever said."""
        if self._left == math.inf:
            return 0.0
        self._left = min(self._limit, self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        missing = min(amount, self._limit) - self._left
        return missing / self._rate if missing > 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Count what is sent now."""
        self._left -= amount


_LEFT = re.compile(
    r"x-ratelimit-remaining-(?:requests|tokens)"  # OpenAI, Groq, Azure, litellm's proxy, Anthropic's OpenAI endpoint
    r"|x-ratelimit-remaining-(?:requests|tokens)-(?:minute|hour|day)"  # Cerebras
    r"|x-ratelimit-remaining-(?:req|tokens)-minute"  # Mistral, who says no reset
    r"|anthropic-ratelimit-(?:requests|tokens)-remaining"  # Anthropic's own, where a gateway passes them on
)
"""The headers that say what is left; those of the limit and of the reset have these words for "remaining"."""

_WINDOWS = {"-hour": 3600.0, "-day": 86400.0}
"""The seconds that a limit is for; a minute where its name does not end so."""


def _until(text: str | None) -> float | None:
    """Seconds until a reset, which Anthropic says as a moment; None where none within a day is said."""
    found = duration(text)
    if found is None and text and len(text) <= _LONGEST and "T" in text:
        with contextlib.suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(text.strip())
            if moment.tzinfo is not None:
                seconds = max(0.0, moment.timestamp() - time.time())
                return seconds if seconds <= _DAY else None
    return found


def duration(text: str | None) -> float | None:
    """Seconds in a header such as ``"6m0s"``, ``"20ms"`` or ``"1.5"``; None for anything else, and beyond a day.

    Example:
        >>> duration("1m0.5s"), duration("20ms"), duration("3"), duration("soon")
        (60.5, 0.02, 3.0, None)
    """
    if not text or len(text) > _LONGEST:
        return None
    text = text.strip()
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    else:
        try:
            seconds = float(text)
        except ValueError:
            return None
    return seconds if 0 <= seconds <= _DAY else None  # a moment, as seconds since 1970, is beyond a day too


def _amount(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None
