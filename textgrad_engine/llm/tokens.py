"""How many tokens a text has: exactly where the model's vocabulary is to be had (see `vocabulary`), else an estimate.

`count` and `count_request` say what it will probably be; `most_of_request` says what it cannot pass, for budgets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from textgrad_engine import templates
from textgrad_engine.llm.images import images_in, tokens_of
from textgrad_engine.llm.inwords import PROMPTS, most_words
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.vocabulary import encoding_of

_MESSAGE_OVERHEAD = 4
"""Tokens that a chat format spends on each message besides its text."""

MOST_PER_MESSAGE = 16
"""Tokens that no chat format passes on one message besides its text: role, marks around it, the space before it."""

MOST_AROUND = 128
"""Tokens that no chat format passes on a conversation: marks, the date, a system message of the format's own."""

_MOST_FOR_TOOLS = 1_024
"""Tokens of the instructions that chat formats put before tools; the longest known take a few hundred."""

_MOST_OF_AN_IMAGE = 8_192
"""Tokens that an image comes to at most: 6,404 are four tiles of a Llama at Together, others stay below."""

_MOST_AROUND_TOOL_IMAGE = 300
"""The bytes that say which image it is that a tool gave, there and where it is (`tool_images`)."""
_MOST_OF_AN_IMAGE_BY = {"gpt-4o-mini": 49_152}
"""The same for models that count otherwise: 2,833 tokens and 5,667 for each of up to eight tiles."""

_NOT_IN_CONTENT = ("reasoning", "message_fields")
"""The items of a message that hold more than its content and tool calls."""

_LONGEST_EXACT = 200_000
"""Characters above which the estimate is used anyway: tokenizing would hold up the event loop for too long."""


def count(text: str, model: str | None = None) -> int:
    """The number of tokens of a text.

    Args:
        text: the text.
        model: the model that will read it. Without one, or where its vocabulary is neither on this disk nor comes
            within `vocabulary.DEADLINE` (waited for once in a process, and never on a thread whose event loop runs),
            the number is an estimate: four ASCII characters a token, every other character one token.

    Example:
        >>> count("Sort the ticket.")
        4
    """
    encoding = encoding_of(model) if model and len(text) <= _LONGEST_EXACT else None
    if encoding is not None:
        return len(encoding.encode_ordinary(text))
    if text.isascii():
        return -(-len(text) // 4)
    ascii_only = len(text.encode("ascii", "ignore"))
    return -(-ascii_only // 4) + len(text) - ascii_only


def count_request(request: Request, model: str | None = None, *, seen_by: str | None = None) -> int:
    """The number of tokens that a request has: messages with the chat format around them, tools and schema.

    Images count as `images.tokens_of` says; other parts that are not text are not counted.

    Args:
        request: what is asked.
        model: whose vocabulary is used, and who sees the images.
        seen_by: who sees the images, where texts are estimated without a vocabulary.
    """
    total = sum([count(message.text, model) + _MESSAGE_OVERHEAD for message in request.messages])
    for message in request.messages:
        if not isinstance(message.content, str):
            total += sum([tokens_of(part, seen_by or model) for part in images_in(message.content)])
        if message.tool_calls:
            total += count(_dumped(message.tool_calls), model)
        if message.items:
            total += count(_dumped([item for item in message.items if item.get("type") in _NOT_IN_CONTENT]), model)
    config = request.config
    if config.tools:
        total += count(_dumped(config.tools), model)
    if config.response_format is not None:
        total += count(_dumped(config.response_format.json_schema), model)
    return total


def most_of_request(request: Request, model: str | None = None) -> int:
    """A number of input tokens that the request cannot pass, whichever tokenizer counts it.

    Each token of a byte-level tokenizer covers at least one byte of the text's UTF-8, so a text has at most as many
    tokens as bytes (about four times what it really has in English). To this come `MOST_PER_MESSAGE`, `MOST_AROUND`,
    for tools twice the bytes of their JSON, and for structured output its schema and the words that some endpoints are
    asked for it with. A file that is named but not sent along is beyond any bound that could be known here.

    Args:
        request: what is asked.
        model: the model that will read it; images count for more with some.

    Example:
        >>> from textgrad_engine.llm.request import Message
        >>> most_of_request(Request(messages=(Message(role="user", content="猫 sat"),)))
        151
    """
    image = _MOST_OF_AN_IMAGE
    if model is not None:
        image = next((most for name, most in _MOST_OF_AN_IMAGE_BY.items() if name in model), image)
    total = MOST_AROUND
    for message in request.messages:
        content = message.content
        total += MOST_PER_MESSAGE + (_bytes(content) if isinstance(content, str) else _most_of_parts(content, image))
        if message.tool_calls or message.tool_call_id:
            total += _bytes(_dumped(message.tool_calls or ())) + _bytes(message.tool_call_id or "")
        if message.items:
            total += _bytes(_dumped(message.items))
        if message.role == "tool" and (images := len(images_in(content))):
            total += MOST_PER_MESSAGE + images * _MOST_AROUND_TOOL_IMAGE
    config = request.config
    if config.tools:
        total += _MOST_FOR_TOOLS + 2 * _bytes(_dumped(config.tools))
    if config.response_format is not None:
        total += _most_of_form(config.response_format)
    return total


def _most_of_parts(parts: list[dict[str, Any]], image: int) -> int:
    total = 0
    for part in parts:
        kind = part.get("type")
        if kind == "image_url":
            total += image
        else:
            total += _bytes(part.get("text", "")) if kind == "text" else _bytes(json.dumps(part, default=str))
    return total


def _most_of_form(wanted: ResponseFormat) -> int:
    """The bytes of a form: its name, its schema, and the words that ask for it where an endpoint wants them besides.

    Kept for the schemas that a program asks for again and again.
    """
    schema, prompts = wanted.json_schema, [templates.load(name) for name in PROMPTS]
    known = _sizes.get(id(schema))
    if known is None or known[0] is not schema or known[1] != prompts:
        if len(_sizes) >= _MOST_SIZES:
            _sizes.clear()
        size = _bytes(_dumped(schema)) + _bytes(most_words(wanted))
        known = _sizes[id(schema)] = schema, prompts, size  # with the schema, so that its id stays its own
    return known[2] + _bytes(wanted.name)


_MOST_SIZES = 256
_sizes: dict[int, tuple[Mapping[str, Any], list[templates.Prompt], int]] = {}


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _dumped(value: Any) -> str:
    plain = dict(value) if isinstance(value, Mapping) else [dict(each) for each in value]
    return json.dumps(plain, ensure_ascii=False, default=str)


def method(model: str | None = None) -> str:
    """How `count` counts for a model: ``"estimate"``, or the name of the vocabulary.

    Example:
        >>> method()
        'estimate'
    """
    return str(encoding.name) if model and (encoding := encoding_of(model)) is not None else "estimate"
