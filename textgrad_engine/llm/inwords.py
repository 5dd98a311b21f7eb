"""Structured output in words: how its form is asked for in the prompt, read, and mended when an answer lacks it.

Where an endpoint has no structured output, the schema decides: what is just a few texts is asked for between tags (see
`tags`), all else as JSON.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from textgrad_engine import templates
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import tags
from textgrad_engine.llm.parsing import after_thoughts, check_json
from textgrad_engine.llm.request import Message, Request
from textgrad_engine.llm.response_format import ResponseFormat

MAX_REPAIRED = 20_000
"""Characters of a bad answer that are sent back; what is longer is cut, for it is paid for once more."""

PROMPTS = ("json_in_words", "tags_in_words")
"""The prompts that `words_for` may use."""


def is_by_tags(wanted: ResponseFormat) -> bool:
    """Whether an answer of this form is asked for between tags, where it has to be asked for in words."""
    return tags.parts_of(wanted.json_schema) is not None


def words_for(wanted: ResponseFormat, request: Request) -> str:
    """The sentences that ask for an answer of this form (the prompt ``json_in_words`` or ``tags_in_words``).

    Args:
        wanted: the form.
        request: what is asked.

    Example:
        >>> words_for(ResponseFormat(name="A", json_schema={"type": "object"}), Request(messages=())).splitlines()[-1]
        '{"type": "object"}'
    """
    parts = tags.parts_of(wanted.json_schema)
    if parts is None:
        return templates.load("json_in_words").render(schema=_dumped(wanted.json_schema))
    return tags.words(parts, tags.nonce_of(request, wanted))


def most_words(wanted: ResponseFormat) -> str:
    """Words as long as those of `words_for` for whatever request."""
    return words_for(wanted, Request(messages=()))  # all nonces are of one length


def read(answer: str, wanted: ResponseFormat, request: Request, who: str) -> str:
    """The JSON in an answer to a request whose form was asked for in words.

    One that was asked for as JSON is passed on as it is. A JSON object of the right form is taken also where tags were
    asked for: some models answer nothing else. One inside of a text between the tags is a part of that. Thoughts before
    the answer may speak of the tags; what stands only in them is no answer.

    Args:
        answer: what was answered.
        wanted: the form that was asked for.
        request: what was asked.
        who: who answered, for the error.

    Raises:
        MalformedResponse: there is not exactly one pair of tags for each text; the message names the one.
    """
    parts = tags.parts_of(wanted.json_schema)
    if parts is None:
        return answer
    form = wanted.without_model()  # what the model says of it is told by `Check`
    with contextlib.suppress(MalformedResponse):
        return check_json(answer, form, who, among_words=False)
    nonce, rests = tags.nonce_of(request, wanted), after_thoughts(answer)
    whole = answer if not rests or nonce in rests[0] else rests[0]
    try:
        return tags.put_together(parts, tags.texts_in(whole, parts, nonce))
    except ValueError as error:
        for rest in rests:
            with contextlib.suppress(ValueError):
                return tags.put_together(parts, tags.texts_in(rest, parts, nonce))
        with contextlib.suppress(MalformedResponse):
            return check_json(answer, form, who, asked=request)
        raise MalformedResponse(
            f"{who} was asked for texts between tags ({wanted.name}), and its answer cannot be read: {error}; it began "
            f"{answer[:80]!r}",
            answer=answer,
            problem=str(error),
            tags=True,
        ) from None


def repair_request(request: Request, error: MalformedResponse) -> Request:
    """The request that shows the model its own answer and says what is wrong about it (the prompt ``json_repair``).

    Args:
        request: what was asked.
        error: why the answer was refused; with its `answer`.
    """
    wanted = None if error.tags else request.config.response_format
    said = templates.load("json_repair").render(
        problem=error.problem or str(error),
        schema=_dumped(wanted.json_schema) if wanted is not None else "",
        tags=error.tags,
    )
    answer = (error.answer or "")[:MAX_REPAIRED]
    added = [Message(role="user", content=said)]
    if answer.strip():  # some endpoints refuse messages without text
        added.insert(0, Message(role="assistant", content=answer))
    return request.model_copy(update={"messages": (*request.messages, *added)})


def _dumped(schema: Mapping[str, Any]) -> str:
    return json.dumps(dict(schema), ensure_ascii=False)
