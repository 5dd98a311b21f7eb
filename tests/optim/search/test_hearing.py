"""Feedback that lanes share: nothing is lost, what says the same goes to one lane, and nobody's order matters."""

from __future__ import annotations

import math
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.graph import Source
from textgrad_engine.optim.search import hearing
from textgrad_engine.optim.search.hearing import Hearing, divided
from textgrad_engine.optim.search.objective import FeedbackOn

WAIT = 60.0
"""Seconds after which a test that hangs says so."""

SAID = st.lists(st.lists(st.sampled_from(["Be brief.", "be brief", "Be kind!", "Say why.", "", "?!"]), max_size=6))


def heard(*texts: str) -> FeedbackOn:
    return FeedbackOn((0.0,) * len(texts), (tuple(Variable(text) for text in texts),))


def texts_in(parts: list[tuple[tuple[Variable, ...], ...]]) -> list[list[str]]:
    return [[str(said.data) for gradient in part for said in gradient] for part in parts]


def shared(own: list[Callable[[], FeedbackOn]], order: tuple[int, ...]) -> list[FeedbackOn | Exception]:
    """What each of some lanes gets when they hear in this order."""
    hearing = Hearing(len(own))
    places = [hearing.place() for _ in own]
    turns = [threading.Event() for _ in own]

    def hear(place: int) -> FeedbackOn:
        assert turns[place].wait(WAIT)
        following = order.index(place) + 1
        if following < len(order):
            turns[order[following]].set()
        return own[place]()

    with ThreadPoolExecutor(len(own)) as pool:
        futures = [pool.submit(hearing.share, place, lambda place=place: hear(place)) for place in places]
        hearing.begin()
        turns[order[0]].set()
        return [future.exception(WAIT) or future.result() for future in futures]  # type: ignore[misc]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_lane_that_hears_nothing_holds_up_nobody(order: tuple[int, ...]) -> None:
    """Its error is its own; the others divide what they heard."""

    def lost() -> FeedbackOn:
        raise OSError("gone")

    first, second, third = shared([lambda: heard("Be brief."), lost, lambda: heard("Be brief!", "Say why.")], order)
    assert isinstance(second, OSError)
    assert isinstance(first, FeedbackOn)
    assert isinstance(third, FeedbackOn)
    found = texts_in([first.gradients, divided([heard("x").gradients], 1)[0], third.gradients])  # type: ignore[list-item]
    assert found[0] == ["Be brief.", "Be brief!"]
    assert len(third.scores) == 2  # its own examples stay its own


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_who_is_first_does_not_matter(order: tuple[int, ...]) -> None:
    """Each lane gets the same part in the same order."""
    own = [
        lambda: heard("Parcels with glass get K1.", "Add: tea means K2."),
        lambda: heard("State that tea is K2.", "Wine gets K3."),
        lambda: heard("Glass: K1.", "Parcels with wine are K3."),
    ]
    found = shared(own, order)  # type: ignore[arg-type]
    texts = texts_in([each.gradients for each in found if isinstance(each, FeedbackOn)])
    assert sorted(map(len, texts)) == [2, 2, 2]
    about = [{word for word in ("glass", "tea", "wine") if word in " ".join(part).lower()} for part in texts]
    assert sorted(map(sorted, about)) == [["glass"], ["tea"], ["wine"]]


def test_a_lane_alone_keeps_what_it_hears() -> None:
    """Also what is empty, and in its order: there is nothing to divide."""
    hearing = Hearing(4)
    place = hearing.place()
    hearing.begin()
    own = heard("b", "", "a")
    assert hearing.share(place, lambda: own) is own


def test_it_is_full_when_all_places_are_taken() -> None:
    """More lanes than threads would wait for each other."""
    hearing = Hearing(2)
    found = [hearing.full]
    for _ in range(2):
        hearing.place()
        found.append(hearing.full)
    assert found == [False, False, True]


@given(SAID, st.integers(1, 5))
def test_everything_that_is_said_goes_to_one_part(said: list[list[str]], parts: int) -> None:
    """Nothing is lost or shown twice, and the same words are never in two parts."""
    found = texts_in(divided([heard(*texts).gradients for texts in said], parts))
    assert len(found) == parts
    assert sorted(text for part in found for text in part) == sorted(t for texts in said for t in texts if t.strip())
    for word in ("brief", "kind", "why", "?!"):
        assert sum(any(word in text.lower() for text in part) for part in found) <= 1


