"""Who asked what, and what it used: one record per call for observers, and for meters, which add up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from textgrad_engine.attributes import attributes_told
from textgrad_engine.blocks import block
from textgrad_engine.callables import check_told
from textgrad_engine.checks import check
from textgrad_engine.dispatch.endings import MET, note_refused
from textgrad_engine.llm.charged import costs_nothing, usage_of
from textgrad_engine.llm.ids import next_id
from textgrad_engine.llm.meters import METERS, Meter
from textgrad_engine.llm.model import Model, Wrapper
from textgrad_engine.llm.redact import keys_of
from textgrad_engine.llm.request import Purpose, Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.stop import BY_OPERATION
from textgrad_engine.scoped import setting
from textgrad_engine.signed import unsigned
from textgrad_engine.wording import told

call_key: ContextVar[str] = ContextVar("textgrad_engine_call_key", default="")
"""What the calls dispatched from here belong to, e.g. the example; it ends up in `CallRecord.key`."""

call_item: ContextVar[tuple[int, ...]] = ContextVar("textgrad_engine_call_item", default=())
"""The number of the item of each `func.pmap` around the code that dispatches a call; cassettes and resumed runs know by
it which of equal requests, made in several threads at once, is which."""

call_part: ContextVar[int] = ContextVar("textgrad_engine_call_part", default=0)
"""The number of the run of a cross-validation that calls belong to, from 1 on; 0 outside of one. Cassettes know by it
which of equal requests of several runs is which."""

call_place: ContextVar[tuple[int, ...]] = ContextVar("textgrad_engine_call_place", default=())
"""Which of the conversations with tools of its example a call belongs to; see NOTE [The place of a conversation] in
`places`."""

_log = logging.getLogger("textgrad_engine.llm.usage")

call_tool: ContextVar[str] = ContextVar("textgrad_engine_call_tool", default="")
"""The id of the call inside of which code runs, of a tool (`toolcalls.ToolRecord.id`) or of a model that asks others
(`CallRecord.id`); "" outside of such."""


@attributes_told
@dataclass(frozen=True)
class CallRecord:
    """One call, when it has ended.

    Attributes:
        purpose: why it was made.
        model: the name of the model that was asked.
        request: what the caller asked.
        completion: the answer, or None when the call failed.
        error: the failure, or None when it succeeded; `asyncio.CancelledError` of a call that was cancelled after it
            had paid for an attempt. One that had not is not recorded.
        started: when it was asked, in seconds since the epoch; no two calls have the same.
        key: the value of `call_key` where it was dispatched.
        latency: seconds from being asked to its end: queue, further attempts and the waits between them included.
        attempts: how many requests were sent for it; 0 when it came from the cache, None when that is not known.
        cached: whether the answer came from the cache, or with an equal request that was under way.
        keys: what the model holds as secrets; whoever writes the call down takes them out of it.
        item: the value of `call_item` where it was dispatched.
        tool: the value of `call_tool` there.
        place: the value of `call_place` there.
        id: what tells it from others, of a model that asked others which are recorded, too; "" for any other.
        sample: which sample of the request it is (`llm.repeat`); None where no cache was asked for one.
    """

    purpose: Purpose
    model: str
    request: Request
    completion: Completion | None
    error: BaseException | None
    started: float
    key: str
    latency: float = 0.0
    attempts: int | None = None
    cached: bool = False
    keys: tuple[SecretStr, ...] = field(default=(), repr=False, compare=False)
    item: tuple[int, ...] = ()
    tool: str = ""
    place: tuple[int, ...] = ()
    id: str = ""
    sample: tuple[int, ...] | None = None


class UnderWay:
    """A metered call that is under way.

    Args:
        model: the name of its model.
        request: what it was asked.

    Attributes:
        id: what tells it from others; "" as long as nothing was asked inside of it.
        sample: which sample of the request it is; None as long as no cache was asked for one.
    """

    __slots__ = ("_model", "_request", "_where", "id", "sample")

    def __init__(self, model: str, request: Request) -> None:
        self._model, self._request, self.id = model, request, ""
        self.sample: tuple[int, ...] | None = None
        self._where = (call_key.get(), call_item.get(), call_place.get(), call_tool.get())

    def asks(self) -> str:
        """Note that something is asked inside of it; gives its id."""
        if not self.id:
            asked = unsigned(self._request.model_dump_json())
            self.id = next_id({"model": self._model, "asked": asked, "where": self._where})
        return self.id


call_under_way: ContextVar[UnderWay | None] = ContextVar("textgrad_engine_call_under_way", default=None)
"""The metered call that code belongs to, if any."""


def note_sample(sample: tuple[int, ...] | None) -> None:
    """The call that is under way, if any, is this sample of its request."""
    if (own := call_under_way.get()) is not None:
        own.sample = sample


def asks_others() -> bool:
    """Whether the call that is under way has asked models which are counted by themselves."""
    own = call_under_way.get()
    return own is not None and bool(own.id)


@contextlib.contextmanager
def call_key_scope(key: str) -> Iterator[None]:
    """Inside the block, calls are recorded under `key`.

    Raises:
        TypeError: it is no text.

    Example:
        >>> with call_key_scope("train/17"):
        ...     call_key.get()
        'train/17'
    """
    if not isinstance(key, str):
        raise TypeError(f"call_key_scope: key must be a text, got {told(key)}")
    with setting(call_key, key):
        yield


@block
@contextlib.contextmanager
def observe(callback: Callable[[CallRecord], None]) -> Iterator[None]:
    """Inside the block, `callback` gets a record of every call that ends, on the event-loop thread.

    Calls that were dispatched inside the block are reported even when they end after it. An exception of the callback
    is raised from the call: a journal that cannot be written must stop the run.

    Raises:
        TypeError: it cannot be called so.

    Example:
        >>> from textgrad_engine import llm, nn
        >>> from textgrad_engine.testing import ScriptedModel
        >>> seen = []
        >>> with llm.use_models(forward=ScriptedModel(["Rome"])), observe(seen.append):
        ...     answer = nn.ChatCompletion("{question}")(question="Capital of Italy?").data
        >>> seen[0].purpose, seen[0].completion.text
        ('forward', 'Rome')
    """
    check(observe, locals())
    check_told("observe", "callback", callback, "record")
    with setting(_observers, (*_observers.get(), callback)):
        yield


class Metered(Wrapper):
    """The outermost wrapper: tells meters and observers about each call.

    A model that asks others which are metered, too, and says in its answers what these have used, is named in the log.
    """

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._keys = keys_of(inner)
        self._warned = False

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Pass the request on and record how it ended."""
        meters, observers = METERS.get(), _observers.get()
        # where nobody listens the inner coroutine itself: a frame less in each call under way
        if not meters and not observers and not MET.get():
            return self.inner.complete(request)
        return self._recorded(request, meters, observers)

    async def _recorded(
        self, request: Request, meters: tuple[Meter, ...], observers: tuple[Callable[[CallRecord], None], ...]
    ) -> Completion:
        started, began = next_moment(), time.perf_counter()
        for each in meters:
            each.begin()
        around, own = call_under_way.get(), UnderWay(self.name, request)
        token = None if around is None else call_tool.set(around.asks())
        call_under_way.set(own)
        completion: Completion | None = None
        failure: Exception | asyncio.CancelledError | None = None
        try:
            completion = await self.inner.complete(request)
            return completion
        except (Exception, asyncio.CancelledError) as error:
            failure = error
            if around is None and not BY_OPERATION.get():  # a model that asks others may have another one for that
                note_refused(error)
            raise
        finally:
            call_under_way.set(around)
            usage = completion.usage if completion is not None else None if failure is None else usage_of(failure)
            if own.id:
                self._warn_of_twice(usage)
            failed = isinstance(failure, Exception)
            paid = usage is not None or (failure is not None and not costs_nothing(failure))
            saved = None if completion is None or not completion.cached else completion.saved or Usage()
            for each in meters:
                each.end(request.purpose, usage, failed=failed, saved=saved)
            try:
                if observers and (failed or paid):  # neither: the call was cancelled, and had paid nothing
                    record = CallRecord(
                        request.purpose,
                        self.name,
                        request,
                        completion,
                        failure,
                        started,
                        call_key.get(),
                        time.perf_counter() - began,
                        getattr(failure, "attempts", None) if completion is None else completion.attempts,
                        completion is not None and completion.cached,
                        self._keys,
                        call_item.get(),
                        call_tool.get(),
                        call_place.get(),
                        own.id,
                        own.sample,
                    )
                    for tell in observers:
                        tell(record)
            finally:
                if token is not None:
                    call_tool.reset(token)
                for each in meters:
                    each.leave()
                failure = None  # else frame and traceback keep each other alive

    def _warn_of_twice(self, usage: Usage | None) -> None:
        if not self._warned and usage is not None and usage.input_tokens + usage.output_tokens:
            self._warned = True
            _log.warning(
                "the model %r asks models that are counted by themselves, and its answers say once more what these "
                "have used, so budgets and reports count it twice; derive %s from llm.Wrapper, around what "
                "llm.resolve(...) gives: then only the calls inside are counted",
                self.name,
                type(self._core).__name__,
            )


_APART = 2e-6
"""Seconds between two calls at least; they are told apart when written down in microseconds."""

_moment = 0.0


def next_moment() -> float:
    """The time, in seconds since the epoch, and behind that of the call before.

    Records of equal requests are put in order by it. On Windows the clock ticks 64 times a second, and any clock may be
    set back.
    """
    global _moment  # noqa: PLW0603  calls are begun on one thread
    _moment = max(time.time(), _moment + _APART)
    return _moment


_observers: ContextVar[tuple[Callable[[CallRecord], None], ...]] = ContextVar("textgrad_engine_observers", default=())
