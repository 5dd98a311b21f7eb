"""Answers that come piece by piece: who wants to see them, and how their events become one body."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

from textgrad_engine.errors import ConnectionFailed, MalformedResponse
from textgrad_engine.llm.request import Request

__all__ = ["body_of", "listeners", "on_token"]

Listener = Callable[[Request, str | None], None]


@contextlib.contextmanager
def on_token(callback: Listener) -> Iterator[None]:
    """Inside the block, calls of endpoints are streamed, and `callback` sees each piece of text as it comes.

    It runs on the event-loop thread and must not block; pieces of calls that run at once come mixed. Answers from a
    cache, and from models that are no endpoint, come without pieces. An exception of the callback is raised from the
    call.

    Args:
        callback: called with the request and a piece of the answer's text; with None when what came so far is void
            (the connection broke), and the text begins anew or the call fails.

    Example:
        >>> with on_token(lambda request, piece: None):
        ...     len(listeners())
        1
    """
    token = _listeners.set((*_listeners.get(), callback))
    try:
        yield
    finally:
        _listeners.reset(token)


def listeners() -> tuple[Listener, ...]:
    """Those who want to see the pieces of calls made here."""
    return _listeners.get()


async def body_of(lines: AsyncIterator[str], tell: Callable[[str], None], model: str) -> bytes:
    """Read a stream of server-sent events to its end; returns the body that an answer in one piece would have had.

    Args:
        lines: the lines of the response.
        tell: called with each piece of text.
        model: the name that was sent, for errors.

    Raises:
        ConnectionFailed: the stream ended before the answer did.
        MalformedResponse: an event is no chunk of a completion, or says that the endpoint failed.
    """
    gathered = _Gathered()
    async for line in lines:
        if not line.startswith("data:"):
            continue  # comments that keep the connection alive, event names, the empty lines between events
        data = line[5:].strip()
        if data == "[DONE]":
            gathered.done = True
            break
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise MalformedResponse(f"{model!r} sent an event that is not JSON; it begins {data[:80]!r}") from None
        if not isinstance(event, dict) or event.get("error"):
            raise MalformedResponse(f"{model!r} broke its answer off with an event that is no chunk: {data[:300]!r}")
        for piece in gathered.add(event, model):
            tell(piece)
    if not gathered.done and gathered.reason is None:
        raise ConnectionFailed(
            f"the stream of {model!r} ended after {sum(map(len, gathered.text))} characters, before its answer did"
        )
    return gathered.body()


class _Gathered:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.reason: str | None = None
        self.done = False
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._rest: dict[str, Any] = {}

    def add(self, event: dict[str, Any], model: str) -> Iterator[str]:
        self._rest |= {key: value for key, value in event.items() if key not in ("choices", "object") and value}
        for choice in event.get("choices") or ():
            delta = choice.get("delta") if isinstance(choice, dict) else None
            if not isinstance(delta, dict | None):
                raise MalformedResponse(f"{model!r} sent a chunk whose delta is no object: {str(choice)[:200]!r}")
            if choice.get("index", 0) != 0:
                continue
            self.reason = choice.get("finish_reason") or self.reason
            for key, parts in (("content", self.text), ("refusal", self._refusal)):
                piece = (delta or {}).get(key)
                if isinstance(piece, str) and piece:
                    parts.append(piece)
                    if key == "content":
                        yield piece
            for call in (delta or {}).get("tool_calls") or ():
                self._add_call(call, model)

    def _add_call(self, call: Any, model: str) -> None:
        if not isinstance(call, dict):
            raise MalformedResponse(f"{model!r} sent a tool call that is no object: {str(call)[:200]!r}")
        known = self._calls.setdefault(call.get("index") or 0, {"type": "function"})
        known |= {key: value for key, value in call.items() if key in ("id", "type") and value}
        function = call.get("function")
        if isinstance(function, dict):
            so_far = known.setdefault("function", {"name": "", "arguments": ""})
            so_far["name"] = function.get("name") or so_far["name"]
            so_far["arguments"] += function.get("arguments") or ""

    def body(self) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.text)}
        if self._refusal:
            message["refusal"] = "".join(self._refusal)
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        choice = {"index": 0, "message": message, "finish_reason": self.reason}
        return json.dumps({**self._rest, "choices": [choice]}).encode()


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("textgrad_engine_on_token", default=())
