"""A conversation as data: messages as in OpenAI's API, such as those of a chat that is to be answered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from textgrad_engine.fences import fence

_ROLES = ("system", "developer", "user", "assistant", "tool")


class Turn(NamedTuple):
    """A message of a conversation.

    Attributes:
        role: who says it.
        text: what it says.
        calls: the calls of tools in it, in OpenAI's shape.
        answers: the id of the call that it answers, of a message of a tool.
    """

    role: str
    text: str
    calls: tuple[Mapping[str, Any], ...] = ()
    answers: str | None = None

    @property
    def said(self) -> str:
        """What it says, with the calls of tools in words."""
        return with_calls(self.text, self.calls)


def with_calls(text: str, calls: Iterable[Mapping[str, Any]]) -> str:
    r"""What a message says, and below it the calls of tools in it, a line each.

    Example:
        >>> with_calls("Let me see.", [{"id": "1", "function": {"name": "look_up", "arguments": '{"city": "Rome"}'}}])
        'Let me see.\nlook_up({"city": "Rome"})'
    """
    inner = [call.get("function") or {} for call in calls]
    lines = [f"{each.get('name', '')}({each.get('arguments', '')})" for each in inner]
    return "\n".join([line for line in (text, *lines) if line]) if lines else text


def is_conversation(value: object) -> TypeGuard[list[Mapping[str, Any]]]:
    """Whether a value is a list of messages, whatever is in them.

    Example:
        >>> is_conversation([{"role": "user", "content": "Hello."}]), is_conversation(["Hello."]), is_conversation([])
        (True, False, False)
    """
    return (
        isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) and "role" in each for each in value)
    )


def near_miss(value: object) -> str:
    """What a list is that is a chat and yet no conversation, with the repair; "" for any other value.

    Example:
        >>> near_miss([{"from": "human", "value": "Hello."}]).partition(";")[0]
        "a chat whose message 1 has no 'role'"
        >>> near_miss([{"role": "user", "content": "Hello."}]), near_miss(["Hello."]), near_miss([{"name": "a"}])
        ('', '', '')
    """
    if not isinstance(value, list) or not any(isinstance(each, Mapping) and _is_said(each) for each in value):
        return ""
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, Mapping):
            return f"a chat whose message {number} is no object; write {_MESSAGE}"
        if "role" not in entry:
            renamed = ', with "user" for human, "assistant" for gpt, and what \'value\' has as the content'
            return f"a chat whose message {number} has no 'role'; write {_MESSAGE}{renamed if 'from' in entry else ''}"
    return ""


_MESSAGE = '{"role": "user", "content": "..."}'


def _is_said(message: Mapping[str, Any]) -> bool:
    """Whether it says who says something, as ShareGPT has it, too."""
    return "role" in message or ("from" in message and "value" in message)


def problem_of(value: Sequence[Mapping[str, Any]], *, own_system: bool = False) -> str:
    """Why a conversation cannot be sent to be answered, with the repair; "" where it can.

    Args:
        value: its messages.
        own_system: whether a system message of a program's own stands before it.

    Example:
        >>> problem_of([{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi!"}])
        'a conversation that ends with an answer; take it out, or keep it in a column of its own, as the target'
    """
    open_calls: list[str] = []  # those that are to be answered next
    for number, message in enumerate(value, 1):
        role, content = message["role"], message.get("content")
        if message.get("function_call") or role == "function":
            return (
                f"a conversation with a call of a function in the form of before (message {number}); write tool_calls, "
                f"and what came of them as messages {_RESULT}"
            )
        if role not in _ROLES:
            return f"a conversation whose message {number} has the role {role!r}; there are {', '.join(_ROLES)}"
        if why := _calls_problem(message, open_calls):
            return f"a conversation whose message {number} {why}"
        if form := _call_in_parts(content):
            return (
                f"a conversation whose message {number} has a {form!r} in its content; write calls of tools beside it, "
                f"as 'tool_calls', a list of {_CALL}, and what came of them as messages {_RESULT}"
            )
        if _text_of(content) is None and not (content is None and message.get("tool_calls")):
            return f"a conversation whose message {number} has no text as its content; write it as one"
        if own_system and role in ("system", "developer"):
            return (
                f"a conversation with a {role} message, and the program has a system prompt of its own; take one of "
                "the two out"
            )
    if open_calls and value[-1]["role"] == "tool":
        return f"a conversation in which the call {open_calls[0]!r} has no answer; add its message, or take both out"
    if value[-1]["role"] == "assistant":
        return "a conversation that ends with an answer; take it out, or keep it in a column of its own, as the target"
    return ""


def _calls_problem(message: Mapping[str, Any], open_calls: list[str]) -> str:
    """What is wrong with the calls of tools in a message, or with what it answers; "" for nothing.

    Args:
        message: the message.
        open_calls: the ids of the calls that are to be answered; brought up to date.
    """
    if message["role"] == "tool":
        answered = message.get("tool_call_id")
        if answered not in open_calls:
            known = f"there are {', '.join(map(repr, open_calls))}" if open_calls else "no call before it is open"
            return f"is of a tool and answers no call: its 'tool_call_id' is {answered!r}, and {known}"
        open_calls.remove(answered)
        return ""
    if open_calls:
        return f"stands before the answer to the call {open_calls[0]!r}, a message with the role 'tool'; add that one"
    calls = message.get("tool_calls")
    if not calls:
        return ""
    if message["role"] != "assistant":
        return f"calls tools, and is of the {message['role']}; only an assistant calls tools"
    if not isinstance(calls, list | tuple) or not all(map(_is_call, calls)):
        return f"has 'tool_calls' in another form; write a list of {_CALL}"
    names = [call["id"] for call in calls]
    if twice := next((name for name, times in Counter(names).items() if times > 1), None):
        return f"has two calls with the id {twice!r}; give each its own, by which it is answered"
    open_calls += names
    return ""


def _is_call(call: object) -> bool:
    if not isinstance(call, Mapping) or not isinstance(call.get("id"), str):
        return False
    inner = call.get("function")
    return (
        isinstance(inner, Mapping)
        and isinstance(inner.get("name"), str)
        and isinstance(inner.get("arguments"), str | Mapping)
    )


_CALL = '{"id": "...", "type": "function", "function": {"name": "...", "arguments": "{...}"}}'


_RESULT = '{"role": "tool", "tool_call_id": "...", "content": "..."}'
_IN_PARTS = ("tool_use", "tool_result", "functionCall", "functionResponse", "function_call", "function_response")
"""What calls of tools and their results are among the parts of a message, as Anthropic and Gemini have them."""


def _call_in_parts(content: object) -> str:
    """The form of a call of a tool, or of its result, that is a part of a message; "" where none is."""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return next((form for form in _IN_PARTS for part in parts if form in part or part.get("type") == form), "")


def turns_of(value: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """The messages of a conversation with their texts and calls of tools; what is none is left out.

    Example:
        >>> turns_of([{"role": "user", "content": [{"type": "text", "text": "Hello."}]}])
        [Turn(role='user', text='Hello.', calls=(), answers=None)]
    """
    return [
        Turn(
            str(message["role"]),
            _text_of(message.get("content")) or "",
            _calls_of(message),
            message.get("tool_call_id"),
        )
        for message in value
    ]


def _calls_of(message: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    calls = message.get("tool_calls")
    return tuple([_as_sent(call) for call in calls if _is_call(call)]) if isinstance(calls, list | tuple) else ()


def _as_sent(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call whose arguments are a text, as endpoints want it; templates of chats have objects there."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call["id"], "type": "function", "function": {"name": name, "arguments": text}}


def in_words(value: Sequence[Mapping[str, Any]]) -> str:
    """A conversation as one text: who said what, each between tags of its own, as anybody may write what looks like it.

    Example:
        >>> print(in_words([{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi!"}]))
        user:
        <message-0ea0e270>
        Hello.
        </message-0ea0e270>
        assistant:
        <message-711f0efe>
        Hi!
        </message-711f0efe>
    """
    return "\n".join([f"{turn.role}:\n{fence(turn.said, 'message')}" for turn in turns_of(value)])


def _text_of(content: object) -> str | None:
    """What a message says; None where that is no text, such as an image, or a Variable."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and content:
        texts = [
            part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None for part in content
        ]
        if all(isinstance(text, str) for text in texts):
            return "".join(map(str, texts))
    return None
