"""The only retry loop there is, and the wall deadline of one call."""

from __future__ import annotations

import asyncio
import random
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any

from textgrad_engine.checks import above, at_least, check
from textgrad_engine.errors import (
    AnswerError,
    APIError,
    ConnectionFailed,
    DeadlineExceeded,
    EmptyResponse,
    MalformedResponse,
    ModelError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.llm.charged import mark, plus, usage_of
from textgrad_engine.llm.gate import quota_may_wait
from textgrad_engine.llm.inwords import repair_request
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.model import Model, Wrapper, innermost
from textgrad_engine.llm.redact import without_password
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.silence import Silence
from textgrad_engine.llm.stop import unless_stopped
from textgrad_engine.llm.stream import listeners
from textgrad_engine.llm.turns import Turns

_SILENCE = 30.0
"""Seconds for which calls wait and none is answered, before the log says so."""


@dataclass(frozen=True)
class RetryPolicy:
    """When a failed call is tried again. Times are seconds.

    Attributes:
        max_attempts: requests for one call, the first included.
        answer_attempts: the same for calls that were answered, and paid for, but with nothing usable (empty,
            malformed); asking often costs money here and rarely helps.
        base: the longest wait before the second attempt; it doubles with each further one.
        cap: the longest wait before any attempt.
        max_retry_after: an endpoint that asks for a longer wait than this gets this.
        deadline: no attempt begins later than this after the first failure. A day's quota that is used up is waited for
            where the endpoint says that some of it is back within this time, and no other model answers (`Fallback`).
        call_deadline: one request may take this long to its complete answer, from sending or from the last answer to
            one that was sent before it (see `Deadline`); None for no limit.

    Raises:
        ValueError: a number is out of range.
        TypeError: one is no number.

    Example:
        >>> from textgrad_engine import llm
        >>> from textgrad_engine.testing import ScriptedModel
        >>> model = llm.resolve(ScriptedModel(["Rome"]), policy=RetryPolicy(max_attempts=3, cap=10))
    """

    max_attempts: int = 6
    answer_attempts: int = 3
    base: float = 0.5
    cap: float = 30.0
    max_retry_after: float = 60.0
    deadline: float = 300.0
    call_deadline: float | None = 300.0

    def __post_init__(self) -> None:
        attempts = at_least(1, "max_attempts", "answer_attempts")
        seconds = at_least(0, "base", "cap", "max_retry_after", "deadline")
        check(RetryPolicy, vars(self), attempts, seconds, above(0, "call_deadline"))

    def attempts_for(self, error: BaseException) -> int:
        """How many attempts a call that failed so may have in all; 1 when trying again cannot help."""
        if isinstance(error, EmptyResponse | MalformedResponse):
            return min(self.max_attempts, self.answer_attempts)
        if isinstance(error, QuotaExhausted):
            return self.max_attempts if quota_may_wait.get() and error.is_back_within(self.deadline) else 1
        if isinstance(error, RateLimited | ServerFailed | ConnectionFailed | DeadlineExceeded):
            return self.max_attempts
        if isinstance(error, APIError) and error.status in (408, 409):
            return self.max_attempts
        return 1

    def wait(self, attempt: int, retry_after: float | None, rng: random.Random) -> float:
        """Seconds to wait after a failed attempt, the first being number 1: full jitter, or what was asked for."""
        ceiling = min(self.cap, self.base * 2 ** min(attempt - 1, 60))
        return max(rng.uniform(0.0, ceiling), min(retry_after or 0.0, self.max_retry_after))


class Retry(Wrapper):
    """Tries again where that can help, waiting longer each time.

    Exponential backoff with full jitter (Brooker, "Exponential Backoff And Jitter", AWS, 2015). What failed attempts
    are known to have used is added to the usage of the answer, or noted on the final error, so that sums are what was
    paid. The first answer that is not the JSON that was asked for is shown to the model again, with what is wrong about
    it; further attempts ask anew.

    Args:
        inner: the model that is wrapped.
        policy: when and how often.
        clock: gives the time in seconds; only differences matter. Without one, the running loop's.
        sleep: waits that many seconds.
        rng: where the jitter comes from.
    """

    def __init__(
        self,
        inner: Model,
        policy: RetryPolicy | None = None,
        *,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Coroutine[Any, Any, None]] | Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(inner)
        check(Retry.__init__, locals())
        self.policy = policy or RetryPolicy()
        self._clock = clock or _loop_time
        self._sleep = sleep
        self._rng = rng or random.Random()

    async def complete(self, request: Request) -> Completion:
        """Ask until there is an answer, an error that trying again cannot mend, or no attempt left."""
        try:
            return await self.inner.complete(request)
        except ModelError as error:
            first = error
        return await self._again(request, first)

    async def _again(self, request: Request, error: ModelError) -> Completion:
        began = self._clock()
        wasted = usage_of(error)
        attempt, repaired = 1, False
        while attempt < (allowed := self.policy.attempts_for(error)):
            asked = error.retry_after if isinstance(error, APIError) else None
            delay = self.policy.wait(attempt, asked, self._rng)
            if isinstance(error, QuotaExhausted):
                delay = max(delay, asked or 0.0)  # nothing is back before
            if self._clock() - began + delay > self.policy.deadline:
                error.add_note(
                    f"no further attempt: the deadline of {self.policy.deadline:g} s for all of them is near"
                )
                break
            again, pause = request, True
            if isinstance(error, MalformedResponse) and error.answer is not None and not repaired:
                # The endpoint is well, and busy with nothing of ours: the answer is asked for anew at once, and only
                # once in this way, for a model that cannot mend it the first time rarely can the second.
                again, pause, repaired = repair_request(request, error), False, True
            try:
                if pause:
                    await unless_stopped(self._pause(delay))
                attempt += 1
                completion = await self.inner.complete(again)
            except ModelError as failure:
                error = failure
                wasted = plus(wasted, usage_of(error))
            except (Exception, asyncio.CancelledError) as end:
                mark(end, usage=plus(wasted, usage_of(end)))  # else what was paid so far would be lost with it
                raise
            else:
                changes: dict[str, Any] = {"attempts": attempt}
                if wasted is not None:
                    changes["usage"] = wasted + completion.usage
                return completion.model_copy(update=changes)
        if wasted is not None:
            mark(error, usage=wasted)
        if attempt > 1 or allowed > 1 or isinstance(error, AnswerError | APIError):
            error.add_note(f"model {self.name!r}, {attempt} attempt{'s' if attempt > 1 else ''}")
        raise error

    async def _pause(self, delay: float) -> None:
        await self._sleep(delay)


class Deadline(Wrapper):
    """Gives up a call whose turn has come and that takes too long from there to its complete answer.

    The SDK's read timeout starts anew with each byte, so an endpoint that drips would never meet it. A server of one's
    own takes a few calls at a time and lets the others wait, and nobody tells when a call's turn comes: the latest
    answer to a call that was sent before it is the best guess. So the seconds count from there, and a server that keeps
    answering is waited for, however many calls it was sent at once. A call that hangs beside others that are answered
    is given up as many seconds after the last one that was sent before it.

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
        began = _loop_time()
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


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
