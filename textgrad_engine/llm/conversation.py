"""A conversation as data: messages as in OpenAI's API, such as those of a chat that is to be answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from textgrad_engine.fences import fence

_ROLES = ("system", "developer", "user", "assistant")


class Turn(NamedTuple):
    """A message of a conversation."""

    role: str
    text: str


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
    for number, message in enumerate(value, 1):
        role, content = message["role"], message.get("content")
        if message.get("tool_calls") or message.get("function_call") or role in ("tool", "function"):
            return (
                f"a conversation with calls of tools (message {number}); write as text what they gave, or leave it out"
            )
        if role not in _ROLES:
            return f"a conversation whose message {number} has the role {role!r}; there are {', '.join(_ROLES)}"
        if _text_of(content) is None:
            return f"a conversation whose message {number} has no text as its content; write it as one"
        if own_system and role in ("system", "developer"):
            return (
                f"a conversation with a {role} message, and the program has a system prompt of its own; take one of "
                "the two out"
            )
    if value[-1]["role"] == "assistant":
        return "a conversation that ends with an answer; take it out, or keep it in a column of its own, as the target"
    return ""


def turns_of(value: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """The messages of a conversation with their texts; what is no text is left out.

    Example:
        >>> turns_of([{"role": "user", "content": [{"type": "text", "text": "Hello."}]}])
        [Turn(role='user', text='Hello.')]
    """
    return [Turn(str(message["role"]), _text_of(message.get("content")) or "") for message in value]


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
    return "\n".join([f"{turn.role}:\n{fence(turn.text, 'message')}" for turn in turns_of(value)])


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
