"""What a concept of the support trade is: a topic that tickets have, with the words that give it away."""

from __future__ import annotations

from dataclasses import dataclass

QUEUES = ("account", "billing", "returns", "shipping", "technical", "trust")
"""The names that queues have when the instructions do not name any."""

BROAD, USUAL, SHARP, GRAVE = 1, 2, 3, 4
"""How much a concept stands out: from one that most mail touches to one that nobody overlooks."""


@dataclass(frozen=True)
class Concept:
    """One thing that tickets are about.

    Attributes:
        name: its identifier.
        queue: where somebody who knows no house rules would send it.
        weight: how much it stands out among other concepts of the same ticket (`BROAD` to `GRAVE`).
        phrases: ways to say it in English, in the plural; its own patterns recognise each.
        patterns: regular expressions on folded text (lower case, no accents, ``ss`` for ``ß``).
    """

    name: str
    queue: str
    weight: int
    phrases: tuple[str, ...]
    patterns: tuple[str, ...]
