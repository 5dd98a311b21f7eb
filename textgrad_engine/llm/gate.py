"""The queue of an endpoint: who may be sent when, and what the failure of one means for those behind it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from textgrad_engine.errors import (
    AnswerError,
    APIError,
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    ModelError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.llm.charged import own_copy
from textgrad_engine.llm.rates import Allowance, Bucket
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.silence import Silence
from textgrad_engine.llm.stop import failing_on_stop
from textgrad_engine.llm.tokens import count_request
from textgrad_engine.llm.window import Window

_log = logging.getLogger("textgrad_engine.llm.limits")

_FIRST_PAUSE = 0.25
"""Seconds that everybody waits after a 429 that names no time; doubled by each further one before the next answer."""

_PACED = 20
"""So many answers in a row, each as long after the last one as a day's quota takes to come back, end that pace."""

_PATIENCE = 300.0
"""Seconds for which an endpoint may ask for more time by 503 alone, as while it loads its model."""

_NOTHING_THERE = 8
"""So many refusals (`BadRequest.unserved`) before anything else is heard mean that nothing is at that address."""

_SILENCE = 10.0
"""Seconds without an answer, those until the next attempt included, before the log says why there is none."""


quota_may_wait: ContextVar[bool] = ContextVar("textgrad_engine_quota_may_wait", default=True)
"""Whether a day's quota that is soon back is worth the wait; False where another model answers meanwhile."""


