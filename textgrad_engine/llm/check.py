"""Is it an answer? What is truncated, empty, withheld or not the JSON that was asked for becomes an error."""

from __future__ import annotations

import json
import re
from inspect import isawaitable
from types import CoroutineType
from typing import Any, NoReturn

from textgrad_engine.errors import (
    AnswerError,
    ContentFiltered,
    EmptyResponse,
    MalformedResponse,
    TextgradError,
    TruncatedResponse,
    UnsendableRequest,
)
from textgrad_engine.llm.model import Model, Wrapper, defaults_of
from textgrad_engine.llm.redact import redacted, secrets_of
from textgrad_engine.llm.request import Request, ResponseFormat
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stream import void
from textgrad_engine.llm.strict import WRAPPED
from textgrad_engine.llm.usage import is_estimated, mark

__all__ = [
    "MAX_TEXT",
    "Check",
    "after_thoughts",
    "check_json",
    "json_in",
    "no_text_at",
    "parsed",
    "strip_fence",
    "surrogate_in",
    "unwrapped",
    "without_thoughts",
]

MAX_TEXT = 5_000_000
"""Characters of text that a request or an answer may have; more than any model reads (a million tokens are about four
million)."""


class Check(Wrapper):
    """Lets only requests that can be sent through, and only finished answers back.

    When the request asks for structured output, the text that comes out is bare JSON that fits the schema: thoughts
    before it, and a Markdown fence around it, are taken off. Thoughts before a plain text are taken off, too (see
    `without_thoughts`). The errors carry what the answer used (see `usage_of`), for it was paid for.

    Args:
        inner: the model that is wrapped.
        max_text: characters of text that a request or an answer may have.
    """

    def __init__(self, inner: Model, max_text: int = MAX_TEXT) -> None:
        super().__init__(inner)
        self.max_text = max_text
        self._who: dict[str, str] = {}  # by purpose who answers, in words for errors
        self._defaults = defaults_of(inner)

    async def complete(self, request: Request) -> Completion:
        """Ask, and look at the answer.

        Raises:
            UnsendableRequest: the request is longer than `max_text`, or holds what is no text; it was not sent.
            TruncatedResponse: it stopped at its length limit.
            ContentFiltered: it was withheld.
            EmptyResponse: it has neither text nor a tool call, or thoughts alone.
            MalformedResponse: it is not JSON that fits the schema, holds what is no text, or is longer than `max_text`.
            TypeError: the model gives no completion, or does not give it as a coroutine.
        """
        self._check_request(request)
        asked = self.inner.complete(request)
        if type(asked) is not CoroutineType and not isawaitable(asked):
            raise TypeError(
                f"{_of_class(self._core)}.complete() gave {asked!r:.80} at once; write `async def complete(self, "
                "request)`, and await in it what takes time: it runs on the event loop, together with other calls"
            )
        try:
            completion = await asked
        except TextgradError:
            raise
        except Exception as error:  # a bug, or a failure of the network in the words of somebody's client
            error.add_note(
                f"raised in {_of_class(self._core)}.complete(); what is a failure of the endpoint is a `ModelError`, "
                "such as errors.ConnectionFailed or errors.RateLimited: these are tried again, and cost one answer"
            )
            raise
        if not isinstance(completion, Completion):
            raise TypeError(
                f"{_of_class(self._core)}.complete() gave {completion!r:.80}; give llm.Completion(text=...), with "
                "usage where it is known"
            )
        try:
            return self._checked(request, completion)
        except AnswerError as error:
            error.args = (redacted(str(error), secrets_of(self.inner)),)  # it may quote the answer
            mark(error, usage=completion.usage, estimated=is_estimated(completion))
            if completion.text:
                void(request)
            raise

    def _check_request(self, request: Request) -> None:
        length, plain = 0, True
        for message in request.messages:
            text = message.content if type(message.content) is str else message.text
            length += len(text)
            plain = plain and text.isascii()
        if length > self.max_text:
            error = UnsendableRequest(
                f"a request ({request.purpose}) to {self.name!r} has {length:,} characters of text, and the limit is "
                f"{self.max_text:,}; send less of it"
            )
            raise mark(error, sent=False)
        if not plain and (where := surrogate_in(request)) is not None:
            error = UnsendableRequest(no_text_at(where))
            raise mark(error, sent=False)

    def _checked(self, request: Request, completion: Completion) -> Completion:
        wanted = request.config.response_format or self._defaults.response_format
        if completion.finish_reason == "length":
            limit = request.config.max_tokens or self._defaults.max_tokens
            raise TruncatedResponse(
                f"the answer of {self.name!r} to a {request.purpose} call was cut off at its length limit"
                f"{f' (max_tokens={limit})' if limit else ''} after {completion.usage.output_tokens} tokens; "
                "allow more max_tokens, or ask for less"
            )
        if completion.finish_reason == "content_filter":
            raise ContentFiltered(f"the endpoint withheld the answer of {self.name!r} to a {request.purpose} call")
        if completion.tool_calls:
            self._reject_surrogates(completion.calls_as_text())
            return completion
        if not completion.text.strip():
            raise EmptyResponse(f"{self.name!r} answered a {request.purpose} call with no text and no tool call")
        if len(completion.text) > self.max_text:
            raise MalformedResponse(
                f"the answer of {self.name!r} to a {request.purpose} call has {len(completion.text):,} characters, and "
                f"the limit is {self.max_text:,}"
            )
        if not completion.text.isascii():
            self._reject_surrogates(completion.text)
        if wanted is None:
            if _THOUGHT not in completion.text:
                return completion
            without = without_thoughts(completion, request)
            if not without.text:
                raise EmptyResponse(
                    f"{self.name!r} answered a {request.purpose} call with thoughts (<think>...</think>) and nothing "
                    "behind them"
                )
            return without
        who = self._who.get(request.purpose)
        if who is None:
            who = self._who[request.purpose] = f"{self.name!r} ({request.purpose})"
        bare = check_json(completion.text, wanted, who)
        return completion if bare == completion.text else completion.model_copy(update={"text": bare})

    def _reject_surrogates(self, text: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MalformedResponse(
                f"the answer of {self.name!r} holds a lone surrogate at character {error.start}, which is no text"
            ) from None


def surrogate_in(request: Request) -> str | None:
    """Where the text of a request holds a lone surrogate, which UTF-8 cannot express; None when it does nowhere."""
    for number, message in enumerate(request.messages, 1):
        text = message.text
        if text.isascii():
            continue
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"message {number} ({message.role}), character {error.start + 1},"
    return None


def no_text_at(where: str) -> str:
    """What is said about a request that holds a lone surrogate there (see `surrogate_in`)."""
    return f"{where} holds a lone surrogate, which is no text and cannot be sent"


def strip_fence(text: str, kinds: tuple[str, ...] = ("", "json", "JSON")) -> str:
    r"""The text without the one Markdown code fence around it, if there is one.

    Args:
        text: the text.
        kinds: the languages that the fence may name.

    Example:
        >>> strip_fence('```json\n{"a": 1}\n```')
        '{"a": 1}'
    """
    # No pattern does it in linear time: models that lose the thread fill an answer with white space.
    bare = text.strip()
    if not bare.startswith("```"):
        return text
    head, line_end, inside = bare[3:-3].partition("\n")
    kind = head.removesuffix("\r").rstrip(" \t")
    if not (bare.endswith("```") and line_end and kind in kinds):
        return text
    return inside.rstrip(" \t").removesuffix("\n").removesuffix("\r")


def after_thoughts(text: str) -> tuple[str, ...]:
    """What may stand behind the thoughts that a model has written before its answer; nothing where it has not.

    Servers that do not know how a model marks its thoughts leave them in the text, some of them without their start.
    Thoughts, and answers, may speak of the mark itself, so that they end where it stands first or where it stands last.

    Example:
        >>> after_thoughts("<think>Shall I?</think>yes"), after_thoughts("yes")
        (('yes',), ())
    """
    _, end, rest = text.partition(_THOUGHT)
    last = text.rpartition(_THOUGHT)[2]
    return () if not end else (rest,) if last == rest else (rest, last)


def _of_class(model: Model) -> str:
    return f"the model {model.name!r}: {type(model).__name__}"


def without_thoughts(completion: Completion, request: Request) -> Completion:
    r"""An answer in plain words without the thoughts before it, which are in `raw`, under "reasoning".

    Reasoning models on a server that does not know how they mark their thoughts (Qwen3, DeepSeek-R1) put them before
    every answer, as ``<think>...</think>``, or without the first mark where it is part of their template. Where the
    request speaks of these marks, whoever wrote it expects them, and where the answer has them elsewhere or more than
    once, it may speak of them itself: it stays as it is then. So it does where the last mark stands alone and in the
    middle of a sentence, between quotes, or in code.

    Args:
        completion: the answer.
        request: what was asked.

    Example:
        >>> request = Request(messages=[{"role": "user", "content": "May I?"}])
        >>> without_thoughts(Completion(text="<think>Why not?</think>\n\nyes"), request).text
        'yes'
    """
    text = completion.text
    if text.count(_THOUGHT) != 1:
        return completion
    thoughts, _, rest = text.partition(_THOUGHT)
    bare = thoughts.lstrip().removeprefix(_THINKS)
    if _THINKS in bare or _THINKS in rest:
        return completion
    if bare == thoughts.lstrip() and _is_spoken_of(thoughts, rest):
        return completion
    if any(mark in message.text for message in request.messages for mark in (_THINKS, _THOUGHT)):
        return completion
    raw = {"reasoning": bare.strip(), **(completion.raw or {})}
    return completion.model_copy(update={"text": rest.lstrip(), "raw": raw})


def _is_spoken_of(before: str, behind: str) -> bool:
    """Whether the mark between two texts is what the answer is about, and not the end of thoughts.

    The end of thoughts stands on a line of its own (Qwen3, DeepSeek-R1), or the answer follows it at once
    (DeepSeek-V3.1 and later).
    """
    if not behind.strip():
        return bool(before.strip()) and not before.endswith("\n")
    quoted = before.endswith(_QUOTES) and behind.startswith(_QUOTES)  # one side alone may be of thoughts, or the answer
    in_sentence = quoted or _GOES_ON.match(behind) is not None
    in_code = len(_FENCE.findall(before)) % 2 == 1 and _FENCE.search(behind) is not None
    return (in_sentence and not before.endswith("\n")) or in_code


_QUOTES = tuple("`'\"(\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb")
_GOES_ON = re.compile("[`'\"\u2018\u2019\u201c\u201d\u00ab\u00bb]*(?:[ \\t.,;:!?)]|$)")
"""How a sentence goes on behind a mark, which may have closed a quotation."""

_FENCE = re.compile("^ {0,3}```", re.MULTILINE)
_THINKS, _THOUGHT = "<think>", "</think>"


def json_in(text: str) -> tuple[str, Any]:
    """The JSON in an answer, without a fence around it and thoughts before it, and its value.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deeply.
    """
    first: Exception | None = None
    waiting = [text]
    for said in waiting:
        bare = strip_fence(said).strip()
        try:
            value, end = _DECODER.raw_decode(bare)
            if end != len(bare):
                _DECODER.decode(bare)  # says what is wrong about the rest
        except (ValueError, RecursionError) as error:
            if first is None:  # what is wrong about the whole is told
                first = error
                waiting += after_thoughts(text)
        else:
            return bare, value
    assert first is not None
    raise first


def unwrapped(text: str) -> str:
    r"""The answer in one to a wrapped schema (see `strict.wrapped`); the text itself where it has no such form.

    Example:
        >>> unwrapped('{"alternative": {"kind": "cat"}}')
        '{"kind": "cat"}'
        >>> unwrapped('{"kind": "cat"}')
        '{"kind": "cat"}'
    """
    try:
        _, value = json_in(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict) or value.keys() != {WRAPPED}:
        return text
    return json.dumps(value[WRAPPED], ensure_ascii=False)


def check_json(text: str, wanted: ResponseFormat, who: str = "the model") -> str:
    """The JSON object in an answer, as text, when it fits the format.

    Args:
        text: the answer.
        wanted: the format that was asked for.
        who: who answered, for the error.

    Raises:
        MalformedResponse: it is no JSON object, or one that does not fit; the message says where.
    """
    try:
        bare, value = json_in(text)
    except (ValueError, RecursionError) as error:
        began = strip_fence(text).strip()[:80]
        raise MalformedResponse(
            f"{who} was asked for JSON ({wanted.name}) and answered something else: {error}; it began {began!r}",
            answer=text,
            problem=f"it is not JSON: {error}",
        ) from None
    if not isinstance(value, dict):
        raise MalformedResponse(
            f"{who} was asked for a JSON object ({wanted.name}) and answered {bare[:80]!r}",
            answer=text,
            problem="it is JSON, but no JSON object",
        )
    if ("\\ud" in bare or "\\uD" in bare) and (
        where := _surrogate_inside(value)
    ):  # escaped, it is no surrogate of the text itself
        raise MalformedResponse(
            f"the JSON of {who} ({wanted.name}) holds a lone surrogate, which is no text: {where}",
            answer=text,
            problem=f"it holds a lone surrogate, which is no text: {where}",
        )
    try:
        problem = wanted.problem(value, bare)
    except RecursionError:
        problem = "$: it is nested too deeply to be checked"
    if problem:
        raise MalformedResponse(
            f"the JSON of {who} does not have the form {wanted.name}: {problem}",
            answer=text,
            problem=f"it does not have the form that was asked for: {problem}",
        )
    _last[:] = [(bare, value)]
    return bare


def parsed(text: str) -> Any:
    """The value of an answer that is JSON; of one that was just checked, the one that was found then.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        known, value = _last.pop()
    except IndexError:
        return json.loads(text)
    return value if known == text else json.loads(text)


_last: list[tuple[str, Any]] = []
"""The last answer that was checked, and its value, until somebody asks for that: mostly at once, and only once."""


def _surrogate_inside(value: Any) -> str:
    """Where the texts of a JSON value hold a lone surrogate; "" when they do nowhere."""
    waiting: list[tuple[str, Any]] = [("$", value)]
    while waiting:
        where, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [(f"{where}.{key}", inside) for key, inside in each.items()]
            waiting += [(f"a key of {where}", key) for key in each]
        elif isinstance(each, list):
            waiting += [(f"{where}[{number}]", inside) for number, inside in enumerate(each)]
        elif isinstance(each, str) and not each.isascii():
            try:
                each.encode()
            except UnicodeEncodeError as error:
                return f"{where.encode('utf-8', 'replace').decode()}, character {error.start + 1}"
    return ""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
