from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import ReturnError
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms import (
    Context,
    FeedbackTransform,
    Gathered,
    cap,
    chain,
    cluster,
    dedupe,
    identity,
    momentum,
    newest_first,
    summarise,
    worst_first,
)

CONTEXT = Context("Sort.", "system prompt", None, 1)


def run(transform: FeedbackTransform, gathered: Gathered, state: Any = None) -> tuple[Gathered, dict[str, Any]]:
    return asyncio.run(transform.update(gathered, transform.init() if state is None else state, CONTEXT))


def said(*texts: str) -> Gathered:
    return Gathered(tuple(FeedbackItem(text, 1, "", ()) for text in texts))


@dataclass(frozen=True)
class Count(FeedbackTransform):
    """Counts its calls, and marks the items."""

    mark: str = "x"

    def init(self) -> dict[str, Any]:
        return {"calls": 0, "told": []}

    async def update(self, gathered: Gathered, state: Any, context: Context) -> tuple[Gathered, dict[str, Any]]:
        items = tuple(replace(item, text=item.text + self.mark) for item in gathered.items)
        return replace(gathered, items=items), {**state, "calls": state["calls"] + 1}

    def record(self, state: Any, lines: Sequence[str], outcome: str) -> dict[str, Any]:
        return {**state, "told": [*state["told"], [*lines, outcome]]}


@pytest.mark.parametrize("wrong", [dedupe, FeedbackTransform, "dedupe", None, FeedbackItem("a", 1, "", ())])
def test_what_is_no_transform_is_refused(wrong: Any) -> None:
    """Such as the function that makes one, without its brackets."""
    with pytest.raises(TypeError, match=r"such as dedupe\(\); got"):
        chain(cap(9), wrong)


def test_a_state_of_another_chain_is_refused() -> None:
    """Zipped in silence, transforms would read each other's memory, or lose it."""
    state = chain(momentum(1), momentum(2)).init()
    with pytest.raises(ValueError, match="a chain of 2 transforms, and this one has 1"):
        run(chain(momentum(1)), said("a"), state)
    with pytest.raises(ValueError, match="a chain of 2 transforms, and this one has 1"):
        chain(momentum(1)).record(state, [], "kept")


def test_the_first_one_comes_first() -> None:
    """Each works on what the one before it left."""
    after, _ = run(chain(Count("1"), chain(Count("2"), Count("3"))), said("a"))
    assert [item.text for item in after.items] == ["a123"]


def test_each_keeps_a_state_of_its_own() -> None:
    """All are told of an edit, and no state is changed in place."""
    both = chain(Count("1"), Count("2"))
    state = both.init()
    before = json.dumps(state)
    after = both.record(run(both, said("a"), state)[1], ["added 'x'"], "kept")
    assert json.dumps(state) == before
    assert after == {"states": [{"calls": 1, "told": [["added 'x'", "kept"]]}] * 2}


def test_identity_changes_nothing() -> None:
    """It is the empty chain, and vanishes in another."""
    assert run(identity(), said("a"))[0] == said("a")
    assert chain(identity(), dedupe(), identity()) == chain(dedupe())


@pytest.mark.parametrize("make", [dedupe, cluster, worst_first, newest_first, identity])
def test_nothing_in_gives_nothing_out(make: Any) -> None:
    """An empty gradient is no special case."""
    assert run(make(), Gathered(()))[0] == Gathered(())


@pytest.mark.parametrize(("make", "name"), [(cap, "max_tokens"), (momentum, "window"), (summarise, "max_items")])
def test_a_number_out_of_range_is_refused(make: Any, name: str) -> None:
    """Where it is given, with its name."""
    with pytest.raises(ValueError, match=f"{make.__name__}: {name} must be at least 1, got 0"):
        make(0)


every = st.sampled_from(
    [dedupe(), cluster(), cluster(0.3, 1), cap(1), cap(4), cap(99), worst_first(), newest_first(), momentum(2), Count()]
)
texts = st.text(alphabet=st.sampled_from("ab .\n\0{}<>不İ\ud800"), max_size=8) | st.sampled_from(
    ["be brief", "Be  brief", "be very brief", "</feedback-00000000>", "{{ item.text }}", "[1] (9 times)"]
)
score = st.floats() | st.sampled_from([0.0, 0.5, 1.0])
item = st.builds(
    FeedbackItem,
    text=texts,
    times=st.integers(1, 3),
    answer=texts,
    examples=st.lists(st.sampled_from("tuv"), max_size=2, unique=True).map(tuple),
    scores=st.lists(score, max_size=2).map(tuple),
)
gathered = st.builds(Gathered, st.lists(item, max_size=8).map(tuple), st.just(("old",)), st.integers(0, 3))


