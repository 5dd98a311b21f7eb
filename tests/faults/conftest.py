from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from textgrad_engine.llm import (
    Budgeted,
    Check,
    Completion,
    Deadline,
    Limit,
    Message,
    Metered,
    OpenAIModel,
    Request,
    Retry,
    RetryPolicy,
)
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer

SEED = 7


class LeapingLoop(asyncio.SelectorEventLoop):
    """A loop with real sockets whose clock can be moved on."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class Bench:
    """The stack against a loopback server, with sleeps that are noted instead of slept.

    What is slept moves the loop's clock on, so that the pauses of the limit end when those of the retries do.
    """

    _loop: LeapingLoop
    _over = False  # no time passes for a loop that only ends, which waits for its threads by the same clock

    def __init__(self, server: LoopbackServer, heard: list[Request], **settings: Any) -> None:
        self.server = server
        self.heard = heard
        self.sleeps: list[float] = []
        self.settings = settings

    def stack(self) -> tuple[Metered, OpenAIModel]:
        given = dict(self.settings)
        policy = given.pop("policy", RetryPolicy())
        deadline, width = given.pop("deadline", 20.0), given.pop("max_in_flight", 64)
        model = OpenAIModel("m", base_url=self.server.base_url, **given)
        limited = Limit(Budgeted(Deadline(Check(model), deadline)), width)
        return Metered(Retry(limited, policy, sleep=self.sleep, rng=random.Random(SEED))), model

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.leap(seconds)
        await asyncio.sleep(0)

    def leap(self, seconds: float) -> None:
        """Move the clock of those who wait on."""
        self._loop.ahead += seconds

    def ask(self, *texts: str, each: Callable[..., Any] | None = None, **fields: Any) -> list[Completion | Exception]:
        """Ask all at once; the answers, or errors, in order."""
        requests = [Request(messages=(Message(role="user", content=text),), **fields) for text in texts or ("hello",)]

        async def main() -> list[Any]:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, LeapingLoop)
            self._loop, self._over = loop, False
            stack, model = self.stack()
            try:
                return await asyncio.gather(*(stack.complete(each_) for each_ in requests), return_exceptions=True)
            finally:
                await model.aclose()
                self._over = True

        with asyncio.Runner(loop_factory=LeapingLoop) as runner:
            return runner.run(main())

    def backoff(self, times: int) -> list[float]:
        """The sleeps that the policy's backoff takes with this seed."""
        rng = random.Random(SEED)
        return [rng.uniform(0.0, min(30.0, 0.5 * 2**attempt)) for attempt in range(times)]


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    """Starts a server that answers its first requests as scripted, then with the echo of what it is asked.

    With `late`, so many seconds pass for the client when the server meets a request of the script, and again, until it
    has given that up: what ends because of that does so on a busy machine too, and nothing else does.
    """
    servers: list[LoopbackServer] = []

    def start(
        *script: Fault | None, answer: Callable[[Request], Any] | None = None, late: float = 0.0, **settings: Any
    ) -> Bench:
        heard: list[Request] = []

        def fault_for(number: int) -> Fault | None:
            if number > len(script):
                return None
            if late:
                here._loop.call_soon_threadsafe(pass_time, number)
            return script[number - 1]

        def pass_time(number: int) -> None:
            if len(here.sleeps) < number and not here._over:
                here.leap(late)
                here._loop.call_soon(pass_time, number)

        def said(request: Request) -> Any:
            heard.append(request)
            return answer(request) if answer is not None else f"echo of {request.messages[-1].text}"

        server = LoopbackServer(FunctionModel(said), faults=fault_for)
        servers.append(server)
        here = Bench(server.__enter__(), heard, **settings)
        return here

    yield start
    for server in servers:
        server.__exit__(None, None, None)
