"""Calls of tools: what tells one from others, and who is told of it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.as_json import forms_of
from textgrad_engine.llm.ids import digest, giving_ids, next_id
from textgrad_engine.llm.places import Place, numbering_places
from textgrad_engine.llm.redact import secrets_named
from textgrad_engine.llm.request import Message, Request
from textgrad_engine.llm.usage import CallRecord, call_item, call_place, call_tool
from textgrad_engine.scoped import setting


@dataclass(frozen=True, eq=False)
class Turn:
    """An answer that calls tools.

    Attributes:
        model: the name of the model that gave it.
        asked: the conversation until this answer, it included.
        keys: what the model holds as secrets.
        example: what it belongs to.
    """

    model: str
    asked: Request = field(repr=False)
    keys: tuple[SecretStr, ...] = field(default=(), repr=False)
    example: str = ""

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """What it is known by: a digest of it without secrets, and, if it had some, others with them.

        What was recorded may have lost them, and what comes again has lost them then. Addresses are signed anew from
        day to day; records of before know turns by the whole of them.
        """
        secrets = secrets_named(key.get_secret_value() for key in self.keys)
        return tuple(map(digest, forms_of(self.model, self.asked, secrets)))


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that is to be answered.

    Attributes:
        name: of the tool, as the model gave it.
        arguments: as the model gave them: a text that should be JSON.
        turn: the answer that holds it.
        place: which of that answer's calls it is, from 0.
        recorded: whether a backward pass may go through it, so that what is on record of it may not be enough.
    """

    name: str
    arguments: str
    turn: Turn
    place: int
    recorded: bool = False

    @property
    def also(self) -> tuple[str, ...]:
        """What it is known by, as equal calls are: as many names as its turn has (`Turn.names`)."""
        return tuple([digest({"turn": name, "place": self.place}) for name in self.turn.names])


@dataclass(frozen=True)
class ToolResult:
    """What a call of a tool came to.

    Attributes:
        text: what the model is told; where there are images, with their numbers in their places.
        error: why it came to nothing, in words; "" when it did not.
        through: whether feedback goes through it.
        content: where there are images, the parts of the text with these between them; else empty.
        raised: whether an error of this library came through it, so that the model was told nothing.
    """

    text: str
    error: str = ""
    through: bool = False
    content: tuple[Mapping[str, Any], ...] = ()
    raised: bool = False

    def message(self, called: str) -> Message:
        """What the model is told, as an answer to a call.

        Args:
            called: the id that the model gave the call.
        """
        return Message(role="tool", content=list(map(dict, self.content)) or self.text, tool_call_id=called)


@attributes_told
@dataclass(frozen=True)
class ToolRecord:
    """A call of a tool that has ended.

    Attributes:
        name: of the tool.
        arguments: as the model gave them.
        result: what it came to.
        id: what tells the call from others (`id_of`).
        also: what it is known by, as equal ones are (`ToolCall.also`).
        key: what it belongs to, the value of `call_key` of the calls around it.
        item: the value of `call_item` there.
        tool: the id of the tool's call inside of which it was made; "" for none.
        started: when it began, in seconds since the epoch.
        latency: so many seconds it took.
        keys: what the model that called it holds as secrets; whoever writes this down takes them out of it.
        place: the value of `call_place` where it was made.
    """

    name: str
    arguments: str
    result: ToolResult
    id: str
    also: tuple[str, ...] = ()
    key: str = ""
    item: tuple[int, ...] = ()
    tool: str = ""
    started: float = 0.0
    latency: float = 0.0
    keys: tuple[SecretStr, ...] = field(default=(), repr=False, compare=False)
    place: Place = ()


def tool_to_json(record: ToolRecord) -> dict[str, Any]:
    """A call of a tool, and what it came to, as plain JSON; `tool_from_json` reads it."""
    entry: dict[str, Any] = {
        "name": record.name,
        "example": record.key,
        "arguments": record.arguments,
        "text": record.result.text,
        "id": record.id,
    }
    if record.result.error:
        entry["error"] = record.result.error
    if record.result.through:
        entry["through"] = True
    if record.result.raised:
        entry["raised"] = True
    if record.result.content:
        entry["content"] = [dict(part) for part in record.result.content]
    if record.also:
        entry["also"] = list(record.also)
    return entry | belonging(record)


def belonging(record: ToolRecord | CallRecord) -> dict[str, Any]:
    """What a call was made inside of, as plain JSON: item, conversation and call of a tool, as far as there are any."""
    of = {"item": list(record.item), "place": list(record.place), "tool": record.tool}
    return {name: value for name, value in of.items() if value}


def tool_from_json(entry: Mapping[str, Any]) -> ToolRecord:
    """What `tool_to_json` wrote.

    Raises:
        KeyError: it lacks something.
        ValueError: a field is of another kind.
    """
    for name in ("name", "arguments", "text", "id", "example", "error", "tool"):
        if not isinstance(entry.get(name, ""), str):
            raise ValueError(f"its {name} cannot be {entry[name]!r:.80}")
    for name, kind in (("also", str), ("item", int), ("place", int), ("content", dict)):
        if not all(isinstance(each, kind) for each in entry.get(name, ())):
            raise ValueError(f"its {name} cannot be {entry[name]!r:.80}")
    return ToolRecord(
        entry["name"],
        entry["arguments"],
        ToolResult(
            entry["text"],
            entry.get("error", ""),
            bool(entry.get("through")),
            tuple(entry.get("content", ())),
            bool(entry.get("raised")),
        ),
        entry["id"],
        tuple(entry.get("also", ())),
        entry["example"],
        tuple(entry.get("item", ())),
        entry.get("tool", ""),
        place=tuple(entry.get("place", ())),
    )


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Inside the block, calls belong to that of a tool.

    Args:
        name: its id.
    """
    with setting(call_tool, name), setting(call_place, ()), numbering_places():
        yield


def id_of(call: ToolCall) -> str:
    """An id for a call of a tool that is run now.

    Args:
        call: the call.
    """
    return next_id(
        {
            "call": call.also[0],
            "example": call.turn.example,
            "item": call_item.get(),
            "place": call_place.get(),
            "tool": call_tool.get(),
        }
    )


@contextlib.contextmanager
def observe_tools(callback: Callable[[ToolRecord], None]) -> Iterator[None]:
    """Inside the block, `callback` gets a record of every call of a tool that ends, as `usage.observe` has it."""
    with setting(_observers, (*_observers.get(), callback)), giving_ids():
        yield


def are_observed() -> bool:
    """Whether anybody around is told of tools."""
    return bool(_observers.get())


def tell_of(record: ToolRecord) -> None:
    """Tell the observers around of a call of a tool that has ended."""
    for tell in _observers.get():
        tell(record)


_observers: ContextVar[tuple[Callable[[ToolRecord], None], ...]] = ContextVar(
    "textgrad_engine_tool_observers", default=()
)
