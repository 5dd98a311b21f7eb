"""Python functions as tools of a model: how it is told of them, and what its calls of them give.

NOTE [Tools]
    A chat completion whose `tools` are Python functions goes on by itself: the calls that a model makes are run, the
    model is told what they gave and asked again, until it answers without a call, or was asked `max_turns` times. All
    of it is one operation. A critic is shown every turn of it and asked once, however many turns there were.

    A tool that raises costs the model a turn and nobody else anything: the model is told what it raised, and may call
    it otherwise. The first such failure of each kind is logged, as it may be a mistake in the tool. What ends a run (an
    interruption, a budget that is spent) ends it here, too.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model
from pydantic_core import to_json

from textgrad_engine import dispatch, templates
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import TextgradError
from textgrad_engine.llm.request import Message

__all__ = ["Tools", "tools_of"]

_log = logging.getLogger("textgrad_engine.ops.tools")


@dataclass(frozen=True, eq=False)
class Tools:
    """The functions that a model may call.

    Attributes:
        functions: the functions.
        max_turns: how often the model is asked at most.
        told: the kinds of failures that the log has.
    """

    functions: tuple[Callable[..., Any], ...]
    max_turns: int
    told: set[tuple[str, str]] = field(default_factory=set, repr=False)

    def of_copy(self, memo: Mapping[int, Any]) -> Tools:
        """These tools in a copy of a program: methods of what is copied belong to the copy; all else is the same.

        Args:
            memo: of `copy.deepcopy`: what was copied so far.
        """
        functions = tuple([_of_copy(function, memo) for function in self.functions])
        return self if functions == self.functions else Tools(functions, self.max_turns)

    async def answers(self, calls: Sequence[Mapping[str, Any]]) -> list[Message]:
        """What calls give, as messages for the model; they run at the same time."""
        texts = await asyncio.gather(*[self._answer(call.get("function") or {}) for call in calls])
        return [
            Message(role="tool", content=text, tool_call_id=str(call.get("id", ""))) for call, text in zip(calls, texts)
        ]

    async def _answer(self, called: Mapping[str, Any]) -> str:
        name = called.get("name", "")
        tool = {each.__name__: each for each in self.functions}.get(name)
        if tool is None:
            return _failed(f"there is no tool {name!r}, there are {[each.__name__ for each in self.functions]}")
        try:
            arguments = _form_of(tool).model_validate_json(called.get("arguments") or "{}")
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in error.errors()]
            return _failed("; ".join(wrong))
        given = {key: getattr(arguments, key) for key in type(arguments).model_fields}
        try:
            if inspect.iscoroutinefunction(tool):
                result = await tool(**given)
            else:
                result = await dispatch.aside(functools.partial(tool, **given), in_turn=True)
        except TextgradError:
            raise
        except Exception as error:
            self._note(name, error)
            return _failed(f"{type(error).__name__}: {error}")
        return as_text(result)

    def _note(self, name: str, error: Exception) -> None:
        kind = name, type(error).__name__
        if kind not in self.told:
            self.told.add(kind)
            _log.warning("the tool %s raised %s: %s; the model is told, each time", *kind, error)


def tools_of(
    tools: Sequence[Any] | None, max_turns: int, call: str
) -> tuple[tuple[Mapping[str, Any], ...] | None, Tools | None]:
    """The descriptions of tools, and how to run them; None where they are descriptions already, which a user runs.

    Args:
        tools: functions, or descriptions as in OpenAI's API; not both.
        max_turns: how often the model is asked at most.
        call: the user's call, for messages.

    Raises:
        TypeError: some are functions and some are not; or a function does not say what its arguments are.
        ValueError: two have one name, or `max_turns` is below 1.
    """
    if max_turns < 1:
        raise ValueError(f"{call}: max_turns is how often the model is asked at most, at least 1; got {max_turns}")
    if tools is None:
        return None, None
    if callable(tools) or isinstance(tools, str | Mapping):
        raise TypeError(f"{call}: tools is a list of functions, tools=[function, …]; got {tools!r:.60}")
    functions = [tool for tool in tools if callable(tool)]
    if not functions:
        return tuple(tools), None
    if len(functions) < len(tools):
        other = next(tool for tool in tools if not callable(tool))
        raise TypeError(
            f"{call}: tools are functions, which are run for the model, or descriptions of tools, whose calls are the "
            f"answer; got {functions[0].__name__} and {other!r:.60}. Write a function for each"
        )
    names = [getattr(function, "__name__", "") for function in functions]
    if wrong := [function for function, name in zip(functions, names) if not name.isidentifier()]:
        raise TypeError(f"{call}: the tool {wrong[0]!r:.60} has no name for the model; give a function made with def")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{call}: two tools are called {twice[0]!r}; rename one, as the model calls them by name")
    return tuple([_description(function) for function in functions]), Tools(tuple(functions), max_turns)


def as_text(result: Any) -> str:
    """What a tool gave, as a model reads it: a text as it is, anything else as JSON."""
    if isinstance(result, Variable):
        result = result.data
    return result if isinstance(result, str) else to_json(result, fallback=str).decode()


def _of_copy(function: Callable[..., Any], memo: Mapping[int, Any]) -> Callable[..., Any]:
    if not isinstance(function, MethodType) or id(function.__self__) not in memo:
        return function
    return MethodType(function.__func__, memo[id(function.__self__)])


def _failed(problem: str) -> str:
    return templates.load("tool_failed").render(problem=problem)


def _description(function: Callable[..., Any]) -> dict[str, Any]:
    schema = _form_of(function).model_json_schema()
    for entry in (schema, *schema.get("properties", {}).values()):
        entry.pop("title", None)
    described = {"name": function.__name__, "description": inspect.getdoc(function) or "", "parameters": schema}
    return {"type": "function", "function": described}


@functools.lru_cache(maxsize=256)
def _form_of(function: Callable[..., Any]) -> type[BaseModel]:
    """The arguments of a function as a pydantic model.

    Raises:
        TypeError: an argument has no type, or cannot be given by its name.
    """
    name = function.__name__
    try:
        types = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"the tool {name!r} has a type that is not known where it is defined: {error}") from error
    fields: dict[str, Any] = {}
    for argument, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"the tool {name!r} takes {parameter}, and a model calls tools by the names of arguments")
        if argument not in types:
            raise TypeError(f"the tool {name!r} does not say of what type {argument!r} is, as in `{argument}: str`")
        fields[argument] = (types[argument], ... if parameter.default is parameter.empty else parameter.default)
    try:
        form: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        form.model_json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        raise TypeError(f"the arguments of the tool {name!r} cannot be described to a model: {error}") from error
    return form


def shown(messages: Sequence[Message]) -> str:
    """Messages of a conversation as JSON, a list of (role, text), with the calls that a model made in them."""
    told = []
    for message in messages:
        calls = [call.get("function") or {} for call in message.tool_calls or ()]
        lines = [f"{call.get('name', '')}({call.get('arguments', '')})" for call in calls]
        told.append((message.role, "\n".join([line for line in (message.text, *lines) if line])))
    return json.dumps(told, ensure_ascii=False)
