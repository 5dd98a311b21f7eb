from __future__ import annotations

import asyncio
import itertools
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.dispatch import Scope
from textgrad_engine.errors import CallCancelled
from textgrad_engine.func import apmap, pmap
from textgrad_engine.testing import FunctionModel, ScriptedModel

PATIENCE = 60.0
"""Seconds until a test that would hang fails instead; no test waits that long."""


class Waiting(nn.Module):
    """A program whose forward is to be awaited."""

    async def forward(self, text: str) -> str:
        return text


@pytest.mark.parametrize("function", [Waiting(), lambda text: Waiting()(text)])
def test_a_coroutine_is_no_result(function: Any) -> None:
    """Nobody would await it: the list would hold one for each item, and nothing would have been asked."""
    with pytest.raises(TypeError, match=r"func.pmap: the function gave a coroutine\. .* take a plain def"):
        pmap(function)(["a", "b"])


def test_several_sequences_are_told_to_be_zipped() -> None:
    """As `vmap` takes them; what stands in the message runs."""
    first, second = ["a", "b"], ["c", "d"]
    with pytest.raises(TypeError, match=r"takes one sequence of items, got 2; zip them: func.pmap\(lambda pair: "):
        pmap(str.__add__)(first, second)  # type: ignore[arg-type, call-arg]
    assert pmap(lambda pair: str.__add__(*pair))(zip(first, second)) == ["ac", "bd"]


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ("ab", "got the text 'ab', of which the items are its letters; write ['ab']"),
        (b"ab", "got bytes, of which the items are numbers; write [items]"),
        ({"text": "a"}, "got a dict, of which the items are its keys; write [items] for one item, list(items) for"),
        ({"text": ["a", "b"]}, "of which the items are its keys; write [items] for one item, list(items) for the keys"),
    ],
)
def test_letters_of_a_text_and_keys_of_a_row_are_no_items(items: Any, says: str) -> None:
    """A model would be asked about each, and paid; `jax.pmap` and `vmap` take a dict of columns for a batch."""
    with pytest.raises(TypeError, match=re.escape(says)):
        pmap(str.upper)(items)
    with pytest.raises(TypeError, match=re.escape(says)):
        asyncio.run(apmap(str.upper)(items))
    assert pmap(str.upper)({"a": 1}.keys()) == ["A"]


@pytest.mark.parametrize("concurrency", [0, -1])
def test_the_bound_must_be_positive(concurrency: int) -> None:
    """Refused when the function is made, not when it is called."""
    for wrong in ("2", 1.5, True):
        with pytest.raises(TypeError, match="pmap: concurrency must be a whole number or None"):
            pmap(str.upper, concurrency=wrong)
    with pytest.raises(TypeError, match="takes a function, got NoneType"):
        pmap(None)
    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        pmap(str, concurrency)


def test_an_error_says_which_item_it_was() -> None:
    """Also of a pmap in a pmap, and once where all items have the same error."""
    with pytest.raises(ZeroDivisionError) as caught:
        pmap(pmap(lambda passage: 1 / len(passage)))([["a"], ["b", "", ""]])
    assert caught.value.__notes__ == [
        "while running items[1] of 3 in func.pmap",
        "while running items[1] of 2 in func.pmap",
    ]
    same = ValueError("one for all")

    def fail(item: int) -> None:
        raise same

    with pytest.raises(ValueError, match="one for all"):
        pmap(fail)(range(3))
    assert same.__notes__ == ["while running items[0] of 3 in func.pmap"]


def test_the_first_error_in_order_is_raised() -> None:
    """Whichever thread failed first: the result does not depend on time."""
    later_failed = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            assert later_failed.wait(PATIENCE)
            raise KeyError("one")
        if number == 2:
            later_failed.set()
            raise ValueError("two")
        return number

    with pytest.raises(KeyError, match="one"):
        pmap(work)(range(4))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(0, 12), st.integers(1, 30), st.booleans(), st.integers(0, 3))
