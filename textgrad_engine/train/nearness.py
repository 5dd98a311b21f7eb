"""`Nearness`: which examples are about the same as some others, by the rarer words that they share."""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine.llm.conversation import in_words, is_conversation
from textgrad_engine.llm.images import is_part
from textgrad_engine.optim.words import terms_of


class Nearness:
    """Examples in the order of how much they have in common with some others.

    Of each example the numbers of its words are held, in the order of the words: four bytes for each different one.

    Args:
        others: the fields of the examples that `by` is asked about.
        among: the fields of those that it puts in order; what is rare among them counts.

    Example:
        >>> among = [{"q": "A parcel with glass"}, {"q": "A parcel with tea"}, {"q": "A letter"}]
        >>> Nearness([{"q": "Is tea a liquid?"}], among).by([0], [0, 1, 2])
        [1, 0, 2]
    """

    def __init__(self, others: Sequence[Mapping[str, Any]], among: Sequence[Mapping[str, Any]]) -> None:
        self._others = others
        met: dict[str, int] = defaultdict(itertools.count().__next__)
        found = [array("I", map(met.__getitem__, _words(fields))) for fields in among]
        seen = Counter(number for numbers in found for number in numbers)
        order = {word: number for number, word in enumerate(sorted(met))}
        self._numbers = order
        self._rarity = [math.log((1 + len(among)) / (1 + seen[met[word]])) for word in order]
        renamed = [order[word] for word in met]
        self._among = [array("I", sorted(renamed[number] for number in numbers)) for numbers in found]
        self._held: dict[int, array[int]] = {}

    def by(self, positions: Sequence[int], among: Sequence[int]) -> list[int]:
        """Those examples `among`, the one first that has most in common with the others at these positions."""
        asked = Counter(number for position in positions for number in self._of(position))
        weights = [0.0] * len(self._rarity)
        for number, count in asked.items():
            weights[number] = self._rarity[number] * min(count, 3)

        def shared(position: int) -> float:
            found = self._among[position]
            return sum(map(weights.__getitem__, found)) / math.sqrt(len(found) or 1)

        return sorted(among, key=lambda position: (-shared(position), position))

    def _of(self, position: int) -> array[int]:
        """The numbers of another example's words, where they have any."""
        if (held := self._held.get(position)) is None:
            numbers = (self._numbers.get(word) for word in _words(self._others[position]))
            held = self._held[position] = array("I", sorted(number for number in numbers if number is not None))
        return held


def _words(fields: Mapping[str, Any]) -> set[str]:
    return set[str]().union(
        *[
            terms_of(in_words(value) if is_conversation(value) else str(value))
            for value in fields.values()
            if not is_part(value)
        ]
    )
