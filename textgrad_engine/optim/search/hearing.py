"""Feedback that lanes share: each hears its own examples, and answers what all of them heard about one part of it.

Lanes that are begun together with different examples hear much the same, and each would write the same lines. So what
they hear is divided by what it says, before any of them asks for a patch: feedback in like words goes to one lane,
with all the examples that it came from. No lane depends on who is first: the division waits for all.

Where several prompts of a program are spoken of, nothing is divided. An edit of one is often worth something only
beside an edit of another, and what is said to each of them is in words of its own: they would end up in different
lanes, where each loses its race. (Of programs of two prompts four lanes found 68% of the way so, and 98% undivided.)
"""

from __future__ import annotations

import heapq
import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.search.objective import FeedbackOn
from textgrad_engine.optim.words import terms_of

Share = Callable[[Callable[[], FeedbackOn]], FeedbackOn]
"""Called with what gets a lane's own feedback; gives the part of the feedback of all lanes that it is to answer."""

LIKE = 0.1
"""What has less in common than this (cosine of the rarer words, from 0 to 1) is not joined."""

ROOM = 2
"""A group of like feedback may be so many times as large as an equal part: one lesson is not to be cut in two."""

Unit = list[tuple[int, Variable]]
"""What was said at one example, each with the number of the parameter that it reached."""


class Hearing:
    """What some lanes hear, divided among them.

    Each of them takes a `place` first, and `begin` says that there are no more. Each calls `share` on a thread of its
    own, which waits for the others; so there must not be more of them than threads.

    Args:
        most: so many places.

    Example:
        >>> hearing = Hearing(1)
        >>> place = hearing.place()
        >>> hearing.begin()
        >>> hearing.share(place, lambda: FeedbackOn((0.0,), ((Variable("Be brief."),),))).gradients[0][0].data
        'Be brief.'
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._places = 0
        self._told: dict[int, FeedbackOn | None] = {}
        self._begun = self._given_up = False
        self._parts: dict[int, list[tuple[tuple[Variable, ...], ...]]] = {}  # by how many were heard by then
        self._changed = threading.Condition()

    @property
    def full(self) -> bool:
        """Whether no place is left."""
        return self._places >= self._most

    def place(self) -> int:
        """Take a place for one more lane."""
        self._places += 1
        return self._places - 1

    def begin(self) -> None:
        """No lane takes a place any more."""
        with self._changed:
            self._begun = True
            self._changed.notify_all()

    def give_up(self) -> None:
        """Nobody is to wait for places that were taken, as what would have taken them up may not have begun."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def share(self, place: int, hear: Callable[[], FeedbackOn]) -> FeedbackOn:
        """Hear, wait for the others, and get what the lane at this place is to answer.

        Args:
            place: the lane's place.
            hear: gets the feedback on the lane's own examples; others go on without it when it raises.

        Returns:
            The lane's own scores and problems, with its part of the feedback of all.
        """
        own: FeedbackOn | None = None
        try:
            own = hear()
        finally:
            with self._changed:
                self._told[place] = own
                self._changed.notify_all()
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or (self._begun and len(self._told) >= self._places))
            told = [heard.gradients for _, heard in sorted(self._told.items()) if heard is not None]
            if self._places < 2 or _spoken_to(told) > 1:
                return own
            if len(self._told) not in self._parts:  # the first to wake divides it, for all
                self._parts[len(self._told)] = divided(told, self._places)
            return replace(own, gradients=self._parts[len(self._told)][place])


def _spoken_to(told: Sequence[Sequence[Sequence[Variable]]]) -> int:
    """How many parameters anything was said to."""
    spoken = {number for gradients in told for number, gradient in enumerate(gradients) if any(map(_says, gradient))}
    return len(spoken)


def _says(said: Variable) -> bool:
    return bool(str(said.data).strip())


