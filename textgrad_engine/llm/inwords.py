"""Structured output in words: how JSON is asked for in the prompt, and how a bad answer is sent back to be mended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from textgrad_engine import templates
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.request import Message, Request, ResponseFormat

__all__ = ["MAX_REPAIRED", "repair_request", "words_for"]

MAX_REPAIRED = 20_000
"""Characters of a bad answer that are sent back; what is longer is cut, for it is paid for once more."""


def words_for(wanted: ResponseFormat) -> str:
    """The sentence that asks for JSON of a schema (the prompt ``json_in_words``).

    Example:
        >>> words_for(ResponseFormat(name="A", json_schema={"type": "object"})).splitlines()[-1]
        '{"type": "object"}'
    """
    return templates.load("json_in_words").render(schema=_dumped(wanted.json_schema))


def repair_request(request: Request, error: MalformedResponse) -> Request:
    """The request that shows the model its own answer and says what is wrong about it (the prompt ``json_repair``).

    Args:
        request: what was asked.
        error: why the answer was refused; with its `answer`.
    """
    wanted = request.config.response_format
    said = templates.load("json_repair").render(
        problem=error.problem or str(error), schema=_dumped(wanted.json_schema) if wanted is not None else ""
    )
    answer = (error.answer or "")[:MAX_REPAIRED]
    added = [Message(role="user", content=said)]
    if answer.strip():  # some endpoints refuse messages without text
        added.insert(0, Message(role="assistant", content=answer))
    return request.model_copy(update={"messages": (*request.messages, *added)})


def _dumped(schema: Mapping[str, Any]) -> str:
    return json.dumps(dict(schema), ensure_ascii=False)