def test_what_is_run_beside_a_failure_depends_on_its_place_alone(
    concurrency: int, first: int, count: int, quick: bool, others: int
) -> None:
    """Whether it fails before all that is begun beside it, or when that is over; and whatever fails behind it."""
    first = min(first, count - 1)
    wanted = set(range(min(count, first + min(concurrency + 3 * first, 4 * concurrency - 3))))
    seen: set[int] = set()
    changed = threading.Condition()

    def others_are_over() -> bool:
        return len(seen) >= len(wanted) - 1

    def work(number: int) -> None:
        if number == first:
            with changed:
                if not quick and concurrency > 1:
                    assert changed.wait_for(others_are_over, PATIENCE)
                seen.add(number)
                changed.notify_all()
            raise KeyError(number)
        with changed:
            if quick and number > first:
                assert changed.wait_for(lambda: first in seen, PATIENCE)
            seen.add(number)
            changed.notify_all()
        if number > first and number % (others + 1) == 0:
            raise ValueError(number)

    with pytest.raises(KeyError, match=str(first)):
        pmap(work, concurrency=concurrency)(range(count))
    assert seen == wanted


def test_a_function_that_always_fails_is_run_once_in_each_thread() -> None:
    """A failing program is not run on the rest of the data set."""
    for concurrency in (1, 2, 5):
        seen: list[int] = []

        def work(number: int, seen: list[int] = seen) -> None:
            seen.append(number)
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            pmap(work, concurrency=concurrency)(range(1000))
        assert sorted(seen) == list(range(concurrency))


def test_a_second_ctrl_c_ends_the_wait_for_items_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ends the wait for a result, and nothing waits behind the second."""

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    for name in ("result_of", "settled"):
        monkeypatch.setattr(f"textgrad_engine.dispatch.{name}", interrupted)
    over = threading.Event()
    late = threading.Timer(5.0, over.set)  # the end of the items, where they are waited for
    late.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pmap(lambda _: over.wait(PATIENCE))(range(2))
        assert not over.is_set()
    finally:
        late.cancel()
        over.set()


def test_ctrl_c_that_gives_up_the_calls_does_not_wait_for_what_else_items_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retriever that hangs would keep a run that was told twice to end."""
    over = threading.Event()
    late = threading.Timer(5.0, over.set)

    def interrupted(_: Any) -> None:
        scope.cancel()
        late.start()
        raise KeyboardInterrupt

    monkeypatch.setattr("textgrad_engine.dispatch.result_of", interrupted)
    try:
        with Scope() as scope, pytest.raises(KeyboardInterrupt):
            pmap(lambda _: over.wait(PATIENCE))(range(2))
        assert not over.is_set()
    finally:
        late.cancel()
        over.set()


def test_an_item_that_hangs_does_not_keep_the_interpreter() -> None:
    """At its end it waits for all threads but daemons."""
    assert pmap(lambda _: threading.current_thread().daemon)(range(3)) == [True] * 3


def test_no_item_begins_when_nobody_waits_any_more() -> None:
    """As where an `apmap` is cancelled: items may do what costs, besides asking models."""
    begun = []

    def work(number: int) -> None:
        begun.append(number)
        scope.cancel()

    with Scope() as scope, pytest.raises(CallCancelled, match="this pmap was cancelled"):
        pmap(work, concurrency=1)(range(3))
    assert begun == [0]


def test_no_items_are_no_work() -> None:
    """And no thread."""
    assert pmap(str)([]) == []


def test_all_items_run_at_the_same_time() -> None:
    """Each call waits for all others to have begun: one after the other, this would never end."""
    together = threading.Barrier(8, timeout=PATIENCE)

    def work(number: int) -> int:
        together.wait()
        return number * number

    assert pmap(work)(iter(range(8))) == [n * n for n in range(8)]


