"""Blocks that nobody entered are told of."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, ops
from textgrad_engine.blocks import block
from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.testing import FunctionModel, ScriptedModel


@block
@contextlib.contextmanager
def limit(most: int) -> Iterator[int]:
    if most < 0:
        raise ValueError("most is below 0")
    yield most


def test_a_budget_on_a_line_by_itself_is_told_to_limit_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It reads as `tg.set_models(...)` does, which needs no block; a notebook shows what it lacks."""
    assert repr(tg.budget(dollars=2)) == "<budget(...), of no effect before `with budget(...):`>"
    tg.budget(dollars=2)
    tg.use_models(forward=ScriptedModel([]))
    llm.caching("answers")
    assert caplog.messages == [
        f"{name}(...) had no effect, as no block was entered: write `with {name}(...):`"
        for name in ("budget", "budget", "use_models", "caching")
    ]


@pytest.mark.parametrize(
    "made",
    [
        lambda: ops.critic(None),
        lambda: ops.feedback_batch_size(6),
        lambda: ops.feedback_images(0),
        lambda: ops.notes({"t1": "It is about the invoice."}),
        lambda: llm.meter(),
        lambda: llm.observe(print),
        lambda: llm.on_token(print),
        lambda: llm.repeat(1),
    ],
)
def test_whatever_holds_for_a_block_says_so_on_a_line_by_itself(
    made: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    """The critic was asked all the same, no note was shown to it, and nothing was counted."""
    made()
    assert [message.partition("(...)")[2] for message in caplog.messages] == [
        f" had no effect, as no block was entered: write `with {caplog.messages[0].partition('(')[0]}(...):`"
    ]


def test_one_that_is_entered_decorates_or_cannot_be_made_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """In whatever way it is used; and each call of what it decorates is a block of its own."""
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(limit(1)) == 1
        assert stack.enter_context(limit(2)) == 2

    @limit(3)
    def limited() -> str:
        return "yes"

    assert (limited(), limited()) == ("yes", "yes")
    with pytest.raises(ValueError, match="below 0"):
        limit(-1).__enter__()
    with pytest.raises(TypeError, match="here it is 'dollars'"):
        tg.budget(usd=2)  # type: ignore[call-arg]
    with caplog.at_level(logging.DEBUG):
        del limited
    assert caplog.messages == []


def test_one_that_is_entered_again_says_that_it_is_for_one_block() -> None:
    """Instead of what `contextlib` lacks then; also where it is still open."""
    models = tg.use_models(forward=ScriptedModel([]))
    with models, pytest.raises(RuntimeError, match=r"this use_models\(\.\.\.\) was entered before, .* `with use_mod"):
        models.__enter__()
    with pytest.raises(RuntimeError, match="is for one block"), models:
        pass


def test_what_is_raised_inside_goes_out_and_the_block_may_take_it() -> None:
    """As of `contextlib`."""
    with pytest.raises(KeyError), limit(1):
        raise KeyError

    @block
    def silent() -> contextlib.suppress:
        return contextlib.suppress(KeyError)

    with silent():
        raise KeyError


@pytest.mark.parametrize(
    "made", [lambda: tg.budget(calls=1), lambda: tg.use_models(forward=ScriptedModel([])), llm.meter]
)
def test_one_that_is_left_in_another_context_says_that_it_held_nothing(made: Callable[[], Any]) -> None:
    """As in a dependency of FastAPI that is no `async def`: each half of it is run in a thread of its own."""

    def dependency() -> Iterator[object]:
        with made() as given:
            yield given

    opened = dependency()
    contextvars.copy_context().run(next, opened)
    with pytest.raises(RuntimeError, match=r"\(\.\.\.\) was left in another context than .* make that an `async def`"):
        contextvars.copy_context().run(next, opened)


def test_an_async_function_is_inside_of_the_block_until_it_has_ended() -> None:
    """The block was left before anything was awaited, so that a budget over a handler of a server limited nothing."""
    chat = nn.ChatCompletion("{text}", model=FunctionModel(lambda request: "yes"))

    @tg.budget(calls=2)
    async def handler(times: int) -> int:
        """Asks."""
        for _ in range(times):
            await chat.aforward("?")
        return times

    async def twice() -> list[int]:
        return list(await asyncio.gather(handler(2), handler(2)))

    assert inspect.iscoroutinefunction(handler), "frameworks look"
    assert (handler.__doc__, list(inspect.signature(handler).parameters)) == ("Asks.", ["times"])
    assert asyncio.run(twice()) == [2, 2], "each call has a block of its own"
    with pytest.raises(BudgetExceeded):
        asyncio.run(handler(3))


def test_a_generator_is_not_decorated_as_its_code_runs_outside() -> None:
    """What it yields to would be inside, and what it does after the first `yield` perhaps not."""

    def plain() -> Iterator[str]:
        yield "a"

    async def awaited() -> AsyncIterator[str]:
        yield "a"

    for generator in (plain, awaited):
        with pytest.raises(
            TypeError, match=rf"budget\(\.\.\.\) .* {generator.__name__}\(\) has a `yield`.* `with budget"
        ):
            tg.budget(calls=1)(generator)
    with pytest.raises(TypeError, match=r"decorates a function, and plain\(\) has a `yield`"):
        tg.budget(calls=1)(functools.partial(plain))


def test_what_opens_a_block_of_its_own_is_not_decorated_as_that_is_left_before() -> None:
    """The budget was over as soon as the context manager was made, and held for nothing that ran inside."""

    @contextlib.contextmanager
    def client() -> Iterator[str]:
        yield "a"

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[str]:
        yield "a"

    for opens in (client, lifespan, limit, functools.partial(client)):
        name = opens.func.__name__ if isinstance(opens, functools.partial) else opens.__name__
        with pytest.raises(TypeError, match=rf"decorates a function, and {name}\(\) gives a context .* `with budget"):
            tg.budget(calls=1)(opens)

    @tg.budget(calls=1)
    @listed
    def words() -> Iterator[str]:
        yield "a"

    assert words() == ["a"], "who goes through a generator at once is inside"


def test_a_coroutine_that_a_plain_function_gives_is_refused_as_it_runs_outside() -> None:
    """As of a decorator that is no `async def` itself, around a function that is one."""

    async def ask() -> str:
        return "yes"

    @tg.budget(calls=1)
    @passed_on
    def handler() -> Coroutine[Any, Any, str]:
        return ask()

    with pytest.raises(
        TypeError, match=r"handler\(\) gave a coroutine, which runs only after the call has ended: .* `with budget\("
    ):
        handler()


def passed_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*args)

    return call


def listed(function: Callable[[], Iterator[str]]) -> Callable[[], list[str]]:
    @functools.wraps(function)
    def call() -> list[str]:
        return list(function())

    return call
