"""Amounts of what budgets limit: calls, tokens and money."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PICO = 10**12
"""Picodollars in a dollar."""

UNLIMITED = 2**200
"""Stands for no limit among whole numbers."""


@dataclass
class Amount:
    """Calls, tokens and money that are reserved or used.

    Attributes:
        calls: requests.
        tokens: input and output together.
        pico: picodollars (millionths of a millionth of a dollar).
    """

    # Whole numbers only (money in picodollars): sums are exact, whatever the order in which calls end.
    calls: int = 0
    tokens: int = 0
    pico: int = 0

    def add(self, other: Amount, sign: int = 1) -> None:
        """Add another amount; with ``sign=-1``, take it away."""
        self.calls += sign * other.calls
        self.tokens += sign * other.tokens
        self.pico += sign * other.pico

    def within(self, most: Amount) -> bool:
        """Whether it is no more of anything than another amount."""
        return self.calls <= most.calls and self.tokens <= most.tokens and self.pico <= most.pico

    def by(self, pick: Callable[[int, int], int], other: Amount) -> Amount:
        """Of each sort what a function such as `max` picks of the two."""
        return Amount(pick(self.calls, other.calls), pick(self.tokens, other.tokens), pick(self.pico, other.pico))
