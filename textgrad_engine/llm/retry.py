"""The only retry loop there is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
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
from textgrad_engine.llm.charged import mark, plus, unknown_of, usage_of
from textgrad_engine.llm.gate import quota_may_wait
from textgrad_engine.llm.inwords import repair_request
from textgrad_engine.llm.model import Model, Wrapper
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stop import unless_stopped

_UNUSABLE = (EmptyResponse, MalformedResponse)


@dataclass(frozen=True)
class RetryPolicy:
    """When a failed call is tried again. Times are seconds.

    Attributes:
        max_attempts: requests for one call, the first included.
        answer_attempts: how many of these may be answered, and paid for, with nothing usable (empty, malformed); asking
            often costs money here and rarely helps.
        base: the longest wait before the second attempt; it doubles with each further one.
        cap: the longest wait before any attempt.
        max_retry_after: the longest wait that an endpoint gets, even if it asks for more.
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
        if isinstance(error, _UNUSABLE):
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
    """Retries where that can help, waiting longer each time.

    Exponential backoff with full jitter (Brooker, "Exponential Backoff And Jitter", AWS, 2015). What failed attempts
    are known to have used is added to the usage of the answer, or noted on the final error, so that sums are what was
    paid. The first answer that is not the requested JSON is shown to the model again, with what is wrong with it;
    further attempts ask anew.

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
        wasted, unknown = usage_of(error), unknown_of(error)
        attempt, repaired, unanswered = 1, False, 0
        while attempt < (allowed := self._allowed(error, unanswered)):
            asked = error.retry_after if isinstance(error, APIError) else None
            delay = self.policy.wait(attempt, asked, self._rng)
            if isinstance(error, QuotaExhausted):
                delay = max(delay, asked or 0.0)  # nothing is back before
            if self._clock() - began + delay > self.policy.deadline:
                error.add_note(
                    f"no further attempt: the deadline of {self.policy.deadline:g} s for all attempts is near"
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
                unanswered += not isinstance(error, _UNUSABLE)
                error = failure
                wasted, unknown = plus(wasted, usage_of(error)), plus(unknown, unknown_of(error))
            except (Exception, asyncio.CancelledError) as end:  # else what was paid so far would be lost with it
                mark(end, usage=plus(wasted, usage_of(end)), unknown=plus(unknown, unknown_of(end)))
                raise
            else:
                changes: dict[str, Any] = {"attempts": attempt, "unknown": unknown}
                if wasted is not None:
                    changes["usage"] = wasted + completion.usage
                return completion.model_copy(update=changes)
        mark(error, usage=wasted, unknown=unknown)
        if attempt > 1 or allowed > 1 or isinstance(error, AnswerError | APIError):
            error.add_note(f"model {self.name!r}, {attempt} attempt{'s' if attempt > 1 else ''}")
        raise error

    def _allowed(self, error: ModelError, unanswered: int) -> int:
        """How many attempts there may be in all, after so many that gave no answer before the last one."""
        allowed = self.policy.attempts_for(error)
        return min(self.policy.max_attempts, allowed + unanswered) if isinstance(error, _UNUSABLE) else allowed

    async def _pause(self, delay: float) -> None:
        await self._sleep(delay)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
