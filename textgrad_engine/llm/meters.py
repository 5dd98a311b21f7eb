"""Meters: what calls used, added up by purpose."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from textgrad_engine.attributes import attributes_told
from textgrad_engine.blocks import block
from textgrad_engine.llm.amounts import PICO
from textgrad_engine.llm.request import Purpose
from textgrad_engine.llm.response import Usage
from textgrad_engine.scoped import setting


class _Sum:
    # Money is summed in whole picodollars, so that the total does not depend on the order in which calls end.
    __slots__ = ("cached", "calls", "input", "output", "pico", "reasoning", "unpriced")

    def __init__(self) -> None:
        self.calls = self.input = self.output = self.cached = self.reasoning = self.pico = 0
        self.unpriced = False

    def add(self, usage: Usage) -> None:
        self.calls += usage.calls
        self.input += usage.input_tokens
        self.output += usage.output_tokens
        self.cached += usage.cached_tokens
        self.reasoning += usage.reasoning_tokens
        if usage.dollars is None:
            self.unpriced = True
        elif usage.dollars:
            self.pico += round(usage.dollars * PICO)

    def usage(self) -> Usage:
        return Usage(
            input_tokens=self.input,
            output_tokens=self.output,
            cached_tokens=self.cached,
            reasoning_tokens=self.reasoning,
            calls=self.calls,
            dollars=None if self.unpriced else self.pico / PICO,
        )


@attributes_told
class Meter:
    """Adds up what calls use, by purpose; may be read from any thread while calls run.

    Answers from the cache cost nothing and are counted apart.

    Attributes:
        in_flight: calls asked for that are not over, queued ones included; calls of tools, too. One is over when all
            who `observe` it were told.
        failed: calls that ended with an error.
        cached: calls that were answered from the cache.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[Purpose, _Sum] = {}
        self.in_flight = 0
        self.failed = 0
        self.cached = 0
        self._saved: dict[Purpose, _Sum] = {}

    def __repr__(self) -> str:
        return f"Meter({', '.join(f'{purpose}={usage!r}' for purpose, usage in self.by_purpose.items())})"

    @property
    def saved(self) -> Usage:
        """What the cached answers used when they were paid for."""
        return sum(self.saved_by_purpose.values(), Usage())

    @property
    def saved_by_purpose(self) -> dict[str, Usage]:
        """The same by purpose, in alphabetical order."""
        with self._lock:
            return {purpose: self._saved[purpose].usage() for purpose in sorted(self._saved)}

    @property
    def total(self) -> Usage:
        """What all calls used; `dollars` is None as soon as one of them had no known price."""
        return sum(self.by_purpose.values(), Usage())

    @property
    def by_purpose(self) -> dict[str, Usage]:
        """What the calls used, by the purposes seen so far, in alphabetical order."""
        with self._lock:
            return {purpose: self._sums[purpose].usage() for purpose in sorted(self._sums)}

    def begin(self) -> None:
        """Count a call that begins."""
        with self._lock:
            self.in_flight += 1

    def end(self, purpose: Purpose, usage: Usage | None, *, failed: bool, saved: Usage | None = None) -> None:
        """Count a call that ends, with what it used if that is known, or with what the cache saved."""
        with self._lock:
            self.failed += failed
            if saved is not None:
                self.cached += 1
                self._saved.setdefault(purpose, _Sum()).add(saved)
            if usage is not None:
                self._sums.setdefault(purpose, _Sum()).add(usage)

    def leave(self) -> None:
        """Count a call that is over."""
        with self._lock:
            self.in_flight -= 1


METERS: ContextVar[tuple[Meter, ...]] = ContextVar("textgrad_engine_meters", default=())
"""Those that count the calls made here, the outermost first."""


@block
@contextlib.contextmanager
def meter() -> Iterator[Meter]:
    """Add up every call dispatched inside the block, inner blocks included.

    Example:
        >>> with meter() as m:
        ...     pass
        >>> m.total.calls, m
        (0, Meter())
    """
    made = Meter()
    with setting(METERS, (*METERS.get(), made)):
        yield made


@contextlib.contextmanager
def under_way() -> Iterator[None]:
    """Around what is no call of a model, and is waited for as one is where a run ends: a call of a tool."""
    meters = METERS.get()
    for each in meters:
        each.begin()
    try:
        yield
    finally:
        for each in meters:
            each.leave()
