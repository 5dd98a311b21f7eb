"""Calls of tools as answers have them, and as they go back with what came of them.

Endpoints want back what they might not have given: an id for each call that no other one has, and arguments that are a
text, and JSON.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine.llm.request import Message

_log = logging.getLogger("textgrad_engine.llm.called")  # as it was called: programs filter by it

_NONE = "{}"


def calls_in(message: Mapping[str, Any], asked: Iterable[Message]) -> tuple[dict[str, Any], ...]:
    """The calls of tools in an answer's message, each with an id of its own, and with arguments that are a text.

    Gemini's endpoint and llama.cpp's server may leave an id empty or out, and others give one twice. A made-up one has
    nine letters and digits, as Mistral wants it. Arguments that are an object become its JSON, and none become ``{}``.

    Args:
        message: the message.
        asked: the messages that it answers, whose ids are taken.

    Example:
        >>> calls_in({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, [])
        ({'id': 'call00000', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}},)
    """
    if not message.get("tool_calls"):
        return ()
    before = list(asked)
    taken = {call.get("id") for each in before for call in each.tool_calls or ()}
    made: list[dict[str, Any]] = []
    for place, call in enumerate(message["tool_calls"]):
        own = call.get("id")
        if not isinstance(own, str) or not own or own in taken:
            numbers = itertools.count(100 * len(before) + place)
            own = next(made_up for number in numbers if (made_up := f"call{number % 100_000:05d}") not in taken)
        taken.add(own)
        function = call.get("function")
        if isinstance(function, Mapping):
            call = {"type": "function", **call, "function": {**function, "arguments": _text_of(function)}}
        left_out = ("id", *[kind for kind in _SAID_IN if call.get(kind) is None])
        made.append({"id": own, **{name: value for name, value in call.items() if name not in left_out}})
    return tuple(made)


_SAID_IN = ("function", "custom")
"""Where a call has its name and its arguments."""


def problem_of(calls: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]] = ()) -> str:
    """What is wrong with the calls of an answer, so that they cannot be run or cannot go back; "" where nothing is.

    Args:
        calls: the calls.
        items: what else goes back with them.

    Example:
        >>> problem_of([{"function": {"name": "f"}}]), problem_of([{"function": "f"}])
        ('', "the function of a tool call is no object: 'f'")
    """
    for call in calls:
        for kind in _SAID_IN:
            said = call.get(kind)
            if said is not None and not isinstance(said, Mapping):
                return f"the {kind} of a tool call is no object: {said!r:.80}"
    try:
        json.dumps([*map(dict, calls), *map(dict, items)], ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "a tool call, or what belongs to one, holds a lone surrogate, which is no text"
    except (TypeError, ValueError, RecursionError) as error:
        return f"a tool call, or what belongs to one, is no JSON: {error}"
    return ""


def _text_of(function: Mapping[str, Any]) -> str:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return arguments if arguments.strip() else _NONE
    return _NONE if arguments is None else json.dumps(arguments, ensure_ascii=False)


_MARKS = re.compile(
    r"<tool_calls?>|<\|tool_call|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|<\uff5ctool\u2581calls\u2581begin\uff5c>"
)
"""What models begin calls of tools with, which a server that knows them reads and takes out of the text."""


def is_unread(text: str, tools: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an answer without calls is one that its server did not read: in marks, or as bare JSON.

    Args:
        text: the answer.
        tools: the descriptions of the tools that it might have called.

    Example:
        >>> look = {"type": "function", "function": {"name": "look"}}
        >>> is_unread('{"name": "look", "arguments": {}}', [look]), is_unread("I looked.", [look])
        (True, False)
    """
    if _MARKS.search(text):
        return True
    if '"name"' not in text or not text.lstrip().startswith("{"):
        return False
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    names = [tool.get("function", tool).get("name") for tool in tools]
    return isinstance(said, dict) and said.get("name") in names and bool({"arguments", "parameters"} & said.keys())


def tell_of_unread(name: str, text: str, tools: Iterable[Mapping[str, Any]]) -> bool:
    """Say in the log that an answer is a call of a tool which its server did not read, if it is one; says whether.

    Args:
        name: of the model.
        text: the answer, which has no calls.
        tools: the descriptions of the tools that it might have called.
    """
    if not is_unread(text, tools):
        return False
    _log.warning(
        "%r answered with a call of a tool as text, which its server did not read, so it counts as its answer; it "
        "began %.80r. Start vLLM and SGLang with the --tool-call-parser of the model, llama.cpp's server with --jinja, "
        "or use a model whose calls the server knows",
        name,
        text,
    )
    return True


def are_broken(sent: Mapping[str, Any]) -> bool:
    """Whether a body holds calls of tools from before whose arguments are no JSON object."""
    return any(_is_broken(call) for message in sent.get("messages", ()) for call in message.get("tool_calls") or ())


def mended(calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same calls, those whose arguments are no JSON object with none.

    What was wrong about these is told by the message that answers the call.
    """
    return [
        {**call, "function": {**call["function"], "arguments": _NONE}} if _is_broken(call) else dict(call)
        for call in calls
    ]


def _is_broken(call: Mapping[str, Any]) -> bool:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(arguments, str):
        return False
    try:
        return not isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return True
