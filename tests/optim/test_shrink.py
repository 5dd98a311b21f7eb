from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.contracts import MaxTokens, Requires
from textgrad_engine.optim.shrink import Point, Shrunk, pareto, shrink


class Test:
    """A test of texts that counts: not worse is what a function says."""

    __test__ = False

    def __init__(self, is_good: Callable[[str], bool]) -> None:
        self.is_good, self.asked, self.at_once, self.most = is_good, list[str](), 0, 0

    async def __call__(self, text: str, first: Any = ()) -> bool:
        self.asked.append(text)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return self.is_good(text)


def shrunk(text: str, test: Any, **settings: Any) -> Shrunk:
    return asyncio.run(shrink(text, test, **settings))


def needing(*lines: str) -> Test:
    return Test(lambda text: all(line in text.split("\n") for line in lines))


TEXT = "\n".join(f"line {number}" for number in range(1, 17))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lanes": 0}, "lanes and max_tries must be at least 1"),
        ({"max_tries": 0}, "lanes and max_tries must be at least 1"),
        ({"units": [(1, 2), (2,)]}, "a line is in two units"),
        ({"units": [(0,)]}, "line 0, and the text has lines 1 to 16"),
        ({"units": [(17,)]}, "line 17"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    """Before anything is tested."""
    test = needing()
    with pytest.raises(ValueError, match=message):
        shrunk(TEXT, test, **settings)
    assert test.asked == []


def test_a_failing_test_is_raised() -> None:
    """A spent budget is not a worse text."""

    async def broken(text: str, first: Any) -> bool:
        raise RuntimeError("spent")

    with pytest.raises(RuntimeError, match="spent"):
        shrunk(TEXT, broken)


def test_what_is_needed_is_left_and_nothing_else() -> None:
    """Wherever it stands."""
    found = shrunk(TEXT, needing("line 2", "line 11", "line 12"))
    assert found.text == "line 2\nline 11\nline 12"
    assert found.removed == tuple(n for n in range(1, 17) if n not in (2, 11, 12))
    assert found.finished


def test_where_all_is_needed_the_text_stays() -> None:
    """Each line was tried alone."""
    test = needing(*TEXT.split("\n"))
    found = shrunk(TEXT, test)
    assert (found.text, found.removed, found.finished) == (TEXT, (), True)
    assert {text.count("\n") for text in test.asked} >= {14}


def test_a_prompt_is_never_empty() -> None:
    """Even where nothing is needed one line is left; a text of one line is not tested at all."""
    assert shrunk(TEXT, needing()).text.count("line") == 1
    test = needing()
    assert (shrunk("Sort.", test).text, test.asked) == ("Sort.", [])
    assert shrunk("", test).text == ""


def test_no_text_is_tested_twice() -> None:
    """Tests are what costs; equal lines make equal texts."""
    test = Test(lambda text: text.count("x") >= 3)
    found = shrunk("\n".join(["x"] * 8), test)
    assert found.text == "x\nx\nx"
    assert len(test.asked) == len(set(test.asked)) == len(found.tried) - 1


def test_a_few_needed_lines_cost_few_tests() -> None:
    """Halves first: far fewer than one test for each line and again for each success."""
    text = "\n".join(f"line {number}" for number in range(64))
    assert len(shrunk(text, needing("line 40")).tried) <= 20


def test_what_is_left_is_cut_as_finely_as_before() -> None:
    """Where needed lines are spread, coarse parts were found to be needed once, and are not cut again."""
    assert len(shrunk(TEXT, needing(*(f"line {n}" for n in range(1, 17, 3)))).tried) <= 50


def test_what_breaks_a_contract_is_not_tested() -> None:
    """A text that may not be used need not be scored; one that is too long already may get shorter."""
    test = needing()
    found = shrunk(TEXT, test, contracts=[Requires(["line 7"]), MaxTokens(5)])
    assert found.text == "line 7"
    assert all("line 7" in text for text in test.asked)


def test_units_go_together() -> None:
    """A fence is never left half open, and lines in no unit stay."""
    text = "Sort.\n<examples-0a1b2c3d>\nOne\n</examples-0a1b2c3d>\nBe brief."
    test = needing("Be brief.")
    assert shrunk(text, test).text == "Be brief."
    assert all(("<examples" in tried) == ("</examples" in tried) for tried in test.asked)
    assert shrunk(text, needing(), units=[(2, 3, 4)]).text == "Sort.\nBe brief."


@pytest.mark.parametrize("lanes", [2, 5, 64])
def test_lanes_change_nothing_but_the_time(lanes: int) -> None:
    """The text is the same; tests run at the same time."""
    alone, together = needing("line 3", "line 9"), needing("line 3", "line 9")
    assert shrunk(TEXT, together, lanes=lanes).text == shrunk(TEXT, alone).text
    assert alone.most == 1
    assert 1 < together.most <= lanes


@pytest.mark.parametrize("lanes", [1, 3])
def test_no_more_tests_than_allowed(lanes: int) -> None:
    """What was reached by then is kept, and that it is not the end is said."""
    test = needing("line 3", "line 9")
    found = shrunk(TEXT, test, max_tries=4, lanes=lanes)
    assert (len(test.asked), found.finished) == (4, False)
    assert {"line 3", "line 9"} <= set(found.text.split("\n"))


def test_the_front_of_score_against_tokens() -> None:
    """Of all that was tried, with the first text; what another beats in both is left out."""
    found = shrunk(TEXT, needing("line 3"), score_of=lambda text: 0.9 if "line 3" in text.split("\n") else 0.2)
    assert found.tried[0].text == TEXT
    assert [(point.text, point.score) for point in found.front if point.score == 0.9] == [("line 3", 0.9)]
    assert shrunk(TEXT, needing("line 3")).front == ()


POINTS = st.lists(st.builds(Point, st.just(""), st.integers(0, 5), st.none() | st.integers(0, 5).map(float)))


@given(POINTS)
def test_nothing_beats_a_point_of_the_front(points: list[Point]) -> None:
    """Law: and everything else is beaten by one, or equal to one."""
    front = pareto(points)

    def at_least(a: Point, b: Point) -> bool:
        return a.score is not None and b.score is not None and a.tokens <= b.tokens and a.score >= b.score

    for a in front:
        assert sum(at_least(b, a) for b in front) == 1
    for point in points:
        assert point.score is None or any(at_least(a, point) for a in front)


@given(st.integers(1, 12), st.data())
def test_what_is_left_can_spare_nothing(lines: int, data: st.DataObject) -> None:
    """Law: for any set of needed lines exactly these are left (one that is any where none is)."""
    needed = data.draw(st.sets(st.integers(1, lines)))
    text = "\n".join(f"<{number}>" for number in range(1, lines + 1))
    test = needing(*(f"<{number}>" for number in needed))
    found = shrunk(text, test, lanes=data.draw(st.integers(1, 3)))
    left = set(found.text.split("\n"))
    if needed:
        assert left == {f"<{number}>" for number in needed}
    else:
        assert len(left) == 1


def test_of_a_long_line_sentences_are_left_out() -> None:
    """A prompt of one paragraph could not get any shorter; nor could one whose paragraphs each hold a needed word."""
    kinds = [f"Tickets of kind {n} go to queue {n}." for n in range(30)]
    text = "Sort.\n\n" + " ".join(kinds) + "\n\nEnd."
    found = shrunk(text, Test(lambda text: all(each in text for each in (kinds[3], kinds[29], "End."))))
    assert found.text == f"{kinds[3]} {kinds[29]}\n\nEnd."
    assert found.removed == (1, 2, *(n + 3 for n in range(30) if n not in (3, 29)))
    assert shrunk(" ".join(kinds), Test(lambda text: kinds[3] in text)).text == kinds[3]
    assert shrunk("  - " + " ".join(kinds), Test(lambda text: kinds[3] in text)).text == f"  - {kinds[3]}"
