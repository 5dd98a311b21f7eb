"""OpenAI's two APIs: how each says a request, and how what it answers is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

from textgrad_engine.llm import outputs, responses, stream, wire
from textgrad_engine.llm.dialects import Dialect
from textgrad_engine.llm.request import INSTEAD, GenerateConfig, Request
from textgrad_engine.llm.response import Completion

Api = Literal["chat", "responses"]
"""Which of OpenAI's two APIs carries the requests: chat completions, or the Responses API."""


class Wire(NamedTuple):
    """How one of the APIs says things.

    Attributes:
        path: where requests go, behind the endpoint's address.
        arguments: the body of a request to an endpoint of this dialect; whether its answer is streamed.
        completion_of: the answer that a body holds.
        body_of: the body that a stream comes to, its texts told as they come.
        lacking: what is said where the endpoint has nothing at that path.
        instead: fields that do not go through `extra`, and what is used in their place.
    """

    path: str
    arguments: Callable[[Request, GenerateConfig, Dialect, bool], dict[str, Any]]
    completion_of: Callable[[bytes, Request, str, float, str | None], Completion]
    body_of: Callable[[AsyncIterator[bytes], Callable[[str], None], str], Awaitable[bytes]]
    lacking: str
    instead: Mapping[str, str]


WIRES: dict[Api, Wire] = {
    "chat": Wire(
        "/chat/completions",
        wire.arguments,
        wire.completion_of,
        stream.body_of,
        "; a base_url is what stands before that, mostly with /v1 at its end",
        INSTEAD,
    ),
    "responses": Wire(
        "/responses",
        responses.arguments,
        outputs.completion_of,
        outputs.body_of,
        "; what lacks that is asked with api='chat'",
        responses.SAID_OTHERWISE,
    ),
}
