"""How much of a response is read: bodies come unpacked, counted, and cut off at a stated size.

Note [who unpacks]. The HTTP package unpacks a chunk in one piece, and a megabyte of packed zeros is a gigabyte of
them. So bodies are unpacked here, in small pieces that are counted one by one; only gzip is asked for, and what comes
packed otherwise is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from textgrad_engine.errors import MalformedResponse

MAX_BODY = 16 * 2**20
"""Bytes of an answer in one piece, unpacked; a million tokens of text are some five million."""

MAX_STREAM = 64 * 2**20
"""Bytes of an answer that comes in events; each word has some 300 bytes of JSON around it."""

MAX_REFUSAL = 64 * 2**10
"""Bytes that are read of a response whose status says that it is no answer; the rest is left unread."""

PACKING = "gzip"
"""What is sent as ``accept-encoding``."""

_PIECE = 64 * 2**10


def bounded() -> Callable[[Any], Awaitable[None]]:
    """A hook for responses of the HTTP package: reading one beyond its limit ends in an error.

    The error is a `MalformedResponse`, raised where the body is read. A response that is no success is cut instead,
    because its status says what is wrong.
    """
    import httpx2  # heavy, and loaded by the caller already

    class Bounded(httpx2.AsyncByteStream):
        """A body; it is unpacked and counted while it is read."""

        def __init__(self, inner: Any, body: _Body) -> None:
            self._inner = inner
            self._body = body

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._inner:
                for piece in self._body.pieces(part):
                    yield piece
                if self._body.cut:
                    return
            self._body.end()

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: Any) -> None:
        packing = response.headers.pop("content-encoding", "").strip().lower()
        streamed = "event-stream" in response.headers.get("content-type", "")
        body = _Body(response.url.host, packing, success=response.is_success, streamed=streamed)
        response.stream = Bounded(response.stream, body)

    return bound


class _Body:
    """What has been read of one body."""

    def __init__(self, host: str, packing: str, *, success: bool, streamed: bool) -> None:
        self.cut = False
        self._host = host
        self._success = success
        self._limit = MAX_REFUSAL if not success else MAX_STREAM if streamed else MAX_BODY
        self._size = 0
        self._problem = ""
        self._unpacker: zlib._Decompress | None = None
        if packing in ("gzip", "x-gzip"):
            self._unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        elif packing not in ("", "identity"):
            self._problem = f"is packed with {packing[:40]!r}, which was not asked for"

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """The unpacked pieces of a part, up to the limit.

        Raises:
            MalformedResponse: the limit is passed, or the part cannot be unpacked, and the response is a success.
        """
        if self._problem:
            self._stop(self._problem)
            return
        for piece in (part,) if self._unpacker is None else self._unpacked(self._unpacker, part):
            self._size += len(piece)
            if self._size > self._limit:
                yield piece[: len(piece) - (self._size - self._limit)]
                self._stop(f"is longer than {self._limit:,} bytes, the most that is read of one")
                return
            yield piece

    def end(self) -> None:
        """Say that there is no further part.

        Raises:
            MalformedResponse: what was packed is not complete.
        """
        if self._unpacker is not None and self._size and not self._unpacker.eof:
            self._stop("ends before what is packed in it does")

    def _unpacked(self, unpacker: zlib._Decompress, part: bytes) -> Iterator[bytes]:
        while not unpacker.eof:
            try:
                piece = unpacker.decompress(part, _PIECE)
            except zlib.error:
                self._stop("is not the gzip that it says it is")
                return
            if piece:
                yield piece
            part = unpacker.unconsumed_tail
            if not part and len(piece) < _PIECE:  # a full piece may have more of the same input behind it
                return

    def _stop(self, problem: str) -> None:
        self.cut = True
        if self._success:
            raise MalformedResponse(f"the body that {self._host!r} sent {problem}; is base_url right?")
