from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from textgrad_engine.llm import Completion, Message, Model, OpenAIModel, Request, innermost


class _Selector(selectors.DefaultSelector):
    """Moves the loop's clock on instead of waiting, so that seconds of backoff pass in no time."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            return super().select(5)
        events = super().select(0)
        if not events:
            self.now += max(0.0, timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._own = _Selector()
        super().__init__(self._own)

    def time(self) -> float:
        return self._own.now


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine on a loop with virtual time."""

    def runner(work: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=VirtualLoop) as here:
            return here.run(work)

    return runner


@pytest.fixture
def ask() -> Callable[..., Request]:
    """Makes a request of one user message."""

    def make(text: str = "hello", **fields: Any) -> Request:
        return Request(messages=(Message(role="user", content=text),), **fields)

    return make


@pytest.fixture
def send() -> Callable[[Model, Request], Completion]:
    """Asks a model on a loop of its own, and closes its connections."""

    def sending(model: Model, request: Request) -> Completion:
        async def main() -> Completion:
            try:
                return await model.complete(request)
            finally:
                inside = innermost(model)
                assert isinstance(inside, OpenAIModel)
                await inside.aclose()

        return asyncio.run(main())

    return sending