def test_never_more_at_once_than_the_bound() -> None:
    """Groups of exactly the bound meet at the barrier, and nobody else is inside."""
    together = threading.Barrier(3, timeout=PATIENCE)
    lock, inside, most = threading.Lock(), 0, 0

    def work(_: int) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        together.wait()
        with lock:
            inside -= 1

    pmap(work, concurrency=3)(range(9))
    assert most == 3


def test_results_are_in_order_whatever_ends_first() -> None:
    """The last item lets the one before it go, and so on down to the first."""
    done = [threading.Event() for _ in range(5)]

    def work(number: int) -> int:
        if number < 4:
            assert done[number + 1].wait(PATIENCE)
        done[number].set()
        return number

    assert pmap(work)(range(5)) == [0, 1, 2, 3, 4]


def test_models_grad_mode_and_example_are_the_callers() -> None:
    """Context variables go along into each thread, and changes there stay there."""

    def work(word: str) -> tuple[str, bool, str]:
        before = EXAMPLE.get()
        EXAMPLE.set(word)
        return nn.ChatCompletion("{w}")(w=word).data, tg.is_grad_enabled(), before

    with tg.use_models(forward=ScriptedModel(["x", "x"])), tg.no_grad(), tg.autograd.example("outer"):
        assert pmap(work)(["a", "b"]) == [("x", False, "outer")] * 2
        assert EXAMPLE.get() == "outer"


def test_graphs_made_in_threads_are_one_graph() -> None:
    """Feedback on all results reaches the parameter, in the order of the items."""
    prompt = tg.Variable("p", requires_grad=True)

    def work(word: str) -> Any:
        made = prompt + word
        assert made.data == "p" + word
        return made

    tg.backward(pmap(work)(["a", "b", "c"]), ["on a", "on b", "on c"])
    assert [item.data for item in prompt.grad] == ["on a", "on b", "on c"]


def test_a_thread_knows_a_line_of_the_user() -> None:
    """The one that asked for all items, where the item's own work has none; not one of Python's threads."""

    chat = nn.ChatCompletion("{word}", model=ScriptedModel([ValueError("down")]))
    with pytest.raises(ValueError, match="down") as caught:
        _ = pmap(chat)(["a"])[0].data
    number = test_a_thread_knows_a_line_of_the_user.__code__.co_firstlineno + 5
    assert any(note.endswith(f"asked for at {__file__}:{number}") for note in caught.value.__notes__)


@pytest.mark.parametrize("nested", [False, True])
def test_a_cassette_gives_each_item_its_own_answer_to_equal_requests(tmp_path: Path, nested: bool) -> None:
    """Whichever thread comes first: what was recorded is what is played back."""
    path = tmp_path / "c.jsonl"
    numbers = itertools.count()

    def answers(order: tuple[int, int]) -> list[str]:
        done = [threading.Event(), threading.Event()]

        def sample(item: int) -> str:
            if item == order[1]:
                assert done[order[0]].wait(PATIENCE)
            text = tg.ops.chat_completion(None, [{"role": "user", "content": "A name?"}]).data
            done[item].set()
            return str(text)

        if nested:
            return [found for (found,) in pmap(lambda item: pmap(lambda _: sample(item))([0]))([0, 1])]
        return pmap(sample)([0, 1])

    with tg.use_models(forward=FunctionModel(lambda _: f"answer {next(numbers)}")), tg.llm.record(path):
        assert answers((0, 1)) == ["answer 0", "answer 1"]
    for order in ((0, 1), (1, 0)):
        with tg.llm.replay(path) as replay:
            assert answers(order) == ["answer 0", "answer 1"]
            assert replay.left == 0
    with tg.llm.replay(path):  # one thread now, and no items
        assert [tg.ops.chat_completion(None, [{"role": "user", "content": "A name?"}]).data for _ in range(2)] == [
            "answer 0",
            "answer 1",
        ]
