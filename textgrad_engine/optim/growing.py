"""The lines of a prompt that its examples need, found from below: what most lines do nothing for costs nothing.

Leaving lines out tests each useless one on all examples. Here a text begins with next to nothing. Of the examples that
it gets wrong, each by itself tells which line it lacks, by a binary search with one run a step; these lines are put in,
until no example is wrong for lack of any. That costs by what is needed, not by what there is.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from textgrad_engine.optim.search.threshold import Threshold

AT_ONCE = 8
"""So many examples search for what they lack at a time; more would find the same lines again."""

LOOKED = 12
"""So many examples are run with a text at a time."""

MOST_SEARCHES = 4
"""An example that is still wrong after so many searches is wrong for another reason."""

MOST_SLIPS = 0.4
"""Where more goes wrong by itself, a single example tells nothing."""

_UNKNOWN = -1

MOST_BY_ALL = 8
"""So often a unit is searched for that only all examples together miss."""

TRUSTED = 24
"""A rate of slips that is known beforehand counts like so many runs."""


class Holds(Protocol):
    """Tells of some examples whether they come out as well as with the whole text."""

    def __call__(self, text: str, examples: Sequence[int], look: int, /) -> Awaitable[Sequence[bool]]:
        """Run examples with a text; each further `look` gives answers of their own, also where texts are equal."""
        ...


class Growing:
    """A text that grows by the units that examples need.

    Args:
        units: how many units may be put in; they are named by their position.
        text_of: the text with some of them.
        holds: runs examples.
        is_not_worse: whether a text is good enough by all examples together.
        examples: the examples that may be run, in the order of running.
        kept: the units that the text begins with.
        slip: how often examples come out wrong although nothing is missing, as far as that is known.
        go_on: called before more examples are run; it raises where no more may be.

    Attributes:
        kept: the units that it has now.
        asked_for: for units that were put in, the examples that lacked them.
    """

    def __init__(
        self,
        units: int,
        text_of: Callable[[Iterable[int]], str],
        holds: Holds,
        is_not_worse: Callable[[str], Awaitable[bool]],
        examples: Sequence[int],
        kept: Iterable[int],
        slip: float,
        go_on: Callable[[], None] = lambda: None,
    ) -> None:
        self._go_on = go_on
        self._units, self._text_of, self._holds = units, text_of, holds
        self._is_not_worse, self._examples = is_not_worse, examples
        self.kept, self.asked_for = set(kept), dict[int, list[int]]()
        self._searches, self._looks = Counter[int](), dict[tuple[str, int], int]()
        self._slips, self._runs = slip * TRUSTED, float(TRUSTED)

    @property
    def slip(self) -> float:
        """How often examples come out wrong although nothing is missing."""
        return min(MOST_SLIPS, self._slips / self._runs)

    async def grow(self) -> bool:
        """Put in what is needed; False when no text that is not worse was found but the whole."""
        for _ in range(MOST_BY_ALL):
            await self._by_example()
            if not self._absent:
                return False
            if await self._is_not_worse(self._text_of(self.kept)):
                return True
            await self._by_all()
        return False

    @property
    def _absent(self) -> list[int]:
        return [unit for unit in range(self._units) if unit not in self.kept]

    def _note(self, held: Sequence[bool]) -> None:
        self._slips += held.count(False)
        self._runs += len(held)

    async def _by_example(self) -> None:
        """Put in what single examples lack, until all were run with one text and none of them lacks anything."""
        waiting, begun = list(self._examples), -1
        while self._absent and (waiting or begun != len(self.kept)):
            self._go_on()
            if not waiting:  # what was right with fewer units is looked at again
                waiting = list(self._examples)
            if len(waiting) == len(self._examples):
                begun = len(self.kept)
            wrong: list[int] = []
            while waiting and len(wrong) < AT_ONCE:
                some, waiting = waiting[:LOOKED], waiting[LOOKED:]
                held = await self._holds(self._text_of(self.kept), some, 0)
                wrong += [example for example, right in zip(some, held) if not right]
            found = await asyncio.gather(*[self._lacks(example) for example in wrong])
            self._note([unit is not None for unit in found if unit != _UNKNOWN])
            lacking = {example: unit for example, unit in zip(wrong, found) if unit is not None and unit >= 0}
            for example, unit in lacking.items():
                self.asked_for.setdefault(unit, []).append(example)
            self.kept.update(lacking.values())
            waiting = [*lacking, *waiting]

    async def _lacks(self, example: int) -> int | None:
        """The last unit that an example lacks; None when it lacks none, and `_UNKNOWN` when that cannot be told."""
        absent = self._absent
        before = self._searches[example]
        self._searches[example] += 1
        if before >= MOST_SEARCHES:
            return _UNKNOWN
        if before and not (await self._holds(self._text_of(range(self._units)), [example], before + 1))[0]:
            return _UNKNOWN  # with the whole text it was right by luck
        search = Threshold(len(absent), self.slip)
        while (parts := search.next()) is not None:
            text = self._text_of(self.kept.union(absent[:parts]))
            look = self._looks.get((text, example), 0 if parts else 1)
            self._looks[text, example] = look + 1
            search.add(parts, (await self._holds(text, [example], look))[0])
        if search.found is None:
            return _UNKNOWN
        return absent[search.found - 1] if search.found else None

    async def _by_all(self) -> None:
        """Put in the unit without which the text is worse by all examples together, though none of them tells."""
        absent = self._absent
        low, high = 0, len(absent)  # with none of them it is worse, and with all of them it is the whole text
        while high - low > 1:
            middle = (low + high) // 2
            good = await self._is_not_worse(self._text_of(self.kept.union(absent[:middle])))
            low, high = (low, middle) if good else (middle, high)
        self.kept.add(absent[high - 1])


def another_wording(text: str, look: int) -> str:
    r"""A text that says the same, for another look at an example: a break between lines, or words, is longer.

    Example:
        >>> another_wording("Sort.\nBe brief.", 1), another_wording("Be brief.", 2), another_wording("Sort.", 1)
        ('Sort.\n\nBe brief.', 'Be   brief.', 'Sort. ')
    """
    if not look:
        return text
    mark = "\n" if "\n" in text else " "
    places = [run.end() for run in re.finditer(f"{mark}+", text)] or [len(text)]
    more, which = divmod(look - 1, len(places))
    return text[: places[which]] + mark * (more + 1) + text[places[which] :]
