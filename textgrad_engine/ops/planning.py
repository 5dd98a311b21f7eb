"""From what a caller gives, messages or a conversation, to a plan with holes, and the values for these."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.llm.conversation import Turn
from textgrad_engine.llm.images import is_part
from textgrad_engine.llm.request import Message
from textgrad_engine.ops.fillers import unfit
from textgrad_engine.ops.images import ContentPart
from textgrad_engine.ops.messages import Hole, Plan, Rendered
from textgrad_engine.ops.offered import taken_apart


def plan_of(
    messages: Iterable[Mapping[str, Any] | Message],
    inputs: Mapping[str, Any],
    tools: Sequence[Mapping[str, Any]] = (),
) -> tuple[Plan, list[Any]]:
    """The plan of some messages, and the values for its holes.

    Args:
        messages: the messages.
        inputs: the values of the slots in them.
        tools: the descriptions of what the model may call.

    Raises:
        ValueError: a message lacks a role or content, or has more than these.
        TypeError: the messages, a content, or the value for a slot, are of another kind; or a tool has a Variable
            somewhere else than as a description.
    """
    values: list[Any] = []

    def hole(value: Any) -> Hole:
        values.append(value)
        return Hole(len(values) - 1)

    def part(piece: Any, role: str) -> Any:
        if not isinstance(piece, dict):
            if not isinstance(piece, _VALUES):
                _check_piece(piece, role)
            return hole(piece)
        is_text = piece.get("type") == "text"
        return {
            key: hole(value)
            if is_text and key == "text" and isinstance(value, str)
            else pytree.map_leaves(lambda leaf: hole(leaf) if isinstance(leaf, Variable) else leaf, value)
            for key, value in piece.items()
        }

    if isinstance(messages, str | Mapping | Variable | Message) or not isinstance(messages, Iterable):
        raise TypeError(
            f"messages is a list of dicts with 'role' and 'content', got {type(messages).__name__} {messages!r:.60}"
        )
    for name, value in inputs.items():
        if not (isinstance(value, Variable | str | int | float | list | ContentPart | None) or is_part(value)):
            raise TypeError(
                f"the value of {{{name}}} is a text, a number, a Variable, a content part such as an image, or a list "
                "of these for a batch; got "
                f"{type(value).__name__} {value!r:.60}"
            )
    planned = []
    messages = list(messages)
    if not messages:
        raise ValueError("messages is empty: a model is asked with at least one, {'role': 'user', 'content': ...}")
    for given in messages:
        role, content = _role_and_content(given)
        pieces = content if isinstance(content, list | tuple) else [content]
        planned.append((role, tuple([part(piece, role) for piece in pieces])))
    named = tuple([(name, hole(_held(value)).at) for name, value in inputs.items()])
    if tools:
        offered, texts = taken_apart(tools, len(values))
        if texts:
            return Plan(tuple(planned), named, offered=offered), [*values, *texts]
    return Plan(tuple(planned), named), values


_VALUES = (str, Variable, int, float)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")


def _check_piece(piece: Any, role: str) -> None:
    """Check that a piece of a content, or each entry of a batch, says the same in each process.

    What has words of its own, such as a member of an enum, is sent in these.

    Raises:
        TypeError: it does not, as a set does not, or what Python shows by its address; or it is None or bytes.
    """
    for each in piece if isinstance(piece, list) else [piece]:
        if isinstance(each, _VALUES):
            continue
        if each is None:
            why = "None, as where a function has no `return`; give '' for nothing"
        elif isinstance(each, bytes | set | frozenset) or _ADDRESS.search(str(each)):
            why = unfit(each)
        else:
            continue
        raise TypeError(f"the content of the {role} message has {why}")


def _role_and_content(given: Any) -> tuple[str, Any]:
    """What a message is of.

    Raises:
        TypeError: it is none.
        ValueError: it lacks one of these, or has more than them.
    """
    message: Any = given.model_dump(exclude_none=True) if isinstance(given, Message) else given
    if not isinstance(message, Mapping):
        raise TypeError(f"a message is a dict with 'role' and 'content', got {type(message).__name__} {message!r:.60}")
    if set(message) != {"role", "content"}:
        raise ValueError(
            f"a message has 'role' and 'content', got {sorted(message)}"
            + (_ABOUT_TOOLS if "tool_calls" in message or "tool_call_id" in message else "")
        )
    role, content = message["role"], message["content"]
    if content is None:
        raise ValueError(f"the {role} message has no content: give a text, a Variable, or a list of these")
    return role, content


def _held(value: Any) -> Any:
    """The value of a slot, with content parts as leaves; of a batch each entry."""
    if isinstance(value, list):
        return [_held(entry) for entry in value]
    return ContentPart(value) if is_part(value) else value


def plan_of_conversation(has_system: bool, names: tuple[str, ...], turns: Sequence[Turn]) -> Plan:
    """The plan of a call that answers a conversation, which stands in the place of a user message.

    Its values are the system prompt, those of slots, and the turns.

    Args:
        has_system: whether there is a system prompt.
        names: of the slots in it that have a value.
        turns: what was said so far.
    """
    plan = _plan_of_roles(has_system, names, tuple([turn.role for turn in turns]))
    tools: dict[int, dict[str, Any]] = {}
    for number, turn in enumerate(turns, int(has_system)):
        if turn.calls:
            tools[number] = {"tool_calls": turn.calls}
        elif turn.answers is not None and turn.role == "tool":
            tools[number] = {"tool_call_id": turn.answers}
    return replace(plan, tools=tools) if tools else plan


@functools.lru_cache(maxsize=256)
def _plan_of_roles(has_system: bool, names: tuple[str, ...], roles: tuple[str, ...]) -> Plan:
    first = has_system + len(names)
    # Not holes: what people said may have slots in it, and is not scanned for them.
    turns = [(role, (Rendered(_as_said, ((role, first + number),), whole=True),)) for number, role in enumerate(roles)]
    system = [("system", (Hole(0),))] if has_system else []
    return Plan((*system, *turns), tuple([(name, has_system + number) for number, name in enumerate(names)]))


def _as_said(texts: list[Any]) -> str:
    return str(texts[0])


_ABOUT_TOOLS = "; tools=[function, …] has the tools run that a model calls, and tells it what they gave"
