"""An OpenAI-compatible HTTP server on this machine that answers with any model; for tests and benchmarks."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

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
    TruncatedResponse,
)
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, Message, Request, ResponseFormat
from textgrad_engine.llm.response import Completion, FinishReason

__all__ = ["Fault", "LoopbackServer"]

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
_PHRASES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
_MAX_BODY = 64 * 2**20


@dataclass(frozen=True)
class Fault:
    """One response that goes wrong, in place of the model's answer.

    Attributes:
        status: the HTTP status.
        headers: further headers, e.g. ``{"retry-after": "2"}``.
        body: the body; a dict becomes JSON.
        delay: seconds before it is sent; the client may have given up by then.
        drop: break the connection in the middle of the body.
    """

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes | Mapping[str, Any] = ""
    delay: float = 0.0
    drop: bool = False


class LoopbackServer:
    """A server on 127.0.0.1 that speaks ``POST /v1/chat/completions`` (not streamed) and ``GET /v1/models``.

    It runs on an event loop in a thread of its own, from entering its ``with`` block to leaving it. Errors of the model
    become the responses that an endpoint would send.

    Args:
        model: answers the requests; ``response_format`` and all sampling settings reach it in the `Request`.
        latency: seconds to wait before each answer.
        script: what happens to the first requests, in order: a `Fault` is sent, None lets the model answer.
        api_key: the key that requests must carry; None accepts any.

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
        api_key: str | None = None,
    ) -> None:
        self.model = model
        self.latency = latency
        self.api_key = api_key
        self.requests = 0
        self.in_flight = 0
        self.peak = 0
        self._script = list(script)
        self._connections: set[_Connection] = set()
        self._port = 0

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
        self._server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._port = 0
        self._server.close()
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        for connection in list(self._connections):
            connection.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0)  # transports that were just closed tell the loop so in its next turn

    async def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> _Response:
        """The response to one request."""
        path = path.partition("?")[0].rstrip("/")
        if path == "/v1/models":
            if method != "GET":
                return _refusal(405, "use GET", "method_not_allowed")
            listed = {"id": self.model.name, "object": "model", "created": 0, "owned_by": "textgrad_engine"}
            return _Response(200, _json({"object": "list", "data": [listed]}))
        if path != "/v1/chat/completions":
            return _refusal(
                404, f"there is no {path or '/'}; there are /v1/chat/completions and /v1/models", "not_found"
            )
        if method != "POST":
            return _refusal(405, "use POST", "method_not_allowed")
        self.requests += 1
        number = self.requests
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            fault = self._script[number - 1] if number <= len(self._script) else None
            if fault is not None:
                return await _faulty(fault)
            if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
                return _refusal(401, "Incorrect API key provided", "invalid_api_key")
            if self.latency:
                await asyncio.sleep(self.latency)
            return await self._answer(number, body)
        finally:
            self.in_flight -= 1

    async def _answer(self, number: int, body: bytes) -> _Response:
        try:
            asked = json.loads(body)
            request = _request(asked)
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # a ValidationError is a ValueError
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            return _refusal(400, f"the request is no chat completion: {said}", "invalid_request_error")
        try:
            completion = await self.model.complete(request)
        except ModelError as error:
            for kind, reason in _UNFINISHED.items():
                if isinstance(error, kind):
                    completion = Completion(text="", finish_reason=reason)
                    break
            else:
                return _error_response(error)
        except Exception as error:  # the client gets it, as from any server, and the server goes on
            return _refusal(500, f"{type(error).__name__}: {error}", "server_error")
        return _Response(200, _json(_body(completion, number, str(asked["model"]))))


@dataclass
class _Response:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False


class _Connection(asyncio.Protocol):
    """One kept-alive HTTP/1.1 connection; requests on it are answered one after the other."""

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        self.task: asyncio.Task[None] | None = None
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.server._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.server._connections.discard(self)
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self.task is None:
            self._next()

    def abort(self) -> None:
        if self.task is not None:
            self.task.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > 65536:
                self._send(_refusal(431, "the headers are too long", "invalid_request_error"), keep=False)
            return
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        parts = first.split(" ")
        if len(parts) != 3 or not headers.get("content-length", "0").isdigit():
            self._send(_refusal(400, "this is no HTTP/1.1 request", "invalid_request_error"), keep=False)
            return
        if "transfer-encoding" in headers:
            self._send(_refusal(411, "send a Content-Length", "invalid_request_error"), keep=False)
            return
        length = int(headers.get("content-length", "0"))
        if length > _MAX_BODY:
            self._send(_refusal(413, "the body is too long", "invalid_request_error"), keep=False)
            return
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self.task = asyncio.ensure_future(self._serve(parts[0], parts[1], headers, body))

    async def _serve(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        response = await self.server.respond(method, path, headers, body)
        self._send(response, keep=headers.get("connection", "").lower() != "close")
        self.task = None
        if self._transport is not None and self._buffer:
            self._next()

    def _send(self, response: _Response, *, keep: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        headers = {
            "content-type": "application/json",
            **{key.lower(): value for key, value in response.headers.items()},
        }
        headers["content-length"] = str(len(response.body))
        head = f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, 'Status')}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head += "\r\n" if keep else "connection: close\r\n\r\n"
        body = response.body[: len(response.body) // 2] if response.drop else response.body
        self._transport.write(head.encode("latin-1") + body)
        if response.drop or not keep:
            self._transport.close()


async def _faulty(fault: Fault) -> _Response:
    if fault.delay:
        await asyncio.sleep(fault.delay)
    body = fault.body
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else _json(body)
    return _Response(fault.status, content, fault.headers, fault.drop)


def _request(asked: Mapping[str, Any]) -> Request:
    if asked.get("stream"):
        raise ValueError("this server does not stream; leave out stream")
    settings = {
        key: value for key, value in asked.items() if key not in ("model", "messages", "stream", "response_format")
    }
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


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in message.items() if key in Message.model_fields}
    return {**made, "content": made.get("content") or ""}


def _body(completion: Completion, number: int, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": completion.text}
    if completion.tool_calls:
        message["tool_calls"] = [dict(call) for call in completion.tool_calls]
    usage = completion.usage
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": completion.finish_reason}],
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        },
    }


def _error_response(error: ModelError) -> _Response:
    status, code = 502, "bad_gateway"
    own = getattr(error, "status", None)
    for kind, its_status, its_code in _STATUS:
        if isinstance(error, kind):
            status, code = its_status, its_code
            break
    if isinstance(own, int):
        status = own
    wait = error.retry_after if isinstance(error, APIError) else None
    response = _refusal(status, str(error), code)
    return response if wait is None else _Response(status, response.body, {"retry-after": f"{wait:g}"})


def _refusal(status: int, message: str, code: str) -> _Response:
    return _Response(status, _json({"error": {"message": message, "type": code, "code": code, "param": None}}))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
