"""Inputs that a forward comes upon on its way are inputs like any other, as soon as it is done."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Function, Variable, dispatch
from textgrad_engine.autograd.late import FOUND, finding_inputs, late_input, may_find_inputs
from textgrad_engine.errors import AutogradError, DispatchError


def leaf(text: str) -> Variable:
    return Variable(text, role=text, requires_grad=True)


class Gather(Function):
    """A text, and others that it finds; the rule says to each what it is told, and its note."""

    finds_inputs = True

    @staticmethod
    async def forward(text: Variable | str, find: Any) -> Variable:
        return Variable(" ".join([str(text), *[str(each.data) for each in await find()]]))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        said = [f"{note}: {grad_out.data}" for _, note in ctx.late_inputs]
        assert ctx.needs_input_grad[2:] == (True,) * len(said)  # what is found wants feedback
        return (f"own: {grad_out.data}" if ctx.needs_input_grad[0] else None, None, *said)


def finding(*found: Variable, release: threading.Event | None = None) -> Any:
    async def find() -> tuple[Variable, ...]:
        while release is not None and not release.is_set():
            await asyncio.sleep(0)
        for number, each in enumerate(found):
            late_input(each, f"note {number}")
        return found

    return find


def heard(*leaves: Variable) -> list[list[str]]:
    return [[item.data for item in each.grad] for each in leaves]


def test_each_is_told_what_the_rule_says_to_it() -> None:
    """In the order in which they were named; one that was found twice hears twice."""
    own, one, two = leaf("own"), leaf("one"), leaf("two")
    result = Gather.apply(own, finding(one, two, one))
    assert result.data == "own one two one"
    assert result.grad_fn is not None
    assert len(result.grad_fn.next_functions) == 4
    result.backward("no")
    assert heard(own, one, two) == [["own: no"], ["note 0: no", "note 2: no"], ["note 1: no"]]


def test_what_is_behind_one_hears_too() -> None:
    """The graph goes on behind it, through further calls that found something."""
    one = leaf("one")
    inner = Gather.apply("inner", finding(one))
    assert inner.requires_grad
    Gather.apply("outer", finding(inner)).backward("no")
    assert heard(one) == [["note 0: note 0: no"]]


def test_a_pass_waits_for_the_forward(released: threading.Event) -> None:
    """Before that nobody knows where it leads."""
    own, one = leaf("own"), leaf("one")
    result = Gather.apply(own, finding(one, release=released))
    pass_ = threading.Thread(target=result.backward, args=("no",))
    pass_.start()
    pass_.join(0.05)
    assert pass_.is_alive()
    released.set()
    pass_.join()
    assert heard(own, one) == [["own: no"], ["note 0: no"]]


def test_a_call_behind_one_that_is_under_way_does_not_wait_for_it(released: threading.Event) -> None:
    """Though both have the same inputs, whose edges are looked up once."""
    own = leaf("own")
    Gather.apply(own, finding(release=released))
    waits = dispatch.times_waited()
    second = Gather.apply(own, finding(release=released))
    assert dispatch.times_waited() == waits
    released.set()
    assert second.data == "own"


@pytest.fixture
def released() -> Any:
    event = threading.Event()
    yield event
    event.set()


def test_what_wants_no_feedback_is_not_found() -> None:
    """Nor is anything where nothing is recorded, or outside of a forward that may find inputs."""
    own, one = leaf("own"), leaf("one")
    result = Gather.apply(own, finding(Variable("two"), one.detach()))
    assert len(result.grad_fn.next_functions) == 1
    with tg.no_grad():
        result = Gather.apply(own, finding(one))
        assert result.data == "own one"
    assert not result.requires_grad
    late_input(one)
    assert FOUND.get() is None


def test_one_that_was_changed_since_is_refused() -> None:
    """As any input is: feedback on what it was does not fit what it is."""
    one = leaf("one")
    result = Gather.apply("x", finding(one))
    assert result.data == "x one"
    one.data = "another"
    with pytest.raises(AutogradError, match="'one' was changed after it was used"):
        result.backward("no")
    assert heard(one) == [[]]


def test_operations_on_the_way_are_recorded_if_it_is() -> None:
    """As what they come to may be found."""
    seen: list[tuple[bool, bool]] = []

    async def find() -> tuple[Variable, ...]:
        with finding_inputs():
            seen.append((may_find_inputs(), tg.autograd.is_grad_enabled()))
        assert not tg.autograd.is_grad_enabled()
        return ()

    Gather.apply("x", find).data  # noqa: B018
    with tg.no_grad():
        Gather.apply("x", find).data  # noqa: B018
    assert seen == [(True, True), (False, False)]


def test_of_a_forward_that_failed_there_are_none() -> None:
    """The pass fails with its error, and leaves nothing behind."""
    own, one = leaf("own"), leaf("one")

    async def find() -> tuple[Variable, ...]:
        late_input(one)
        raise KeyError("lost")

    result = Gather.apply(own, find)
    with pytest.raises(KeyError, match="lost"):
        result.backward("no")
    assert heard(own, one) == [[], []]
    assert len(result.grad_fn.next_functions) == 1


def test_the_event_loop_does_not_wait_for_itself(released: threading.Event) -> None:
    """It says so instead."""
    result = Gather.apply(leaf("own"), finding(release=released))

    async def look() -> None:
        with pytest.raises(DispatchError, match="event loop"):
            result.grad_fn.next_functions  # noqa: B018

    dispatch.run(look)


def test_hooks_on_its_node_see_all_of_its_inputs() -> None:
    """Those that were found stand behind the others."""
    own, one = leaf("own"), leaf("one")
    result = Gather.apply(own, finding(one))
    seen: list[Any] = []
    result.grad_fn.register_hook(lambda inputs, outputs: seen.append([each.data for each in inputs]))
    result.backward("no")
    assert seen == [["own: no", "note 0: no"]]
