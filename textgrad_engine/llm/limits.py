"""How much may be in flight at an endpoint, and what one call's failure means for those queued behind it."""

from __future__ import annotations

import asyncio
import copy
from collections import deque

from textgrad_engine.errors import APIError, AuthenticationFailed, QuotaExhausted
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.model import Model, Wrapper
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stop import check_stop, failing_on_stop
from textgrad_engine.llm.usage import mark

__all__ = ["Limit"]


class Limit(Wrapper):
    """At most so many calls at once, first come first served; the whole endpoint waits when it asks for that.

    - An error that carries ``retry_after`` (429, some 503) pauses everybody, not only the call that met it.
    - A refused key or an exhausted quota fails everything that is queued at that moment, so that at most the calls in
      flight reach the server; calls made later are tried again.
    - A `Stop` that is set fails the queued calls at once.

    Args:
        inner: the model that is wrapped.
        max_in_flight: calls at once, on each event loop; None for no limit.
        max_pause: the longest pause that an endpoint is granted, in seconds.
    """

    def __init__(self, inner: Model, max_in_flight: int | None = None, *, max_pause: float = 60.0) -> None:
        if max_in_flight is not None and max_in_flight < 1:
            raise ValueError(f"max_in_flight must be at least 1 (or None for no limit), got {max_in_flight}")
        super().__init__(inner)
        self.max_in_flight = max_in_flight
        self.max_pause = max_pause
        self._gates: PerLoop[_Gate] = PerLoop(lambda: _Gate(max_in_flight))

    async def complete(self, request: Request) -> Completion:
        """Send the request when there is room.

        Raises:
            Stopped: the run was stopped before it was sent.
        """
        check_stop()
        gate = self._gates.get()
        if gate.is_open():
            gate.in_flight += 1
        else:
            await gate.wait()
        try:
            check_stop()
            return await self.inner.complete(request)
        except APIError as error:
            if isinstance(error, AuthenticationFailed | QuotaExhausted):
                gate.fail_queue(error)
            elif error.retry_after:
                gate.pause(min(error.retry_after, self.max_pause))
            raise
        finally:
            gate.release()

    def __repr__(self) -> str:
        many = "" if self.max_in_flight is None else f", max_in_flight={self.max_in_flight}"
        return f"Limit({self.inner!r}{many})"


class _Gate:
    """The queue of one endpoint on one loop; touched on that loop's thread only, hence no locks."""

    def __init__(self, room: int | None) -> None:
        self.room = room
        self.in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0

    def is_open(self) -> bool:
        if self._queue or (self.room is not None and self.in_flight >= self.room):
            return False
        return not self._paused_until or self._paused_until <= asyncio.get_running_loop().time()

    async def wait(self) -> None:
        """Queue; when this returns, the caller holds a place and must `release` it."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(future)
        try:
            with failing_on_stop(future):
                await future
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release()  # a place was given, and the caller was cancelled before it could take it
            raise

    def release(self) -> None:
        self.in_flight -= 1
        self._admit()

    def pause(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if until > self._paused_until:
            self._paused_until = until
            loop.call_at(until, self._admit)

    def fail_queue(self, error: APIError) -> None:
        queue, self._queue = self._queue, deque()
        for future in queue:
            if not future.done():
                # each caller gets an object of its own: notes and tracebacks are added to it on its way up
                own = mark(copy.copy(error), sent=False)
                own.add_note("this request was queued and not sent: the endpoint had refused one before it")
                future.set_exception(own)

    def _admit(self) -> None:
        if self._paused_until > asyncio.get_running_loop().time():
            return
        while self._queue and (self.room is None or self.in_flight < self.room):
            future = self._queue.popleft()
            if not future.done():  # else it was stopped or cancelled in the queue
                self.in_flight += 1
                future.set_result(None)
