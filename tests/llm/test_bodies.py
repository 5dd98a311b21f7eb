import asyncio
import contextlib
import gzip
import json
import threading
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import errors
from textgrad_engine.llm import OpenAIModel, bodies, on_token
from textgrad_engine.llm.charged import was_sent
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer

SSE = {"content-type": "text/event-stream"}
GZIP = {"content-encoding": "gzip"}
ANSWER = json.dumps({"choices": [{"message": {"content": "packed"}, "finish_reason": "stop"}]}).encode()


@pytest.fixture
def small(monkeypatch):
    """Limits that a test reaches at once."""
    for name, limit in (("MAX_BODY", 2000), ("MAX_STREAM", 4000), ("MAX_REFUSAL", 500)):
        monkeypatch.setattr(bodies, name, limit)


@pytest.fixture(params=["plain", "wide"])
def transport(request, monkeypatch):
    """Both ways to the network: the HTTP package's own, and aiohttp."""
    if request.param == "wide":
        pytest.importorskip("aiohttp")
        monkeypatch.setattr("textgrad_engine.llm.clients.WIDE", 0)


def asked(fault, ask, *, stream=False, api="chat"):
    """What one request comes to when the server answers with this."""
    with LoopbackServer(FunctionModel(lambda request: "never"), script=[fault]) as server:
        return asked_at(server.base_url, ask, stream=stream, api=api)


def asked_at(address, ask, *, stream=False, api="chat"):
    async def main():
        model = OpenAIModel("m", base_url=address, api=api, timeout=60)
        try:
            with on_token(lambda request, piece: None) if stream else contextlib.nullcontext():
                return await model.complete(ask())
        finally:
            await model.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_body_that_is_too_long_is_malformed_and_says_the_limit(small, transport, ask, stream, api):
    """Somebody's download page must not fill the memory; it may have been charged, so it counts as sent."""
    fault = Fault(200, SSE if stream else {}, b": x" * 1500)
    limit = "4,000" if stream else "2,000"
    with pytest.raises(errors.MalformedResponse, match=f"'127.0.0.1' sent is longer than {limit} bytes") as caught:
        asked(fault, ask, stream=stream, api=api)
    assert was_sent(caught.value)


def test_a_plain_body_to_a_request_for_a_stream_has_its_own_limit(small, ask):
    """The limit goes by what comes, not by what was asked for."""
    with pytest.raises(errors.MalformedResponse, match="2,000 bytes"):
        asked(Fault(200, body="x" * 3000), ask, stream=True)


def test_up_to_the_limit_a_body_is_read(small, transport, ask):
    """One byte less would be a defect of ours."""
    text = "x" * (2000 - len(ANSWER) + len("packed"))
    body = ANSWER.replace(b"packed", text.encode())
    assert len(body) == 2000
    assert asked(Fault(200, body=body), ask).text == text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "kind"), [(500, errors.ServerFailed), (429, errors.RateLimited)])
def test_a_long_refusal_is_cut_and_keeps_its_meaning(small, transport, ask, status, kind, stream):
    """A page of HTML with a status is what the status says, however long it is."""
    with pytest.raises(kind, match="overloaded") as caught:
        asked(Fault(status, {"retry-after": "3"}, "overloaded " * 1000), ask, stream=stream)
    assert caught.value.retry_after == 3


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_packed_is_unpacked(transport, ask, stream):
    """Proxies pack; the answer is the same."""
    chunk = b'data: {"choices": [{"delta": {"content": "packed"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    headers, body = (GZIP | SSE, chunk) if stream else (GZIP, ANSWER)
    assert asked(Fault(200, headers, gzip.compress(body)), ask, stream=stream).text == "packed"


def test_only_gzip_is_asked_for(ask):
    """What can be unpacked piece by piece; other packings turn a kilobyte into gigabytes in one step."""
    heard = {}

    class Server(LoopbackServer):
        async def respond(self, method, path, headers, body):
            heard.update(headers)
            return await super().respond(method, path, headers, body)

    with Server(FunctionModel(lambda request: "ok")) as server:
        asked_at(server.base_url, ask)
    assert heard["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("headers", "body", "problem"),
    [
        ({"content-encoding": "br"}, b"\x0b\x02\x80", "packed with 'br'"),
        ({"content-encoding": "gzip, gzip"}, b"x", "packed with 'gzip, gzip'"),
        (GZIP, b"this is no gzip", "not the gzip"),
        (GZIP, gzip.compress(ANSWER, mtime=0)[:-9], "ends before"),
    ],
)
def test_a_packing_that_cannot_be_undone_is_malformed(transport, ask, headers, body, problem):
    """Typed, so that it is asked for again; a refusal keeps its status all the same."""
    with pytest.raises(errors.MalformedResponse, match=problem):
        asked(Fault(200, headers, body), ask)
    with pytest.raises(errors.ServerFailed):
        asked(Fault(503, headers, body), ask)


def test_a_bomb_does_not_go_off(transport, ask):
    """A tenth of a megabyte that unpacks to a hundred ends at the limit, in memory of its order."""
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([packer.compress(b" " * 2**20) for _ in range(128)]) + packer.flush()
    assert len(bomb) < 2**18
    tracemalloc.start()
    try:
        with pytest.raises(errors.MalformedResponse, match="16,777,216 bytes"):
            asked(Fault(200, GZIP, bomb), ask)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * bodies.MAX_BODY


class Endless:
    """A server that sends a body without an end, until the client goes away."""

    def __init__(self, kind):
        self.kind = kind
        self.sent = 0

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *failure):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def _run(self):
        self._loop.run_until_complete(self._main())

    async def _main(self):
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _serve(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {self.kind}\r\n\r\n".encode())
            while True:
                writer.write(b"x" * 2**16)
                await writer.drain()
                self.sent += 2**16
        writer.close()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_body_without_an_end_is_given_up(transport, ask, kind):
    """One line that never ends: neither the buffer of lines nor the body grows beyond the limit."""
    with Endless(kind) as server:
        with pytest.raises(errors.MalformedResponse, match="longer than"):
            asked_at(server.address, ask, stream=True)
        limit = bodies.MAX_STREAM if "event" in kind else bodies.MAX_BODY
        assert limit <= server.sent < limit + 2**24  # what the sockets' buffers hold


@given(st.binary(max_size=3000), st.integers(1, 64), st.integers(0, 9))
def test_any_division_of_a_packed_body_gives_the_body(content, size, level):
    """Parts of the network end anywhere."""
    packed = gzip.compress(content, level)
    body = bodies._Body("host", "gzip", success=True, streamed=False)
    pieces = [piece for start in range(0, len(packed), size) for piece in body.pieces(packed[start : start + size])]
    body.end()
    assert b"".join(pieces) == content


@given(st.binary(max_size=300), st.integers(1, 64))
def test_any_rubbish_is_a_typed_error(content, size):
    """Whatever claims to be packed."""
    body = bodies._Body("host", "gzip", success=True, streamed=False)
    with contextlib.suppress(errors.MalformedResponse):
        for start in range(0, len(content), size):
            list(body.pieces(content[start : start + size]))
        body.end()
