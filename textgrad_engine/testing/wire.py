"""HTTP/1.1 as the loopback server speaks it: one connection, its requests and responses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

_PHRASES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
_MAX_BODY = 64 * 2**20


class Server(Protocol):
    """What a connection wants of its server."""

    connections: set[Connection]

    @property
    def closed(self) -> bool:
        """Whether it takes no connections any more."""
        ...

    async def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """The response to one request."""
        ...


@dataclass
class Response:
    """What is sent back.

    Attributes:
        status: the HTTP status; 0 breaks the connection off.
        body: the whole body.
        headers: further headers.
        drop: break off in the middle of the body.
        pieces: in how many pieces the body is sent.
        drip: seconds between them.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    pieces: int = 1
    drip: float = 0.0


class Connection(asyncio.Protocol):
    """One kept-alive HTTP/1.1 connection; requests on it are answered one after the other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.task: asyncio.Task[None] | None = None
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not say that they are
        self.server.connections.add(self)
        if self.server.closed:  # it has told all connections that there were
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone: nobody waits for the answer."""
        self._transport = None
        self.server.connections.discard(self)
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Take in bytes; a whole request is answered."""
        self._buffer += data
        if self.task is None:
            self._next()

    def abort(self) -> None:
        """Break off at once."""
        if self.task is not None:
            self.task.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > 65536:
                self._send(refusal(431, "the headers are too long", "invalid_request_error"), keep=False)
            return
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        parts = first.split(" ")
        if len(parts) != 3 or not headers.get("content-length", "0").isdigit():
            self._send(refusal(400, "this is no HTTP/1.1 request", "invalid_request_error"), keep=False)
            return
        if "transfer-encoding" in headers:
            self._send(refusal(411, "send a Content-Length", "invalid_request_error"), keep=False)
            return
        length = int(headers.get("content-length", "0"))
        if length > _MAX_BODY:
            self._send(refusal(413, "the body is too long", "invalid_request_error"), keep=False)
            return
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self.task = asyncio.ensure_future(self._serve(parts[0], parts[1], headers, body))

    async def _serve(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        response = await self.server.respond(method, path, headers, body)
        keep = headers.get("connection", "").lower() != "close"
        if response.drip:
            await self._drip(response)
        else:
            self._send(response, keep=keep)
        self.task = None
        if self._transport is not None and self._buffer:
            self._next()

    async def _drip(self, response: Response) -> None:
        """Send a body piece by piece; the task is cancelled when the client goes away."""
        size = -(-len(response.body) // response.pieces)
        self._send(response, keep=True, so_far=0)
        for start in range(0, len(response.body), max(size, 1)):
            await asyncio.sleep(response.drip)
            if self._transport is not None:
                self._transport.write(response.body[start : start + size])

    def _send(self, response: Response, *, keep: bool, so_far: int | None = None) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if not response.status:
            self._transport.abort()
            return
        headers = {
            "content-type": "application/json",
            **{key.lower(): value for key, value in response.headers.items()},
        }
        headers["content-length"] = str(len(response.body))
        head = f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, 'Status')}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head += "\r\n" if keep else "connection: close\r\n\r\n"
        body = response.body[: len(response.body) // 2 if response.drop else so_far]
        self._transport.write(head.encode("latin-1") + body)
        if response.drop or not keep:
            self._transport.close()


def events_of(whole: Mapping[str, Any], options: Any) -> bytes:
    """A completion's body as server-sent events: a word each, then the end, and the usage where it was asked for."""
    common = {key: value for key, value in whole.items() if key not in ("choices", "usage", "object")}
    common["object"] = "chat.completion.chunk"
    events: list[dict[str, Any]] = []
    for choice in whole["choices"]:
        message = choice["message"]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": word} for word in re.findall(r"\s*\S+|\s+$", message["content"])]
        deltas += [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(message.get("tool_calls", ()))]
        ends = [*[(delta, None) for delta in deltas], ({}, choice["finish_reason"])]
        for delta, ended in ends:
            part = {"index": choice["index"], "delta": delta, "finish_reason": ended}
            events.append({**common, "choices": [part]})
    if isinstance(options, Mapping) and options.get("include_usage"):
        events.append({**common, "choices": [], "usage": whole["usage"]})
    return b"".join(b"data: " + json_bytes(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def refusal(status: int, message: str, code: str) -> Response:
    """An error as OpenAI words it."""
    return Response(status, json_bytes({"error": {"message": message, "type": code, "code": code, "param": None}}))


def json_bytes(value: Any) -> bytes:
    """JSON, also of text that holds what is no text."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
