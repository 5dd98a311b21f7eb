"""A prompt grown from what its examples need."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.contracts import Requires
from textgrad_engine.optim.growing import another_wording
from textgrad_engine.optim.shrink import Shrunk, shrink

LINES = [f"line {number}" for number in range(150)]


class World:
    """Examples that each need some lines, and answers that slip, each anew.

    Args:
        needs: the numbers of the lines that each example needs.
        slip: the rate of slips.
        by_all: a line that no example needs, and without which a text is worse on the whole.
    """

    def __init__(self, needs: Mapping[int, Sequence[int]], slip: float = 0.0, by_all: int | None = None) -> None:
        self.needs, self.slip, self.by_all = needs, slip, by_all
        self.runs, self.tests = 0, list[tuple[str, tuple[int, ...]]]()
        self.seen = set[tuple[str, int, int]]()

    def lacks(self, text: str, example: int) -> bool:
        here = set(text.split("\n"))
        return any(LINES[line] not in here for line in self.needs[example])

    async def holds(self, text: str, examples: Sequence[int], look: int) -> list[bool]:
        self.runs += len({(text, each, look) for each in examples} - self.seen)
        self.seen |= {(text, each, look) for each in examples}
        await asyncio.sleep(0)
        return [
            not self.lacks(text, each) and random.Random(f"{text}/{each}/{look}").random() >= self.slip
            for each in examples
        ]

    async def is_not_worse(self, text: str, first: Sequence[int]) -> bool:
        self.tests.append((text, tuple(first)))
        whole = self.by_all is None or LINES[self.by_all] in text.split("\n")
        return whole and not any(self.lacks(text, each) for each in self.needs)

    def shrunk(self, lines: int = 150, **settings: Any) -> Shrunk:
        text = "\n".join(LINES[:lines])
        found = shrink(
            text, self.is_not_worse, holds=self.holds, examples=[*self.needs], slip=max(0.005, self.slip), **settings
        )
        return asyncio.run(found)


def failing_at(call: int) -> Callable[..., Any]:
    calls = 0

    async def holds(text: str, examples: Sequence[int], look: int) -> list[bool]:
        nonlocal calls
        calls += 1
        if calls == call:
            raise RuntimeError("the budget is spent")
        return [LINES[3] in text.split("\n")] * len(examples)

    return holds


@pytest.mark.parametrize("call", [1, 2, 5])
def test_a_failure_is_raised_wherever_it_happens(call: int) -> None:
    """A spent budget is no wrong answer."""
    world = World({0: [3]})
    with pytest.raises(RuntimeError, match="the budget is spent"):
        asyncio.run(shrink("\n".join(LINES[:16]), world.is_not_worse, holds=failing_at(call), examples=[0]))


def test_tests_that_are_spent_leave_the_text_as_it_was() -> None:
    """A text that was not tested is not taken, though its examples are right with it."""
    world = World({0: [3], 1: [7]}, by_all=9)
    found = world.shrunk(max_tries=1)
    assert (found.text, found.finished, len(world.tests)) == ("\n".join(LINES), False, 1)


def test_what_examples_need_is_left_and_nothing_else() -> None:
    """For a fraction of what leaving lines out would take: about ten runs for each line that is needed."""
    world = World({n: [20 * (n % 7) + 5] for n in range(48)})
    assert world.shrunk().text == "\n".join(LINES[20 * n + 5] for n in range(7))
    assert world.runs < 320
    assert len(world.tests) <= 9


def test_examples_that_need_several_lines() -> None:
    """Each is searched for by itself, the last one first."""
    assert World({0: [3, 40, 80, 120]}).shrunk().text == "\n".join(LINES[n] for n in (3, 40, 80, 120))


def test_slips_are_told_from_what_is_missing() -> None:
    """No line stays because an answer went wrong by itself, and none goes that is needed."""
    for seed in range(5):
        needs = {n: [(20 * (n % 7) + 5 + seed) % 150] for n in range(48)}
        assert World(needs, slip=0.1).shrunk().text.count("\n") == 6


def test_what_no_example_tells_of_is_found_by_all_of_them() -> None:
    """Such as a line that makes every answer a little better."""
    found = World({n: [10 + n % 3] for n in range(24)}, by_all=77).shrunk()
    assert found.text == "\n".join(LINES[n] for n in (10, 11, 12, 77))


def test_what_a_contract_wants_is_there_from_the_beginning() -> None:
    """And nothing is asked to find it."""
    world = World({0: [3]})
    assert world.shrunk(contracts=[Requires([LINES[9]])]).text == f"{LINES[3]}\n{LINES[9]}"
    assert all(LINES[9] in text.split("\n") for text, _ in world.tests)


def test_what_asked_for_a_line_is_run_first_without_it() -> None:
    """There a loss shows at once."""
    world = World({0: [3], 1: [7]})
    world.shrunk(lines=16)
    without = dict(world.tests)
    assert (without[LINES[3]], without[LINES[7]]) == ((1,), (0,))


def test_an_example_that_was_right_by_luck_does_not_bring_back_the_whole_text() -> None:
    """Nothing makes it right again, so it is put aside."""
    world = World({0: [3], **{n: [7] for n in range(1, 12)}})
    lucky = world.lacks
    world.lacks = lambda text, example: example == 0 or lucky(text, example)  # type: ignore[method-assign]
    asyncio.run(shrink("\n".join(LINES[:60]), world.is_not_worse, holds=world.holds, examples=[*world.needs]))
    assert world.runs < 200


@given(st.integers(2, 40), st.data())
def test_what_is_left_is_what_is_needed(lines: int, data: st.DataObject) -> None:
    """Law: for any examples; where none needs anything, one line is left."""
    line = st.integers(0, lines - 1)
    every = data.draw(st.lists(st.sets(line, max_size=3), min_size=1, max_size=12))
    needed = set().union(*every)
    found = World({n: sorted(each) for n, each in enumerate(every)}).shrunk(lines=lines)
    assert found.text == "\n".join(LINES[n] for n in sorted(needed)) or (not needed and found.text.count("\n") == 0)


@given(st.text(alphabet="a \n", min_size=1), st.integers(1, 40))
def test_other_wordings_say_the_same_and_differ(text: str, look: int) -> None:
    """Law: only blanks are more, and each look has its own."""
    wordings = [another_wording(text, each) for each in range(look + 1) if each]
    assert all(each.split() == text.split() and each != text for each in wordings)
    assert len({*wordings}) == len(wordings)


class Shown:
    """Tells whether texts are shown to be as good, by a function, and what it was asked."""

    def __init__(self, is_shown: Callable[[str], bool]) -> None:
        self.is_shown, self.asked = is_shown, list[str]()
        self.without: Sequence[tuple[str, Sequence[int]]] = ()

    async def __call__(self, text: str, without: Sequence[tuple[str, Sequence[int]]]) -> bool:
        self.asked.append(text)
        self.without = self.without or without
        return self.is_shown(text)


def test_a_text_that_is_not_shown_when_it_was_put_together_ends_the_search() -> None:
    """Nothing more is paid for."""
    world, shown = World({0: [3], 1: [7]}), Shown(lambda text: False)
    found = world.shrunk(lines=16, is_shown=shown)
    assert (found.text.count("\n"), found.removed, found.finished) == (15, (), True)
    assert (len(shown.asked), len(world.tests)) == (1, 1)


def test_where_the_shortest_is_not_shown_the_one_that_was_put_together_is_taken() -> None:
    """It was shown before."""
    shown = Shown(lambda text: LINES[0] in text)
    found = World({0: [3], 1: [7]}).shrunk(lines=16, is_shown=shown)
    assert shown.asked == ["\n".join(LINES[n] for n in (0, 3, 7)), "\n".join(LINES[n] for n in (3, 7))]
    assert (found.text, len(found.removed)) == (shown.asked[0], 13)


def test_what_asked_for_each_line_is_told_with_the_text_without_it() -> None:
    """Who is to show a text knows which examples it leans on."""
    shown = Shown(lambda text: True)
    World({0: [3], 1: [7], 2: [7]}).shrunk(lines=16, is_shown=shown, contracts=[Requires([LINES[9]])])
    without = {text: [*asked] for text, asked in shown.without}
    assert without == {f"{LINES[7]}\n{LINES[9]}": [0], f"{LINES[3]}\n{LINES[9]}": [1, 2]}


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_search_that_is_over_takes_what_was_shown(rounds: int) -> None:
    """Nothing, where that was before a text was put together."""
    begun = 0

    def is_over() -> bool:
        nonlocal begun
        begun += 1
        return begun > rounds

    shown = Shown(lambda text: True)
    world = World({n: [n] for n in range(12)})
    found = world.shrunk(lines=16, is_shown=shown, is_over=is_over)
    assert not found.finished
    assert found.text in ("\n".join(LINES[:16]), *shown.asked)
    assert rounds or world.runs == 0
