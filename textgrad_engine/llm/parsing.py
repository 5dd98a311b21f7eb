"""What the text of an answer says: without fences and thoughts around it, and as the JSON that was asked for."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.strict import WRAPPED
from textgrad_engine.strict_json import DECODER


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
    mark = _marks_of(text)[1]
    _, end, rest = text.partition(mark)
    last = text.rpartition(mark)[2]
    return () if not end else (rest,) if last == rest else (rest, last)


def without_thoughts(completion: Completion, request: Request) -> Completion:
    r"""An answer in plain words without the thoughts before it, which are in `raw`, under "reasoning".

    Reasoning models on a server that does not know how they mark their thoughts (Qwen3, DeepSeek-R1) put them before
    every answer, as ``<think>...</think>``, or without the first mark where it is part of their template; others have
    marks of their own (`MARKS`), and write both. Where the request speaks of these marks, whoever wrote it expects
    them, and where the answer has them elsewhere or more than once, it may speak of them itself: it stays as it is
    then. So it does where the last mark stands alone and in the middle of a sentence, between quotes, or in code.

    Args:
        completion: the answer.
        request: what was asked.

    Example:
        >>> request = Request(messages=[{"role": "user", "content": "May I?"}])
        >>> without_thoughts(Completion(text="<think>Why not?</think>\n\nyes"), request).text
        'yes'
    """
    text = completion.text
    begin, end = _marks_of(text)
    if text.count(end) != 1:
        return completion
    thoughts, _, rest = text.partition(end)
    bare = thoughts.lstrip().removeprefix(begin)
    if begin in bare or begin in rest:
        return completion
    if bare == thoughts.lstrip() and _is_spoken_of(thoughts, rest):
        return completion
    if any(mark in message.text for message in request.messages for mark in (begin, end)):
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

MARKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
    "<|begin_of_thought|>": "<|end_of_thought|>",
}
"""What thoughts begin with, and what they end with: those of Qwen and DeepSeek, and of Magistral, Seed-OSS, Kimi and
others."""

THOUGHT_END = "</think>"
BEGINS_THINKING = re.compile(rf"\s*({'|'.join(map(re.escape, MARKS))})")


def _marks_of(text: str) -> tuple[str, str]:
    """The marks around the thoughts before an answer, if there are any."""
    found = BEGINS_THINKING.match(text)
    begin = found[1] if found else "<think>"
    return begin, MARKS[begin]


def json_in(text: str, *, among_words: bool = True, asked: Request | None = None) -> tuple[str, Any]:
    """The JSON in an answer, without a fence around it and thoughts before it, and its value.

    Args:
        text: the answer.
        among_words: whether the one object that words stand around is taken, too: what one fenced block of several
            holds, or what stands on lines of its own or behind a colon. An object in the middle of a sentence is an
            example, and of two nobody knows which is meant.
        asked: what was asked, where that shows material which may have been written to be taken for an answer: who
            quotes it among words has not answered with it.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deeply.

    Example:
        >>> json_in('Here is the JSON: {"a": 1}')
        ('{"a": 1}', {'a': 1})
    """
    first: Exception | None = None
    waiting = [text]
    for said in waiting:
        bare = strip_fence(said).strip()
        try:
            value, end = DECODER.raw_decode(bare)
            if end != len(bare):
                DECODER.decode(bare)  # says what is wrong about the rest
        except (ValueError, RecursionError) as error:
            if first is None:  # what is wrong about the whole is told
                first = error
                waiting += after_thoughts(text)
        else:
            return bare, value
    assert first is not None
    begun = BEGINS_THINKING.match(text) is not None  # what stands in thoughts alone is no answer
    if among_words and not (begun and len(waiting) == 1):
        found = _among_words(waiting[-1])
        if found and asked is not None:
            shown = _letters_of("".join([each.text for each in asked.messages if each.role != "assistant"]))
            found = [each for each in found if _letters_of(each[0]) not in shown]
        if len(found) == 1:
            return found[0]
    raise first


def _letters_of(text: str) -> str:
    """A text without white space, and without what JSON in JSON is escaped with: who quotes it leaves that out."""
    return "".join(text.split()).replace("\\", "")


def _among_words(text: str) -> list[tuple[str, Any]]:
    """The JSON objects in a text of which each might be its answer."""
    marks = [(found.start(), text.find("\n", found.end())) for found in _FENCE.finditer(text)]
    if marks:
        parts = [text[line_end:until] for (_, line_end), (until, _) in zip(marks[::2], marks[1::2])]
    else:
        start, end = text.find("{"), text.rfind("}") + 1
        begins, ends = text[:start].rstrip(" \t"), text[end:].lstrip(" \t")
        apart = begins[-1:] in ("", "\n", ":") and ends[:1] in ("", "\n", "\r")
        parts = [text[start:end]] if apart and start >= 0 else []
    found = []
    for part in parts:
        bare = part.strip()
        with contextlib.suppress(ValueError, RecursionError):
            if bare.startswith("{"):
                found.append((bare, DECODER.decode(bare)))
    return found


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


def check_json(
    text: str,
    wanted: ResponseFormat,
    who: str = "the model",
    *,
    among_words: bool = True,
    asked: Request | None = None,
) -> str:
    """The JSON object in an answer, as text, when it fits the format.

    Args:
        text: the answer.
        wanted: the format that was asked for.
        who: who answered, for the error.
        among_words: as for `json_in`.
        asked: what was asked. What a judge, a critic or an optimizer quotes of it among words is not its answer; a
            program may be to say again what it was told.

    Raises:
        MalformedResponse: it is no JSON object, or one that does not fit; the message says where.
    """
    try:
        of_material = asked if asked is not None and asked.purpose != "forward" else None
        bare, value = json_in(text, among_words=among_words, asked=of_material)
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
