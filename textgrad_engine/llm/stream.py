"""Answers that come piece by piece: how their events become the body that an answer in one piece would have had."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from textgrad_engine.errors import ConnectionFailed, MalformedResponse
from textgrad_engine.llm.content import refusal_in, text_in
from textgrad_engine.llm.reported import failure_in, reported

_DONE = b"data: [DONE]"


def are_events(body: bytes) -> bool:
    r"""Whether a body is a stream's events, whatever was asked for and whatever its headers call it.

    Example:
        >>> are_events(b'data: {"choices": []}\n\n'), are_events(b'{"choices": []}')
        (True, False)
    """
    return body[:100].lstrip().startswith((b"data:", b"event:", b":"))


def without_end(body: bytes) -> bytes:
    r"""A body of JSON without the end of a stream, which some put behind it.

    Example:
        >>> without_end(b'{"choices": []}\ndata: [DONE]\n\n')
        b'{"choices": []}'
    """
    return body.rstrip().removesuffix(_DONE).rstrip() if body[-20:].rstrip().endswith(_DONE) else body


async def in_one_part(body: bytes) -> AsyncIterator[bytes]:
    """A body as a stream that comes at once."""
    yield body


async def events_of(parts: AsyncIterator[bytes], model: str) -> AsyncIterator[dict[str, Any] | None]:
    """The data of a stream's server-sent events, as it comes; None stands for ``[DONE]`` and is the last.

    Args:
        parts: the bytes of the response, in any division.
        model: the name that was sent, for errors.

    Raises:
        MalformedResponse: an event is no JSON object.
    """
    async for line in _lines(parts):
        if not line.startswith(b"data:"):
            continue  # comments that keep the connection alive, event names, the empty lines between events
        data = line[5:].strip()
        if data == b"[DONE]":
            yield None
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise MalformedResponse(f"{model!r} sent an event that is not JSON; it begins {_beginning(data)}") from None
        if not isinstance(event, dict):
            raise MalformedResponse(f"{model!r} sent an event that is no JSON object: {_beginning(data)}")
        yield event


async def body_of(parts: AsyncIterator[bytes], tell: Callable[[str], None], model: str) -> bytes:
    """Read a streamed chat completion to its end; returns the body that an answer in one piece would have had.

    Args:
        parts: the bytes of the response, in any division.
        tell: called with each piece of text.
        model: the name that was sent, for errors.

    Raises:
        ConnectionFailed: the stream ended before the answer did.
        MalformedResponse: an event is no chunk of a completion, or says that the endpoint failed.
        APIError: an event says so, and names a status of failure.
    """
    gathered = _Gathered()
    async for event in events_of(parts, model):
        if event is None:
            gathered.done = True
            continue
        if failure := failure_in(event):
            raise reported(failure, model) or MalformedResponse(
                f"{model!r} broke its answer off with an event that is no chunk: {json.dumps(event)[:300]}"
            )
        for piece in gathered.add(event, model):
            tell(piece)
    if not gathered.done and gathered.reason is None:
        raise broken_off(model, sum(map(len, gathered.text)))
    return gathered.body()


def broken_off(model: str, said: int) -> ConnectionFailed:
    """The error of a stream that ended too early.

    Args:
        model: the name that was sent.
        said: how many characters of text had come.
    """
    return ConnectionFailed(f"the stream of {model!r} ended after {said} characters, before its answer did")


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    # The HTTP package's own lines end at U+2028 and five other characters too, which JSON may hold as they are.
    pending = bytearray()
    async for part in parts:
        end = part.rfind(b"\n") + 1
        if end:
            pending += part[:end]
            for line in bytes(pending).splitlines():
                yield line
            pending.clear()
        pending += part[end:]
    for line in bytes(pending).splitlines():
        yield line


def _beginning(data: bytes) -> str:
    return repr(data[:80].decode("utf-8", "replace"))


class _Gathered:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.reason: str | None = None
        self.done = False
        self._refusal: list[str] = []
        self._calls: list[tuple[Any, dict[str, Any]]] = []  # in the order in which they began
        self._rest: dict[str, Any] = {}
        self._thoughts: dict[str, list[Any]] = {}

    def add(self, event: dict[str, Any], model: str) -> Iterator[str]:
        self._rest |= {key: value for key, value in event.items() if key not in ("choices", "object") and value}
        choices = event.get("choices") or []
        if not isinstance(choices, list):
            raise MalformedResponse(f"{model!r} sent a chunk whose choices are no list: {str(choices)[:200]!r}")
        for choice in choices:
            delta = choice.get("delta") if isinstance(choice, dict) else choice
            if not isinstance(choice, dict) or not isinstance(delta, dict | None):
                raise MalformedResponse(f"{model!r} sent a chunk whose delta is no object: {str(choice)[:200]!r}")
            if choice.get("index", 0) != 0:
                continue
            if (failed := reported(choice.get("error"), model)) is not None:
                raise failed
            self.reason = choice.get("finish_reason") or self.reason
            if not delta:
                continue
            self._refusal.append(refusal_in(delta))
            self._add_thoughts(delta)
            if piece := text_in(delta.get("content")):
                self.text.append(piece)
                yield piece
            calls = delta.get("tool_calls") or []
            if not isinstance(calls, list):
                raise MalformedResponse(f"{model!r} sent tool calls that are no list: {str(calls)[:200]!r}")
            for call in calls:
                self._add_call(call, model)

    def _add_thoughts(self, delta: dict[str, Any]) -> None:
        for name in ("reasoning_content", "reasoning"):
            if isinstance(piece := delta.get(name), str):
                self._thoughts.setdefault(name, []).append(piece)
        if isinstance(pieces := delta.get("reasoning_details"), list):
            self._thoughts.setdefault("reasoning_details", []).extend(pieces)

    def _add_call(self, call: Any, model: str) -> None:
        if not isinstance(call, dict):
            raise MalformedResponse(f"{model!r} sent a tool call that is no object: {str(call)[:200]!r}")
        function = call.get("function") if isinstance(call.get("function"), dict) else None
        arguments = (function or {}).get("arguments")
        if not isinstance(arguments, str | None):
            raise MalformedResponse(
                f"{model!r} sent a piece of a tool call whose arguments are no text: {str(call)[:200]!r}"
            )
        known = self._call_of(call, function or {})
        # whatever else it has is to go back with it, such as Gemini's signature of the thought behind it
        known |= {key: value for key, value in call.items() if key not in ("index", "function") and value}
        if function is not None:
            so_far = known.setdefault("function", {"name": "", "arguments": ""})
            so_far["name"] = function.get("name") or so_far["name"]
            so_far["arguments"] += arguments or ""

    def _call_of(self, piece: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
        """The call that a piece goes on with: the last one of its number, unless it begins another one.

        Some endpoints give all calls the number 0, or none (Gemini's, smolagents#1569), so a piece with a name and
        another id begins one; a name is asked for, as others make up an id for each piece. Where there is neither
        number nor id, a name begins one behind a call that is whole.
        """
        number, own = piece.get("index"), piece.get("id")
        of_it = [call for index, call in self._calls if number is None or index == number]
        if of_it:
            last = of_it[-1]
            another = last.get("id", own) != own if own else number is None and _is_whole(last)
            if not (function.get("name") and another):
                return last
        made = {"type": "function"}
        before = self._calls[-1][0] if self._calls else 0
        self._calls.append((before if number is None else number, made))
        return made

    def body(self) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.text)}
        if refusal := "".join(self._refusal):
            message["refusal"] = refusal
        for name, pieces in self._thoughts.items():
            message[name] = pieces if name == "reasoning_details" else "".join(pieces)
        if self._calls:
            with contextlib.suppress(TypeError):  # not all of them are numbers, so the order in which they began stays
                self._calls.sort(key=lambda numbered: numbered[0])
            message["tool_calls"] = [call for _, call in self._calls]
        choice = {"index": 0, "message": message, "finish_reason": self.reason}
        return json.dumps({**self._rest, "choices": [choice]}).encode()


def _is_whole(call: dict[str, Any]) -> bool:
    try:
        return isinstance(json.loads(call["function"]["arguments"]), dict)
    except (KeyError, ValueError, RecursionError):
        return False