def test_what_is_said_at_one_example_stays_together() -> None:
    """Feedback on two parameters may be of use only together."""

    def said(text: str, example: str) -> Variable:
        found = Variable(text)
        found.source = Source(example=example)
        return found

    told = [
        ((said("Be brief.", "t1"), said("Say why.", "t2")), (said("Sort by size.", "t1"), said("Name them.", "t2")))
    ]
    found = divided(told, 2)
    assert [[[str(each.data) for each in gradient] for gradient in part] for part in found] == [
        [["Be brief."], ["Sort by size."]],
        [["Say why."], ["Name them."]],
    ]


def test_feedback_on_several_prompts_is_not_divided() -> None:
    """An edit of one is worth something beside one of the other only, and each has words of its own."""

    def on(*texts: str) -> FeedbackOn:
        return FeedbackOn((0.0,), tuple((Variable(text),) if text else () for text in texts))

    own = [
        lambda: on("Say K1 for glass.", "K1 is left."),
        lambda: on("Say K2 for tea.", ""),
        lambda: on("", "K2 is up."),
    ]
    found = [each for each in shared(own, (2, 0, 1)) if isinstance(each, FeedbackOn)]
    assert texts_in([each.gradients for each in found]) == [  # type: ignore[misc]
        ["Say K1 for glass.", "K1 is left."],
        ["Say K2 for tea."],
        ["K2 is up."],
    ]


def test_places_that_nobody_takes_up_hold_up_nobody() -> None:
    """A Ctrl-C may come between a place and its work; what has begun ends all the same, or closing would hang."""
    hearing = Hearing(3)
    first, _, third = (hearing.place() for _ in range(3))
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(hearing.share, place, lambda: heard("Be brief.")) for place in (first, third)]
        hearing.give_up()
        assert [len(future.result(WAIT).scores) for future in futures] == [1, 1]


def test_what_was_heard_is_divided_once_for_all_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lane would come to the same, one after the other, as they are threads of one interpreter."""
    made: list[int] = []

    def counted(*given: Any) -> Any:
        made.append(1)
        return divided(*given)

    monkeypatch.setattr(hearing, "divided", counted)
    found = shared([lambda n=n: heard(f"Say {n}.", f"Name {n}.") for n in range(4)], (2, 0, 3, 1))
    assert len(made) == 1
    said = [str(text.data) for each in found if isinstance(each, FeedbackOn) for text in each.gradients[0]]
    assert len(said) == len(set(said)) == 8


def plainly_joined(kinds: list[tuple[str, ...]], most: int) -> list[list[int]]:
    """Groups by their definition: of all pairs the most alike is joined, again and again."""
    squares = {word: math.log(len(kinds) / sum(word in k for k in kinds)) ** 2 for kind in kinds for word in kind}
    norms = [math.sqrt(sum(squares[word] for word in kind)) for kind in kinds]
    alike = {
        (one, other): sum(squares[word] for word in kinds[other] if word in kinds[one]) / (norms[one] * norms[other])
        for other in range(len(kinds))
        for one in range(other)
        if sum(squares[word] for word in kinds[other] if word in kinds[one])
    }
    groups = {number: [number] for number in range(len(kinds))}
    while alike:
        one, other = min(alike, key=lambda pair: (-alike[pair], pair))
        if alike.pop((one, other)) < hearing.LIKE:
            break
        sizes = len(groups[one]), len(groups[other])
        if sum(sizes) > most:
            continue
        for third in groups.keys() - {one, other}:
            ends = [(min(each, third), max(each, third)) for each in (one, other)]
            values = [alike.pop(pair, 0.0) for pair in ends]
            if any(values):
                alike[ends[0]] = sum(size * value for size, value in zip(sizes, values)) / sum(sizes)
        groups[one] += groups.pop(other)
    return [sorted(groups[number]) for number in sorted(groups)]


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), min_size=1, max_size=5), unique=True, max_size=12),
    st.integers(1, 8),
)
def test_groups_are_those_of_the_definition(kinds: list[frozenset[str]], most: int) -> None:
    """Equal likenesses, too: of those the pair that came first is joined first."""
    words = [tuple(sorted(kind)) for kind in kinds]
    assert hearing._groups(words, most) == plainly_joined(words, most)


def test_joining_does_not_look_at_all_pairs_for_each_merge() -> None:
    """Of two hundred pieces of feedback that would be two million looks."""
    source = random.Random(3)
    words = [tuple(sorted(source.sample(range(300), 12))) for _ in range(200)]
    calls = Counter[str]()

    def profile(frame: Any, event: str, _: Any) -> None:
        calls[event] += event == "call"

    sys.setprofile(profile)
    try:
        groups = hearing._groups([tuple(map(str, own)) for own in words], 50)
    finally:
        sys.setprofile(None)
    assert len(groups) < 100
    assert calls["call"] < 200 * 200 * 2