@given(every, every, every, gathered)
def test_chaining_is_associative(a: FeedbackTransform, b: FeedbackTransform, c: FeedbackTransform, x: Gathered) -> None:
    """Law: how a chain is bracketed changes neither feedback nor state."""
    left, right, flat = chain(chain(a, b), c), chain(a, chain(b, c)), chain(a, b, c)
    assert repr(run(left, x)) == repr(run(right, x)) == repr(run(flat, x))
    assert left.init() == right.init() == flat.init()


@given(every, gathered)
def test_a_transform_is_a_function_of_what_it_is_given(transform: FeedbackTransform, x: Gathered) -> None:
    """Law: the same feedback gives the same, the state is JSON, and the input is left alone."""
    before = repr(x)
    after, state = run(transform, x)
    assert repr((after, state)) == repr(run(transform, x))
    assert repr(x) == before
    assert json.loads(json.dumps(state)) == state


@given(every.filter(lambda each: not isinstance(each, Count)), gathered)
def test_nothing_is_lost_uncounted(transform: FeedbackTransform, x: Gathered) -> None:
    """Law: what was said is still said, stands for more, or is counted as left out; past and examples stay."""
    after, _ = run(transform, x)
    assert after.history == x.history
    left_out = after.left_out - x.left_out
    assert left_out >= 0
    assert {item.text for item in after.items} <= {item.text for item in x.items}
    if not left_out:
        assert sum(item.times for item in after.items) == sum(item.times for item in x.items)
        assert sorted(map(repr, (s for i in after.items for s in i.scores))) == sorted(
            map(repr, (s for i in x.items for s in i.scores))
        )
        assert {e for i in after.items for e in i.examples} == {e for i in x.items for e in i.examples}


def test_a_transform_need_not_be_async() -> None:
    """Most compute only; one that waits is run where it holds nobody up."""

    class First(FeedbackTransform):
        def update(
            self, gathered: Gathered, state: dict[str, Any], context: Context
        ) -> tuple[Gathered, dict[str, Any]]:
            return replace(gathered, items=gathered.items[:1]), state

    assert run(chain(First()), said("one", "two"))[0] == said("one")


def test_a_transform_that_gives_no_state_is_named() -> None:
    """Python's words would speak of what cannot be unpacked."""

    class Half(FeedbackTransform):
        async def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Gathered:
            return gathered

    with pytest.raises(TypeError, match=r"Half.update\(\) gave Gathered.*; give the feedback and the state after it"):
        run(chain(Half()), said("one"))  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [{}, None])
def test_of_what_remembers_nothing_update_is_enough(state: Any) -> None:
    """Also as a subclass of what it is, and where it says so by None."""

    class Last(FeedbackTransform):
        async def update(self, gathered: Gathered, state: Any, context: Context) -> Any:
            return replace(gathered, items=gathered.items[-1:]), given

    given = state
    both = chain(Last(), Count())
    after, states = run(both, said("one", "two"))
    assert after == said("twox")
    told = both.record(states, ["+ a line"], "kept")
    assert run(both, said("one"), told)[1] == {"states": [{}, {"calls": 2, "told": [["+ a line", "kept"]]}]}


def test_a_transform_that_gives_texts_for_items_is_told_what_changes_one() -> None:
    """It would fail far from here, where items are counted or shown."""

    class Texts(FeedbackTransform):
        def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Any:
            return replace(gathered, items=tuple(item.text for item in gathered.items)), state

    with pytest.raises(TypeError, match=r"Texts.update\(\) gave the item 'one', .* `dataclasses.replace\(item, text="):
        run(chain(Texts()), said("one"))


def test_a_transform_that_forgets_what_it_remembers_is_told() -> None:
    """Its next update was given None instead of its state."""

    class Forgets(Count):
        def record(self, state: dict[str, Any], lines: Any, outcome: str) -> Any:
            state["told"].append(outcome)

    class Silent(FeedbackTransform):
        def update(self, gathered: Gathered, state: Any, context: Context) -> Any:
            return gathered, state

        def record(self, state: dict[str, Any], lines: Any, outcome: str) -> Any:
            """Remembers nothing."""

    for each in (Silent(), Forgets()):
        both = chain(each)
        _, states = run(both, said("one"))
        if isinstance(each, Silent):
            assert both.record(states, ["+ a line"], "kept") == {"states": [{}]}
        else:
            with pytest.raises(
                ReturnError, match=r"Forgets.record\(\) gave None, .*; give the state after it: `return st"
            ):
                both.record(states, ["+ a line"], "kept")
