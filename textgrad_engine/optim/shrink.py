"""Shrinking a prompt: the lines that it does without, found by delta debugging; of long lines, the sentences.

Prompts that were optimized say things that no longer help, and every call pays for them. The test, whether a shorter
text is no worse, is the caller's; it is expensive, so each text is tried once, and lines that belong together are one
unit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textgrad_engine.llm import tokens
from textgrad_engine.optim.contracts import Contract, broken
from textgrad_engine.optim.growing import Growing, Holds
from textgrad_engine.optim.sentences import places_of
from textgrad_engine.optim.units import Unit, check_units, text_of, units_of

IsNotWorse: TypeAlias = Callable[[str, Sequence[int]], Awaitable[bool]]
"""Whether a text is good enough, and the examples where a difference is to be expected first, if any are known."""

Without: TypeAlias = tuple[str, Sequence[int]]
"""A text that was found, without one of its units, and the examples that asked for this, if any are known."""

IsShown: TypeAlias = Callable[[str, Sequence[Without]], Awaitable[bool]]
"""Whether a text that was found is shown to be good enough, by answers that did not choose it."""

MOST_FIRST = 4
"""Of the examples that asked for a unit, so many are run first without it."""


@dataclass(frozen=True)
class Point:
    """A text that was tried.

    Attributes:
        text: the text.
        tokens: how many tokens it has.
        score: its score, higher is better; None when nobody knows.
    """

    text: str
    tokens: int
    score: float | None = None


@dataclass(frozen=True)
class Shrunk:
    """What shrinking came to.

    Attributes:
        text: the shortest text found that is not worse, and shown to be so; the one that was given when there is none.
        removed: the numbers of what it does without, from 1, among the `sentences.places_of` the text that was given:
            its lines, where none is so long that its sentences count.
        tried: every text that was tested, in order, and the one that was given before them.
        front: those of them with a score that no other beats: by fewer tokens or a higher score, and no loss in the
            other of the two; from the longest to the shortest.
        finished: False when `max_tries` or `is_over` ended it before every unit was tried alone.
    """

    text: str
    removed: tuple[int, ...]
    tried: tuple[Point, ...]
    front: tuple[Point, ...]
    finished: bool


async def shrink(
    text: str,
    is_not_worse: IsNotWorse,
    *,
    is_shown: IsShown | None = None,
    is_over: Callable[[], bool] | None = None,
    holds: Holds | None = None,
    examples: Sequence[int] = (),
    slip: float = 0.01,
    score_of: Callable[[str], float | None] | None = None,
    contracts: Iterable[Contract] = (),
    units: Sequence[Sequence[int]] | None = None,
    lanes: int = 1,
    max_tries: int | None = None,
) -> Shrunk:
    r"""A short text that is not worse, by leaving out lines: what is left can spare no single unit. It is never empty.

    Where single examples can be run, what they need is put together from below (`growing`), and only these units are
    tried without, one by one. Else parts of the text are left out, halves first, then quarters, and so on down to
    single units, and always again after a success (ddmin; Zeller and Hildebrandt, "Simplifying and isolating
    failure-inducing input", IEEE TSE 28(2), 2002). That paper also tries each part alone; a prompt seldom does with one
    part, and tests cost money, so that is left out, which keeps its guarantee.

    Args:
        text: the text.
        is_not_worse: tells whether a shorter text is good enough; it is compared with the text that was given, not with
            the last success, or small losses would add up. It is given the examples that are known to be about what is
            left out, to be run first.
        is_shown: tells whether a text that was found may be taken. It is asked of the one that was put together, before
            more is paid for, and of the shortest; where that is refused, the former is taken. None takes what is found.
        is_over: tells between tests whether no more may be paid for; None never ends it.
        holds: tells whether single examples come out as well as with the given text; None where only whole texts can be
            tested.
        examples: the numbers of the examples that `holds` may be asked about, in the order of running.
        slip: how often an example comes out worse although nothing is missing.
        score_of: the score of a text that was tested, for the front; None leaves the front empty.
        contracts: what a shorter text must keep; one that does not is not tried.
        units: which lines (numbers as in `Shrunk.removed`) are left out together; lines that are in no unit stay. None
            takes `units_of`.
        lanes: so many texts are tested at a time. The result is the same; some tests turn out not to have been needed.
        max_tries: at most so many tests; None sets no limit.

    Raises:
        ValueError: `lanes` or `max_tries` is less than 1, or a unit names a line that is not there or is in another.

    Example:
        >>> async def keeps_it_brief(text, first):
        ...     return "brief" in text
        >>> found = asyncio.run(shrink("Sort.\nBe brief.\nBe kind.\nBe good.", keeps_it_brief))
        >>> found.text, found.removed, len(found.tried)
        ('Be brief.', (1, 3, 4), 4)
    """
    if lanes < 1 or (max_tries is not None and max_tries < 1):
        raise ValueError(f"lanes and max_tries must be at least 1, got {lanes} and {max_tries}")
    lines = places_of(text)
    every = [tuple(unit) for unit in (units_of(text) if units is None else units)]
    check_units(every, len(lines))
    search = _Search(text, is_not_worse, tuple(contracts), lanes, max_tries, is_over)
    fixed = set(range(1, len(lines) + 1)).difference(*every)

    def with_units(some: Iterable[Unit]) -> str:
        return text_of(lines, fixed.union(*some))

    asked_for = dict[Unit, Sequence[int]]()

    async def shown(found: Sequence[Unit]) -> bool:
        if is_shown is None:
            return True
        alone = [(with_units(other for other in found if other != each), asked_for.get(each, ())) for each in found]
        return await is_shown(with_units(found), [each for each in alone if search.may(each[0])])

    taken, left, parts = every, every, min(2, len(every))
    if holds is not None and examples and len(every) > 1:
        grown = await _put_together(search, with_units, every, holds, examples, slip, asked_for)
        if grown is not None:
            left, parts = grown, len(grown)
        if len(left) < len(every):
            if await shown(left):
                taken = left
            else:
                left, parts = every, 0
    left = await _left_out(search, with_units, left, parts, asked_for)
    if left != taken and await shown(left):
        taken = left
    gone = sorted(set(range(1, len(lines) + 1)) - fixed.union(*taken))
    points = [Point(each, tokens.count(each), score_of(each) if score_of else None) for each in (text, *search.tried)]
    return Shrunk(with_units(taken), tuple(gone), tuple(points), tuple(pareto(points)), not search.spent)


async def _put_together(
    search: _Search,
    with_units: Callable[[Iterable[Unit]], str],
    every: list[Unit],
    holds: Holds,
    examples: Sequence[int],
    slip: float,
    asked_for: dict[Unit, Sequence[int]],
) -> list[Unit] | None:
    """The units that single examples need, from below; None where it was over before a text with them was not worse.

    Args:
        search: makes the tests.
        with_units: the text that some units make.
        every: all of them.
        holds: as `shrink` has it, as are `examples` and `slip`.
        examples: which may be asked about.
        slip: how often one comes out worse by itself.
        asked_for: takes the examples that asked for each unit.
    """

    def of(some: Iterable[int]) -> str:
        return with_units(every[n] for n in some)

    least = _least(len(every), lambda some: search.may(of(some)))
    growing = Growing(len(every), of, holds, search.passes, examples, least, slip, search.go_on)
    left = None
    with contextlib.suppress(_Spent):
        if await growing.grow() or len(growing.kept) == len(every):
            left = [every[n] for n in sorted(growing.kept)]
    asked_for.update((every[n], found) for n, found in growing.asked_for.items())
    return left


async def _left_out(
    search: _Search,
    with_units: Callable[[Iterable[Unit]], str],
    left: list[Unit],
    parts: int,
    asked_for: Mapping[Unit, Sequence[int]],
) -> list[Unit]:
    """What stays of some units when parts of them are left out, down to single ones.

    Args:
        search: makes the tests.
        with_units: the text that some units make.
        left: the units.
        parts: so many there are to begin with; 0 leaves nothing out.
        asked_for: the examples that asked for a unit.
    """
    turn = 0  # where the next round begins: what was needed before a success is likely to be needed after it
    while parts and not search.spent:
        cut = [left[n * len(left) // parts : (n + 1) * len(left) // parts] for n in range(parts)]
        order = [*range(turn, parts), *range(turn)]
        tries = [[unit for part in cut[:n] + cut[n + 1 :] for unit in part] for n in order]
        firsts = [tuple(each for unit in cut[n] for each in asked_for.get(unit, ())[:MOST_FIRST]) for n in order]
        found = await search.first([with_units(some) for some in tries], firsts)
        if found is not None:
            turn = order[found] if parts == len(left) else 0
            left = tries[found]
            parts = min(max(parts - 1, 2), len(left))
            turn %= max(1, parts)
        elif parts == len(left):
            break
        else:
            parts, turn = min(parts * 2, len(left)), 0
    return left


def pareto(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in tokens or score without losing in the other, longest first.

    Points without a score are left out; of equal ones the first stays.

    Example:
        >>> points = [Point("abc", 3, 0.9), Point("ab", 2, 0.9), Point("x", 1, 0.5), Point("y", 1, 0.4)]
        >>> [point.text for point in pareto(points)]
        ['ab', 'x']
    """
    front: list[Point] = []
    best = float("-inf")
    scored = [(point, point.score) for point in points if point.score is not None]
    for point, score in sorted(scored, key=lambda pair: (pair[0].tokens, -pair[1])):
        if score > best:
            front.append(point)
            best = score
    return front[::-1]


class _Spent(Exception):
    """No test is left."""


class _Search:
    """The tests: each text once, in order, and no more than allowed."""

    def __init__(
        self,
        text: str,
        is_not_worse: IsNotWorse,
        contracts: tuple[Contract, ...],
        lanes: int,
        max_tries: int | None,
        is_over: Callable[[], bool] | None,
    ) -> None:
        self.is_over = is_over
        self.text, self.is_not_worse, self.contracts = text, is_not_worse, contracts
        self.lanes, self.max_tries = lanes, max_tries
        self.known: dict[str, bool] = {text: False, "": False}  # one is not shorter, the other no prompt
        self.tried: list[str] = []
        self.spent = False

    def may(self, text: str) -> bool:
        """Whether a text keeps what it must."""
        return bool(text) and broken(self.contracts, self.text, text) is None

    def go_on(self) -> None:
        """Nothing where more may be paid for.

        Raises:
            _Spent: it is over.
        """
        if self.is_over is not None and self.is_over():
            self.spent = True
            raise _Spent

    async def passes(self, text: str) -> bool:
        """Whether a text is not worse.

        Raises:
            _Spent: no test is left to find out.
        """
        found = await self.first([text], [()])
        if self.spent:
            raise _Spent
        return found is not None

    async def first(self, texts: Sequence[str], firsts: Sequence[Sequence[int]]) -> int | None:
        """The position of the first text that is not worse; None when there is none, or no test is left to find out.

        Args:
            texts: the texts.
            firsts: for each the examples that are run first.
        """
        for position, text in enumerate(texts):
            if text not in self.known and not await self._test(texts[position:], firsts[position:]):
                self.spent = True
                return None
            if self.known[text]:
                return position
        return None

    async def _test(self, texts: Sequence[str], firsts: Sequence[Sequence[int]]) -> bool:
        """Test the first of some texts, and those next to it in free lanes; False when no test is left."""
        if self.is_over is not None and self.is_over():
            return False
        room = self.lanes
        if self.max_tries is not None:
            room = min(room, self.max_tries - len(self.tried))
        batch: dict[str, Sequence[int]] = {}
        for text, first in zip(texts, firsts):
            if text in self.known or text in batch:
                continue
            if not self.may(text):
                self.known[text] = False
            elif len(batch) < room:
                batch[text] = first
            else:
                break
        self.tried += batch
        tests = [asyncio.ensure_future(self.is_not_worse(*each)) for each in batch.items()]
        try:
            for text, found in zip(batch, await asyncio.gather(*tests)):
                self.known[text] = found
        finally:
            for test in tests:  # when one failed, the others are of no use
                test.cancel()
        return texts[0] in self.known


def _least(units: int, may: Callable[[Sequence[int]], bool]) -> list[int]:
    """A few units that keep the contracts, found without a test; none can be left out of them."""
    kept = [*range(units)]
    size = units
    while size:
        for begin in range(len(kept) - len(kept) % size, -1, -size):
            if may(rest := kept[:begin] + kept[begin + size :]):
                kept = rest
        size //= 2
    return kept