def divided(told: Sequence[Sequence[Sequence[Variable]]], parts: int) -> list[tuple[tuple[Variable, ...], ...]]:
    """Divide feedback into parts of about the same size, of which each is about few things.

    What was said at one example stays together, and so does what says the same. The two groups that have most in common
    by their rarer words are joined, again and again, as long as none is much larger than a part; the largest of them
    are dealt out first, each to the part that has least.

    Args:
        told: from each lane, for each parameter, the feedback on it.
        parts: how many.

    Returns:
        For each part, for each parameter, its feedback. Parts are empty where little was said.
    """
    units = _units(told)
    words = [_words(unit) for unit in units]
    found: list[list[int]] = [[] for _ in range(parts)]
    sizes = [0] * parts
    groups = [
        (len({words[n] for n in group}), group) for group in _groups(words, math.ceil(ROOM * len(set(words)) / parts))
    ]
    for size, group in sorted(groups, key=lambda pair: (-pair[0], pair[1])):
        least = sizes.index(min(sizes))
        found[least] += group
        sizes[least] += size
    several = range(max((len(gradients) for gradients in told), default=0))
    return [
        tuple(tuple(said for n in sorted(own) for to, said in units[n] if to == parameter) for parameter in several)
        for own in found
    ]


def _units(told: Sequence[Sequence[Sequence[Variable]]]) -> list[Unit]:
    units: dict[tuple[int, str], Unit] = {}
    for lane, gradients in enumerate(told):
        for parameter, gradient in enumerate(gradients):
            for place, said in enumerate(gradient):
                if _says(said):
                    at = said.source.example if said.source is not None else None
                    units.setdefault((lane, at or f"{parameter}/{place}"), []).append((parameter, said))
    return list(units.values())


def _words(unit: Unit) -> tuple[str, ...]:
    return tuple(sorted({word for _, said in unit for word in terms_of(str(said.data))}))


def _groups(words: Sequence[tuple[str, ...]], most: int) -> list[list[int]]:
    """Positions of what is alike, joined by the mean likeness of two groups; the same words count once in a size."""
    same: dict[tuple[str, ...], list[int]] = {}
    for position, own in enumerate(words):
        same.setdefault(own, []).append(position)
    kinds = list(same)
    groups = [[number] for number in range(len(kinds))]
    alike = _alike(kinds)
    # Pairs that are changed or gone stay in the heap, and are passed over when they come up.
    heap = [
        (-likeness, one, other)
        for one, others in enumerate(alike)
        for other, likeness in others.items()
        if one < other and likeness >= LIKE
    ]
    heapq.heapify(heap)
    while heap:
        negative, one, other = heapq.heappop(heap)
        if alike[one].get(other) != -negative:
            continue
        del alike[one][other], alike[other][one]
        sizes = len(groups[one]), len(groups[other])
        if sum(sizes) > most:
            continue
        groups[one] += groups[other]
        groups[other] = []
        for third in sorted(alike[one].keys() | alike[other].keys()):
            to = alike[one].get(third, 0.0), alike[other].get(third, 0.0)
            likeness = sum(size * value for size, value in zip(sizes, to)) / sum(sizes)
            alike[one][third] = alike[third][one] = likeness
            alike[third].pop(other, None)
            if likeness >= LIKE:
                heapq.heappush(heap, (-likeness, min(one, third), max(one, third)))
        alike[other] = {}
    return [sorted(position for number in group for position in same[kinds[number]]) for group in groups if group]


def _alike(kinds: Sequence[tuple[str, ...]]) -> list[dict[int, float]]:
    """For each the cosine to any other by their words, each weighed by how rare it is, where they have some in common.

    Its source is the inverse document frequency of Spärck Jones, "A statistical interpretation of term specificity"
    (1972).
    """
    seen = Counter(word for own in kinds for word in own)
    squares = {word: math.log(len(kinds) / count) ** 2 for word, count in seen.items() if count < len(kinds)}
    norms = [math.sqrt(sum(squares.get(word, 0.0) for word in own)) for own in kinds]
    holders: dict[str, list[int]] = defaultdict(list)
    found: list[dict[int, float]] = [{} for _ in kinds]
    for number, own in enumerate(kinds):
        common: dict[int, float] = defaultdict(float)
        for word in own:
            if square := squares.get(word):
                for earlier in holders[word]:
                    common[earlier] += square
                holders[word].append(number)
        for earlier, shared in common.items():
            found[earlier][number] = found[number][earlier] = shared / (norms[earlier] * norms[number])
    return found
