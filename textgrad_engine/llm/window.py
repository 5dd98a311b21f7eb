"""How many calls may be in flight: additive increase, multiplicative decrease, as TCP does with its packets."""

from __future__ import annotations

import math

_SMOOTH = 0.1
"""The weight of one answer in the smoothed latency of its purpose."""

_HOLDS = 1.5
"""Latency holds while the smoothed one is at most this many times the best one seen."""

_DRIFT = 0.01
"""The best latency moves so far towards the smoothed one with each answer: an endpoint may become slower for good."""


class Window:
    """How many calls may be in flight now.

    It rises by a 32nd of the ceiling (at least by one) whenever as many calls as it allows have succeeded while it was
    full and latency held; a narrow window is thus back at its ceiling after at most 32 rounds. It is halved when the
    endpoint is congested, once for all the calls that were under way then (Chiu and Jain, "Analysis of the Increase and
    Decrease Algorithms", 1989; Jacobson, "Congestion Avoidance and Control", 1988). It depends on nothing but what it
    is told, so it is the same in every run on a virtual clock.

    Args:
        start: what it allows in the beginning.
        floor: the least that it allows.
        ceiling: the most; infinite for no limit.

    Example:
        >>> window = Window(8, 1, 64)
        >>> window.congested(sent=1.0, now=2.0, in_flight=8)
        True
        >>> window.room
        4
        >>> for _ in range(4):
        ...     window.succeeded("forward", 1.0, full=True)
        >>> window.room
        6
    """

    def __init__(self, start: float, floor: int, ceiling: float) -> None:
        self.room = start
        self.floor = floor
        self.ceiling = ceiling
        self.step = 8 if ceiling == math.inf else max(1, int(ceiling) // 32)
        self._done = 0
        self._cut_at = -math.inf
        self._latency: dict[str, list[float]] = {}  # of each purpose, for an optimizer's answer takes longer

    def succeeded(self, purpose: str, latency: float, *, full: bool) -> None:
        """Take in an answer.

        Args:
            purpose: why the call was made.
            latency: seconds that it took.
            full: whether as much was in flight as was allowed; else nothing is learned about more.
        """
        known = self._latency.get(purpose)
        if known is None:
            known = self._latency[purpose] = [latency, latency]
        known[0] += _SMOOTH * (latency - known[0])
        known[1] = known[0] if known[0] < known[1] else known[1] + _DRIFT * (known[0] - known[1])
        if not full or self.room >= self.ceiling or known[0] > _HOLDS * known[1]:
            return
        self._done += 1
        if self._done >= self.room:
            self._done = 0
            self.room = min(self.ceiling, self.room + self.step)

    def congested(self, sent: float, now: float, in_flight: int) -> bool:
        """Take in that the endpoint could not keep up with a call; returns whether this is news.

        Args:
            sent: when the call was sent, in seconds.
            now: the time now.
            in_flight: how many calls were under way, this one included; halved where there was no limit so far.
        """
        if sent <= self._cut_at:
            return False  # the window has been cut since it was sent
        self._cut_at = now
        self._done = 0
        self.room = max(self.floor, int(in_flight if self.room == math.inf else self.room) // 2)
        return True
