"""How many of some parts, one after the other, an example takes to come out right: a binary search that bears slips."""

from __future__ import annotations

import itertools

GUESSED = 0.05
"""So often an example comes out right without what it needs."""

MOST_STEPS = 24
"""A threshold that so many runs do not find is not found."""

SURE = 0.9
"""A threshold is found when it is this probable."""


class Threshold:
    """Finds the last part that an example needs, from runs with the first few parts of a list.

    With the first `k` parts the example is right when `k` is at least the threshold, and wrong before, but for slips.
    As any answer may be a slip, no half is thrown away: each threshold has a probability, the next run is with as many
    parts as halve it, and the search ends when one has `SURE` (probabilistic bisection; Horstein 1963, Ben-Or and
    Hassidim 2008). One may be asked for again, so that a run with the same parts must draw its slips anew.

    Args:
        parts: how many parts there are; with all of them the example was right, and with none of them wrong.
        slip: how often an example goes wrong although nothing is missing.
        most: at most so many runs.

    Example:
        >>> search = Threshold(100, slip=0.02)
        >>> while (parts := search.next()) is not None:
        ...     search.add(parts, right=parts >= 37)
        >>> search.found
        37
    """

    def __init__(self, parts: int, slip: float, most: int = MOST_STEPS) -> None:
        self._slip, self._left = slip, most
        # That nothing is needed, and the one wrong answer was a slip, is as probable as all else before that answer.
        every = slip + 1 - GUESSED
        self._weights = [slip / every, *[(1 - GUESSED) / every / parts] * parts]

    def next(self) -> int | None:
        """With how many parts the example is to be run; None when the threshold is found, or cannot be."""
        if self.found is not None or not self._left:
            return None
        sums = [*itertools.accumulate(self._weights)][:-1]
        return min(range(len(sums)), key=lambda parts: abs(sums[parts] - 0.5))

    def add(self, parts: int, right: bool) -> None:
        """Tell how the example came out with the first so many parts."""
        self._left -= 1
        enough, too_few = (1 - self._slip, GUESSED) if right else (self._slip, 1 - GUESSED)
        weights = [
            weight * (enough if threshold <= parts else too_few) for threshold, weight in enumerate(self._weights)
        ]
        every = sum(weights)
        self._weights = [weight / every for weight in weights]

    @property
    def found(self) -> int | None:
        """The threshold: 0 when nothing is needed; None while it is not known."""
        best = max(range(len(self._weights)), key=self._weights.__getitem__)
        return best if self._weights[best] >= SURE else None