class Gate:
    """The queue of one endpoint on one loop; touched on that loop's thread only, hence no locks."""

    def __init__(
        self,
        window: Window,
        per_minute: tuple[float | None, float | None],
        pauses: tuple[float, float],
        name: str,
    ) -> None:
        requests_per_minute, tokens_per_minute = per_minute
        self.window = window
        self.in_flight = 0
        self.counts_tokens = tokens_per_minute is not None
        self._tokens_in_flight = 0
        self._usual_output = 0.0
        self._max_pause, self._max_quota_wait = pauses
        self._pace = 0.0  # seconds from call to call, while a day's quota comes back one by one
        self._paced = 0  # for so many more answers
        self._told = False  # of that
        self._silent_since: float | None = None  # when it answered last, or the first call since was sent
        self._answered_at = 0.0
        self._refused_at = 0.0  # when one failed so the last time
        self._silence, self._said_silence = Silence(_SILENCE), Silence(_SILENCE)
        self._name = name
        self._queues: dict[str, deque[tuple[asyncio.Future[None], int, Request]]] = {}
        self._paused_until = 0.0
        self._pauses = 0  # after 429s without a time, and without an answer between
        self._refused = False
        self._unserved: int | None = 0  # refusals that look as if nothing were there; None once it said something else
        self._absent_since: float | None = None  # when it first said to come back later, and nothing else since
        self._requests = None if requests_per_minute is None else Bucket(requests_per_minute)
        self._tokens = None if tokens_per_minute is None else Bucket(tokens_per_minute)
        self._said: Allowance | None = None
        self._said_at = 0.0  # when it was said, or last tried in spite of it
        self._timer: asyncio.TimerHandle | None = None
        self.now = asyncio.get_running_loop().time

    def size_of(self, request: Request, default: int | None) -> int:
        """The tokens that a request is counted with before its answer is there."""
        output = request.config.max_tokens or default or self._usual_output
        return count_request(request) + int(output)

    def is_open(self, size: int) -> bool:
        """Whether a call of that size may be sent at once."""
        if self._queues or self.in_flight >= self._room():
            return False
        if not (self._paused_until or self._requests or self._tokens or self._said):
            return True
        return self._delay(size) <= 0

    async def wait(self, request: Request, size: int) -> None:
        """Queue; when this returns, the caller holds a place and must `leave` it."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(request.purpose, deque()).append((future, size, request))
        self._admit()  # sets the timer, when it is time that is waited for
        try:
            with failing_on_stop(future):
                await future
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.leave(size, 0)  # a place was given, and the caller was cancelled before it could take it
            raise

    def enter(self, size: int) -> None:
        """Count a call that is sent now; whoever sends it must `leave`."""
        self.in_flight += 1
        self._tokens_in_flight += size
        if self._pace:
            self._pause(self._pace)
        if self._requests is None and self._tokens is None and self._said is None:
            return
        now = self.now()
        if self._requests is not None:
            self._requests.take(1, now)
        if self._tokens is not None:
            self._tokens.take(size, now)
        if self._said is not None:
            if self._said.wait(size, now) > 0:
                self._said_at = now  # sent all the same, to see; the others wait for what comes of it
            self._said.take(size)

    def leave(self, size: int, used: int) -> None:
        """Count a call that is over, with the tokens that it used, and let in who waits."""
        self.in_flight -= 1
        self._tokens_in_flight -= size
        if self._tokens is not None and used != size:
            self._tokens.correct(used - size)
        if self._queues or self._timer is not None:
            self._admit()

    def succeeded(self, purpose: str, sent: float, completion: Completion) -> None:
        """Take in that a call was answered."""
        self._pauses = 0
        self._refused = False
        self._unserved = None
        self._absent_since = None
        now = self.now()
        self._silent_since, self._answered_at = None, now  # `_heard`, written out: it is so for each answer
        if self._pace:
            self._paced -= 1
            if not self._paced:
                self._pace = 0.0
        self._usual_output += 0.1 * (completion.usage.output_tokens - self._usual_output)
        self.window.succeeded(purpose, now - sent, full=self.in_flight >= self.window.room)

    def failed(self, error: ModelError, sent: float, name: str) -> None:
        """Take in that a call failed, and what that means for all others."""
        self._count_unserved(error)
        if isinstance(error, QuotaExhausted) and quota_may_wait.get() and error.is_back_within(self._max_quota_wait):
            self._wait_for_quota(error, sent, name)
        elif isinstance(error, AuthenticationFailed | QuotaExhausted):
            self._refuse(error)
        elif isinstance(error, AnswerError):
            self._refused = False  # who answers, if badly, accepts the key
            self._heard()
        elif isinstance(error, APIError):
            self._look_for_absence(error)
            self._slow_down(error, sent)
            if isinstance(error, RateLimited | ServerFailed | ConnectionFailed | DeadlineExceeded):
                self._tell_of_silence(error, sent, name)
            else:
                self._heard()

    def _count_unserved(self, error: ModelError) -> None:
        """An address where nothing is there for any of the first requests serves none that is queued, either."""
        if isinstance(error, BadRequest) and error.unserved:
            if self._unserved is not None:
                self._unserved += 1
                if self._unserved >= _NOTHING_THERE:
                    self._refuse(error)
        elif isinstance(error, APIError | AnswerError):
            self._unserved = None

    def _look_for_absence(self, error: APIError) -> None:
        """An endpoint that has said for long that it will be back is asked for nothing more that is queued."""
        if not isinstance(error, ServerFailed) or not error.retry_after:
            self._absent_since = None
        elif self._absent_since is None:
            self._absent_since = self.now()
        elif self.now() - self._absent_since > _PATIENCE:
            self._fail_queue(error)

    def _slow_down(self, error: APIError, sent: float) -> None:
        overloaded = isinstance(error, ServerFailed) and error.status in (503, 529)
        if isinstance(error, RateLimited | DeadlineExceeded) or overloaded:
            fresh = self.window.congested(sent, self.now(), self.in_flight)
            if isinstance(error, RateLimited) and not error.retry_after and fresh:
                self._pause(min(_FIRST_PAUSE * 2 ** min(self._pauses, 30), self._max_pause))
                self._pauses += 1
        if error.retry_after:
            self._pause(min(error.retry_after, self._max_pause))

    def _refuse(self, error: APIError) -> None:
        """What is queued would be refused as this was."""
        self._refused = True
        self._fail_queue(error)

    def _heard(self) -> None:
        self._silent_since, self._answered_at = None, self.now()

    def _tell_of_silence(self, error: APIError, sent: float, name: str) -> None:
        now = self.now()
        if self._silent_since is None or sent - self._refused_at > max(_PATIENCE, self._max_pause):
            # Who was sent long ago may be the only one without an answer. And nobody asked in between, perhaps, as in a
            # notebook that is left for an hour.
            self._silent_since = max(sent, self._answered_at)
        self._refused_at = now
        silent, pause = now - self._silent_since, max(0.0, self._paused_until - now)
        wanted = error.retry_after or 0.0
        longer = f" (it wants {wanted:,.0f} s)" if wanted > self._max_pause else ""
        why = [f"has not answered for {silent:.0f} s"] if silent >= 1 else []
        if pause >= 1:
            why.append(f"is asked again in {pause:.0f} s{longer}")
        said = " and ".join(why) or "does not answer"
        self._silence.tell(silent + pause, "%r %s: %.500s", name, said, error)

    def _wait_for_quota(self, error: QuotaExhausted, sent: float, name: str) -> None:
        seconds, now = error.retry_after or 0.0, self.now()
        if self._absent_since is None:
            self._absent_since = now
        elif now - self._absent_since > max(_PATIENCE, self._max_quota_wait):
            self._fail_queue(error)
        self._pace, self._paced = max(self._pace, seconds), _PACED
        self.window.congested(sent, now, self.in_flight)
        self._pause(seconds)
        if not self._told:
            self._told = True
            _log.warning(
                "%r is asked again in %.0f s, and then more slowly: the account's daily limit is used up, and the "
                "endpoint says that some of it is back by then",
                name,
                math.ceil(seconds),
            )

    def hear(self, headers: Mapping[str, str]) -> None:
        """Take in what a response says about its endpoint's limits; called while its call is still counted."""
        now, said = self.now(), self._said or Allowance()
        if said.hear(headers, max(0, self.in_flight - 1), self._tokens_in_flight, now):
            self._said, self._said_at, self.counts_tokens = said, now, True

    def _room(self) -> float:
        return 1 if self._refused else self.window.room

    def _pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, self.now() + seconds)

    def _delay(self, size: int) -> float:
        """Seconds until a call of that size may be sent, as far as time is concerned."""
        now = self.now()
        waits = [self._paused_until - now]
        if self._requests is not None:
            waits.append(self._requests.wait(1, now))
        if self._tokens is not None:
            waits.append(self._tokens.wait(size, now))
        if self._said is not None:  # an endpoint that wants a longer pause than we grant will say so with a 429
            waits.append(min(self._said.wait(size, now), self._said_at + self._max_pause - now))
        return max(waits)

    def _tell_of_headers(self, delay: float, size: int) -> None:
        """Log that nothing is sent for long because of what answers said; that of refusals is told when they come."""
        now = self.now()
        if self._said is None or self._paused_until - now >= delay or self._said.wait(size, now) < delay:
            return
        why = "the x-ratelimit headers of its answers say that the account's limit is used up until then"
        self._said_silence.tell(delay, "%r is asked again in %.0f s: %s", self._name, delay, why)

    def fail_alike(self, error: BadRequest, request: Request, defaults: GenerateConfig) -> None:
        """Fail what is queued and would be refused as a request was: all for the model, or what has its setting."""
        name = error.setting
        if name == "model":
            self._refuse(error)
        elif (value := _setting_of(request, name, defaults)) is not None:
            self._fail_queue(error, lambda other: _setting_of(other, name, defaults) == value)

    def _fail_queue(self, error: APIError, which: Callable[[Request], bool] = lambda request: True) -> None:
        queues, self._queues = self._queues, {}
        for purpose, queue in queues.items():
            for future, size, request in queue:
                if future.done():
                    continue
                if not which(request):
                    self._queues.setdefault(purpose, deque()).append((future, size, request))
                else:
                    own = own_copy(error)
                    own.add_note("this request was queued and not sent: the endpoint had refused one before it")
                    future.set_exception(own)

    def _admit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queues and self.in_flight < self._room():
            purpose = next(iter(self._queues))
            queue = self._queues[purpose]
            while queue and queue[0][0].done():  # it was stopped or cancelled in the queue
                queue.popleft()
            if not queue:
                del self._queues[purpose]
                continue
            future, size, _ = queue[0]
            if (delay := self._delay(size)) > 0:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_at(loop.time() + delay, self._admit)
                self._tell_of_headers(delay, size)
                return
            queue.popleft()
            del self._queues[purpose]
            if queue:
                self._queues[purpose] = queue  # behind the other purposes
            self.enter(size)
            future.set_result(None)


def _setting_of(request: Request, name: str, defaults: GenerateConfig) -> Any:
    """What a request sets, or the model for it; None where neither does."""
    config = request.config.over(defaults)
    name = "max_tokens" if name == "max_completion_tokens" else name
    return getattr(config, name) if name in GenerateConfig.model_fields else config.extra.get(name)
