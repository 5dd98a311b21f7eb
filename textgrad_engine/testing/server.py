"""An OpenAI-compatible HTTP server on this machine that answers with any model; for tests and benchmarks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from pydantic import SecretStr, ValidationError

from textgrad_engine.checks import at_least, between, check
from textgrad_engine.errors import (
    APIError,
    AuthenticationFailed,
    BadRequest,
    ContentFiltered,
    ContextOverflow,
    DeadlineExceeded,
    EmptyResponse,
    ModelError,
    QuotaExhausted,
    RateLimited,
    ScriptError,
    TruncatedResponse,
)
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.redact import concealed
from textgrad_engine.llm.request import GenerateConfig, Message, Request
from textgrad_engine.llm.response import Completion, FinishReason
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.testing import responses
from textgrad_engine.testing.wire import Connection, Response, events_of, json_bytes, refusal

_STATUS: tuple[tuple[type[ModelError], int, str], ...] = (
    (AuthenticationFailed, 401, "invalid_api_key"),
    (QuotaExhausted, 429, "insufficient_quota"),
    (RateLimited, 429, "rate_limit_exceeded"),
    (ContextOverflow, 400, "context_length_exceeded"),
    (BadRequest, 400, "invalid_request_error"),
    (DeadlineExceeded, 504, "timeout"),
)
_UNFINISHED: dict[type[ModelError], FinishReason] = {
    TruncatedResponse: "length",
    ContentFiltered: "content_filter",
    EmptyResponse: "stop",
}

_MOST_CHOICES = 128
"""As many as OpenAI gives to one request."""


@dataclass(frozen=True)
class Fault:
    """One response that goes wrong, in place of the model's answer.

    Attributes:
        status: the HTTP status; 0 breaks the connection without a response.
        headers: further headers, e.g. ``{"retry-after": "2"}``.
        body: the body; a dict becomes JSON.
        delay: seconds before it is sent, ``math.inf`` for never; the client may have given up by then.
        drop: break the connection in the middle of the body.
        drip: seconds between the 16 pieces in which the body is sent, for an endpoint that dawdles.
    """

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes | Mapping[str, Any] = ""
    delay: float = 0.0
    drop: bool = False
    drip: float = 0.0

    def __post_init__(self) -> None:
        check(Fault, vars(self), between(0, 999, "status"), at_least(0, "delay", "drip"))


class LoopbackServer:
    """A server on 127.0.0.1 that speaks ``POST /v1/chat/completions`` and ``/v1/responses``, and ``GET /v1/models``.

    Answers are streamed where the client asks for it, and of chat completions there are as many choices as it asks for
    (``n``), for each of which the model is asked once. The server runs on an event loop in a thread of its own, from
    entering its ``with`` block to leaving it. Errors of the model become the responses that an endpoint would send. The
    purpose of a request is not sent, so all of them reach the model as ``"forward"``.

    Args:
        model: answers the requests; ``response_format`` and all sampling settings reach it in the `Request`.
        latency: seconds to wait before each answer.
        script: what happens to the first requests, in order: a `Fault` is sent, None lets the model answer.
        api_key: the key that requests must carry; None accepts any.
        faults: decides what happens to the requests after the script: called with the number of the request, the first
            being 1, and returns a `Fault`, or None to let the model answer.

    Attributes:
        requests: how many completions were asked for so far.
        in_flight: how many are being answered now.
        peak: how many were being answered at once at most.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> with LoopbackServer(ScriptedModel([])) as server:
        ...     server.base_url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(
        self,
        model: Model,
        *,
        latency: float = 0.0,
        script: Iterable[Fault | None] = (),
        api_key: str | SecretStr | None = None,
        faults: Callable[[int], Fault | None] | None = None,
    ) -> None:
        api_key = concealed(api_key)
        check(LoopbackServer.__init__, locals(), at_least(0, "latency"))
        self.model = model
        self.latency = latency
        self.api_key = api_key
        self.requests = 0
        self.in_flight = 0
        self.peak = 0
        self._script = list(script)
        self._faults = faults
        self.connections: set[Connection] = set()
        self._port = 0

    @property
    def closed(self) -> bool:
        """Whether it takes no connections."""
        return not self._port

    @property
    def base_url(self) -> str:
        """The address to give as `base_url`.

        Raises:
            RuntimeError: the server is not running.
        """
        if not self._port:
            raise RuntimeError("the server runs inside its with block only: with LoopbackServer(model) as server: ...")
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        if self._port:
            raise RuntimeError("this LoopbackServer is running already; make another one")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="loopback-server", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _open(self) -> None:
        self._server = await self._loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._port = 0
        for connection in list(self.connections):
            connection.abort()
        # Answers under way, and clients that are being let in, whose connections break off as soon as they are made: a
        # server that is closed before would fail over them, or wait for them to go.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.gather(*others, return_exceptions=True)
        self._server.close()
        await self._server.wait_closed()
        await asyncio.sleep(0)  # transports that were just closed tell the loop so in its next turn

    async def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """The response to one request."""
        path = path.partition("?")[0].rstrip("/")
        if path == "/v1/models":
            if method != "GET":
                return refusal(405, "use GET", "method_not_allowed")
            listed = {"id": self.model.name, "object": "model", "created": 0, "owned_by": "textgrad_engine"}
            return Response(200, json_bytes({"object": "list", "data": [listed]}))
        if path not in ("/v1/chat/completions", "/v1/responses"):
            there = "/v1/chat/completions, /v1/responses and /v1/models"
            return refusal(404, f"there is no {path or '/'}; there are {there}", "not_found")
        if method != "POST":
            return refusal(405, "use POST", "method_not_allowed")
        self.requests += 1
        number = self.requests
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            if number <= len(self._script):
                fault = self._script[number - 1]
            else:
                fault = self._faults(number) if self._faults is not None else None
            if fault is not None:
                return await _faulty(fault)
            key = self.api_key
            if key is not None and headers.get("authorization") != f"Bearer {key.get_secret_value()}":
                return refusal(401, "Incorrect API key provided", "invalid_api_key")
            if self.latency:
                await asyncio.sleep(self.latency)
            return await self._answer(number, body, new=path == "/v1/responses")
        finally:
            self.in_flight -= 1

    async def _answer(self, number: int, body: bytes, *, new: bool) -> Response:
        try:
            asked = json.loads(body)
            request = responses.request_of(asked) if new else _request(asked)
            count = 1 if new else _choices(asked)
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # a ValidationError is a ValueError
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            return refusal(
                400, f"the request is no {'response' if new else 'chat completion'}: {said}", "invalid_request_error"
            )
        try:
            completions = await asyncio.gather(*map(self._complete, [request] * count, range(count)))
        except ModelError as error:
            return _error_response(error)
        except ScriptError as error:  # no outage, which clients would wait for the end of
            return refusal(400, f"ScriptError: {error}", "invalid_request_error")
        except Exception as error:  # the client gets it, as from any server, and the server goes on
            return refusal(500, f"{type(error).__name__}: {error}", "server_error")
        name = str(asked["model"])
        whole = responses.body_of(completions[0], number, name) if new else _body(completions, number, name)
        if asked.get("stream"):
            events = responses.events_of(whole) if new else events_of(whole, asked.get("stream_options"))
            return Response(200, events, {"content-type": "text/event-stream"})
        return Response(200, json_bytes(whole))

    async def _complete(self, request: Request, index: int) -> Completion:
        """One choice; what the endpoint would send of an answer that is none."""
        try:
            # Or a model that samples would give the same each time; the first is the one that is asked for alone, whose
            # own numbers of samples are to stay what they are.
            with repeat(index) if index else contextlib.nullcontext():
                return await self.model.complete(request)
        except tuple(_UNFINISHED) as error:
            reason = next(reason for kind, reason in _UNFINISHED.items() if isinstance(error, kind))
            return Completion(text="", finish_reason=reason)


