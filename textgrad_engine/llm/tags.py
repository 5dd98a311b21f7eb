"""Texts between tags: an answer's form where an endpoint has no structured output, and the answer is text.

JSON wants every quote and line end in a text escaped, which models get wrong in long texts; and asked for it, they
write worse ones (Gauthier, "LLMs are bad at returning code in JSON", aider, 2024). Between tags nothing is escaped. The
tags end in a nonce made by hashing the whole request, so that no text in it can hold one, and equal requests stay
equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from textgrad_engine import fences, templates
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response_format import ResponseFormat

MOST_PARTS = 4
"""Texts that an answer may have; with more, there are more tags to get right than a JSON object has quotes."""

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_LONGEST_LABEL = 64
_OF_AN_OBJECT = {"type", "properties", "required", "additionalProperties", "title"}
_OF_A_TEXT = {"type", "title", "description"}


class Part(NamedTuple):
    """One text of an answer.

    Attributes:
        path: the keys that lead to it in the JSON object.
        says: what the schema says about it.
    """

    path: tuple[str, ...]
    says: str

    @property
    def label(self) -> str:
        """The name of its tags."""
        return ".".join(self.path)


def parts_of(schema: Mapping[str, Any]) -> tuple[Part, ...] | None:
    """The texts that an answer of this schema consists of; None when it is not just a few texts.

    Such a schema is an object whose keys are all required and are texts without further rules, or objects like it. For
    numbers, lists and choices JSON says more than tags could.

    Args:
        schema: a JSON schema.

    Example:
        >>> text = {"type": "string"}
        >>> (part,) = parts_of({"type": "object", "properties": {"text": text}, "required": ["text"],
        ...                     "additionalProperties": False})
        >>> part.label
        'text'
    """
    found = _texts_of(schema, ())
    if found is None or not 1 <= len(found) <= MOST_PARTS:
        return None
    fit = all(_LABEL.fullmatch(part.label) and len(part.label) <= _LONGEST_LABEL for part in found)
    return tuple(found) if fit and len({part.label for part in found}) == len(found) else None


def _texts_of(schema: Any, path: tuple[str, ...]) -> list[Part] | None:
    if not isinstance(schema, Mapping) or len(path) > MOST_PARTS:
        return None
    if schema.get("type") == "string":
        return [Part(path, str(schema.get("description") or "..."))] if path and schema.keys() <= _OF_A_TEXT else None
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not schema.keys() <= _OF_AN_OBJECT:
        return None
    if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
        return None
    found: list[Part] = []
    for key, below in properties.items():
        inside = _texts_of(below, (*path, key))
        if not inside or len(found) > MOST_PARTS:
            return None
        found += inside
    return found


def nonce_of(request: Request, wanted: ResponseFormat) -> str:
    """What the tags end in: it occurs nowhere in the request, and is the same for an equal one.

    Args:
        request: what is asked.
        wanted: the form of its answer.
    """
    parts = [_dumped(wanted.json_schema), _dumped(request.config.tools)]
    for message in request.messages:
        content = message.content
        parts += [message.role, content if isinstance(content, str) else _dumped(content)]
        parts += [_dumped(message.tool_calls), _dumped(message.items)]
    return fences.nonce_for("\0".join(parts), wanted.name)


def words(parts: Sequence[Part], nonce: str) -> str:
    """The sentences that ask for texts between tags (the prompt ``tags_in_words``)."""
    shown = [{"label": part.label, "says": part.says} for part in parts]
    return templates.load("tags_in_words").render(parts=shown, nonce=nonce)


def texts_in(answer: str, parts: Sequence[Part], nonce: str) -> list[str]:
    r"""The texts between the tags of an answer: exactly one pair for each, and none inside another.

    What stands outside the tags is passed over. One line end after an opening tag and one before a closing tag belong
    to the tags.

    Args:
        answer: what was answered.
        parts: the texts that were asked for.
        nonce: what their tags end in.

    Raises:
        ValueError: a pair is missing, not whole, there twice or inside another; the message names it.

    Example:
        >>> texts_in('Sure!\n<text-0a1b>\nSay "no".\n</text-0a1b>', [Part(("text",), "")], "0a1b")
        ['Say "no".']
    """
    spans = [_span(answer, part.label, nonce) for part in parts]
    ordered = sorted(zip(spans, parts))
    for (before, one), (after, other) in pairwise(ordered):
        if after.start < before.end:
            raise ValueError(f"the tags of `{one.label}` and those of `{other.label}` stand inside one another")
    if answer.count(nonce) > 2 * len(parts):
        raise ValueError(f"what its tags end in, {nonce}, stands in it outside of the tags that were asked for, too")
    return [answer[span.inside : span.until].removeprefix("\n").removesuffix("\n") for span in spans]


class _Span(NamedTuple):
    start: int
    inside: int
    until: int
    end: int


def _span(answer: str, label: str, nonce: str) -> _Span:
    opening, closing = f"<{label}-{nonce}>", f"</{label}-{nonce}>"
    opened, closed = answer.count(opening), answer.count(closing)
    if not opened and not closed:
        raise ValueError(f"it has no pair of tags for `{label}`")
    if opened > 1 or closed > 1:
        raise ValueError(f"it has more than one pair of tags for `{label}`, or one of its tags twice")
    if not closed:
        raise ValueError(f"the tag of `{label}` is never closed")
    start, until = answer.find(opening), answer.find(closing)
    if not opened or until < start:
        raise ValueError(f"the tag of `{label}` is closed without having been opened before")
    return _Span(start, start + len(opening), until, until + len(closing))


def put_together(parts: Sequence[Part], texts: Sequence[str]) -> str:
    """The JSON object that some texts make up.

    Example:
        >>> put_together([Part(("case_1", "system"), ""), Part(("reason",), "")], ["Be brief.", ""])
        '{"case_1": {"system": "Be brief."}, "reason": ""}'
    """
    whole: dict[str, Any] = {}
    for part, text in zip(parts, texts):
        inside = whole
        for key in part.path[:-1]:
            inside = inside.setdefault(key, {})
        inside[part.path[-1]] = text
    return json.dumps(whole, ensure_ascii=False)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
