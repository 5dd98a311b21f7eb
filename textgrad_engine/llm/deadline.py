"""The wall deadline of one call, which counts from when its turn has come."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any

from textgrad_engine.checks import above, check
from textgrad_engine.errors import ConnectionFailed, DeadlineExceeded, ModelError
from textgrad_engine.llm.listening import listeners
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.model import Model, Wrapper, innermost
from textgrad_engine.llm.redact import without_password
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.silence import Silence
from textgrad_engine.llm.turns import Turns

_SILENCE = 30.0
"""Seconds for which calls wait and none is answered, before the log says so."""


class Deadline(Wrapper):
    """Gives up a call that takes too long from its turn at the server to its complete answer.

    The SDK's read timeout restarts with each byte, so a slowly dripping endpoint would never exceed it. Your own server
    takes a few calls at a time and queues the others, and nobody tells when a call's turn comes. The best guess is the
    latest answer to a call that was sent before it. The seconds count from there, so a server that keeps answering is
    waited for, however many calls it was sent at once. A call that hangs while others are answered is given up as many
    seconds after the last one that was sent before it.

    That is long, so the log tells of calls that are waited for while none is answered for half a minute, but for those
    whose answers are seen as they come (`on_token`).

    Args:
        inner: the model that is wrapped.
        seconds: how long one call may take.
    """

    def __init__(self, inner: Model, seconds: float) -> None:
        super().__init__(inner)
        check(Deadline.__init__, locals(), above(0, "seconds"))
        self.seconds = seconds
        self._calls: PerLoop[tuple[Turns, Silence]] = PerLoop(lambda: (Turns(), Silence(_SILENCE)))
        address = getattr(innermost(inner), "base_url", None)
        self._where = f" at {without_password(address)}" if isinstance(address, str) else ""

    async def complete(self, request: Request) -> Completion:
        """Pass the request on, with a limit in time.

        Raises:
            DeadlineExceeded: there was no complete answer in time.
        """
        asked: Awaitable[Completion] = self.inner.complete(request)
        work = asked if isinstance(asked, types.CoroutineType) else _awaited(asked)
        began = asyncio.get_running_loop().time()
        try:
            waits_for = work.send(None)
        except StopIteration as end:  # an answer at once, as from a model in this process: no timer was needed
            completion: Completion = end.value
            return completion
        turns, silence = self._calls.get()
        turn = turns.begin(began)
        timer: asyncio.TimerHandle | None = None
        loop, streamed = asyncio.get_running_loop(), bool(listeners())

        def tell_of_silence() -> None:
            lasts, waiting = loop.time() - turns.silent_since, turns.under_way
            silence.tell(
                lasts,
                "%r%s has said nothing for %.0f s, and %d %s for it; one is given up after %g s (call_deadline of "
                "RetryPolicy, or under [models] in a config), and Ctrl-C ends the run",
                self.name,
                self._where,
                lasts,
                waiting,
                "call waits" if waiting == 1 else "calls wait",
                self.seconds,
            )

        def look() -> None:
            nonlocal timer
            due = turns.since(turn) + self.seconds
            if due > loop.time():
                if not streamed:  # else it is heard as it comes
                    tell_of_silence()
                timer = loop.call_at(due if streamed else min(due, turns.silent_since + silence.due), look)
            else:
                limit.reschedule(due)

        try:
            async with asyncio.timeout(None) as limit:
                look()
                try:
                    completion = await _rest(work, waits_for)
                except ModelError as error:
                    if not isinstance(error, DeadlineExceeded | ConnectionFailed):
                        turns.answered(turn, loop.time())  # badly, but its turn is over
                    raise
            turns.answered(turn, loop.time())
            return completion
        except TimeoutError as error:
            if not limit.expired():
                raise
            late = DeadlineExceeded(
                f"no complete answer of {self.name!r} within {self.seconds:g} s; RetryPolicy(call_deadline=...) allows "
                "more, and so does call_deadline under [models] in a config"
            )
            raise late from error
        finally:
            if timer is not None:
                timer.cancel()
            turns.end(turn)

    def __repr__(self) -> str:
        return f"Deadline({self.inner!r}, {self.seconds:g})"


async def _awaited(work: Awaitable[Completion]) -> Completion:
    return await work


@types.coroutine
def _rest(work: Coroutine[Any, Any, Completion], waits_for: Any) -> Generator[Any, Any, Completion]:
    """What a coroutine gives whose first step was run by hand, and that waits."""
    while True:
        thrown: BaseException
        try:
            yield waits_for
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:
            thrown = error
        else:
            answer: Completion = yield from work
            return answer
        try:
            waits_for = work.throw(thrown)
        except StopIteration as end:
            completion: Completion = end.value
            return completion