async def _faulty(fault: Fault) -> Response:
    if fault.delay == math.inf:
        await asyncio.get_running_loop().create_future()  # until the client goes away
    elif fault.delay:
        await asyncio.sleep(fault.delay)
    body = fault.body
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json_bytes(body)
    pieces = 16 if fault.drip else 1
    return Response(fault.status, content, fault.headers, fault.drop, pieces, fault.drip)


def _request(asked: Mapping[str, Any]) -> Request:
    apart = ("model", "messages", "n", "stream", "stream_options", "response_format")
    settings = {key: value for key, value in asked.items() if key not in apart}
    if "max_completion_tokens" in settings:
        settings["max_tokens"] = settings.pop("max_completion_tokens")
    if isinstance(settings.get("stop"), str):
        settings["stop"] = (settings["stop"],)
    known = {key: settings.pop(key) for key in list(settings) if key in GenerateConfig.model_fields and key != "extra"}
    wanted = asked.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        described = wanted["json_schema"]
        known["response_format"] = ResponseFormat(name=described["name"], json_schema=described["schema"])
    elif wanted is not None:
        settings["response_format"] = wanted
    messages = tuple(Message.model_validate(_plain(message)) for message in asked["messages"])
    if not messages or "model" not in asked:
        raise ValueError("it needs a model and at least one message")
    return Request(messages=messages, config=GenerateConfig(**known, extra=settings))


def _choices(asked: Mapping[str, Any]) -> int:
    """How many answers are asked for."""
    count = asked.get("n")
    if count is None:
        return 1
    if type(count) is not int or not 1 <= count <= _MOST_CHOICES:
        raise ValueError(f"n is a whole number from 1 to {_MOST_CHOICES}, got {count!r:.40}")
    return count


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in message.items() if key in Message.model_fields}
    return {**made, "content": made.get("content") or ""}


def _body(completions: Sequence[Completion], number: int, model: str) -> dict[str, Any]:
    used = [completion.usage for completion in completions]
    read, written = used[0].input_tokens, sum(each.output_tokens for each in used)  # the prompt counts once
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {"index": index, "message": _message(completion), "finish_reason": completion.finish_reason}
            for index, completion in enumerate(completions)
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": used[0].cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": sum(each.reasoning_tokens for each in used)},
        },
    }


def _message(completion: Completion) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": completion.text}
    if completion.tool_calls:
        message["tool_calls"] = [dict(call) for call in completion.tool_calls]
    return message


def _error_response(error: ModelError) -> Response:
    status, code = 502, "bad_gateway"
    own = getattr(error, "status", None)
    for kind, its_status, its_code in _STATUS:
        if isinstance(error, kind):
            status, code = its_status, its_code
            break
    if isinstance(own, int):
        status = own
    wait = error.retry_after if isinstance(error, APIError) else None
    response = refusal(status, str(error), code)
    return response if wait is None else Response(status, response.body, {"retry-after": f"{wait:g}"})
