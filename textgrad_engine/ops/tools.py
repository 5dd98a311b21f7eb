"""Python functions as tools of a model: how it is told of them, and what its calls of them give.

NOTE [Tools]
    A chat completion whose `tools` are Python functions goes on by itself: the calls that a model makes are run, the
    model is told what they gave and asked again, until it answers without a call, or was asked `max_turns` times. All
    of it is one operation. A critic is shown every turn of it and asked once, however many turns there were.

    A tool that raises costs the model a turn and nobody else anything: the model is told what it raised, and may call
    it otherwise. The first such failure of each kind is logged once a run, as it may be a mistake in the tool. What
    ends a run (an interruption, a budget that is spent) ends it here, too.

    What tools give is recorded, and played back with the answers of models (`llm.tools_on_record`).

    A tool that gives a Variable which wants feedback, such as the answer of another part of the program, is a part of
    the program, too. The critic is asked about what it gave as about any input, and what it says goes on to the prompts
    that this was made of (NOTE [Late inputs] in `autograd.late`). No feedback goes through one that gives text.

    Images in what a tool gives are sent as images (`tool_results`), and the critic sees them where they stood.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import json
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, NamedTuple

from pydantic import ValidationError

from textgrad_engine import dispatch, pytree, templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.late import finding_inputs, may_find_inputs
from textgrad_engine.callables import called_by, name_of
from textgrad_engine.checks import in_order
from textgrad_engine.errors import TextgradError
from textgrad_engine.llm.check import MAX_TEXT
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.redact import keys_of, redacted, secrets_named
from textgrad_engine.llm.request import Message, Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.taped import tool_result
from textgrad_engine.llm.tool_images import in_words
from textgrad_engine.llm.toolcalls import ToolCall, ToolResult, Turn
from textgrad_engine.ops.offered import as_function
from textgrad_engine.ops.tool_forms import form_of
from textgrad_engine.ops.tool_results import content_of, sendable
from textgrad_engine.plain_values import is_whole
from textgrad_engine.scoped import setting
from textgrad_engine.wording import told

_log = logging.getLogger("textgrad_engine.ops.tools")

MAX_TURNS = 5
"""How often a model with functions as tools is asked at most, where nobody says otherwise."""

_MOST = 10
"""Faults of a call's arguments that are told: a model that lost the thread may write thousands, to read them itself."""

_LONG = 200
"""Characters of an argument's name that are told."""

_PLAIN = frozenset((str, int, float, bool, type(None)))

NO_FEEDBACK = (
    "no feedback goes through a tool that gives text. To have a prompt trained that is asked inside of one, have the "
    "tool return the Variable that was answered, `return self.researcher(topic=topic)`, without its .data; or, where "
    "Python made something else of it, ops.straight_through(text, answer)"
)
"""What is said where a prompt hears nothing because it is asked inside of a tool."""


class Told(NamedTuple):
    """What a model is told of a call that it made.

    Attributes:
        message: the message.
        tool: the name of the tool.
        given: what the tool gave, where feedback may go through it; else None.
    """

    message: Message
    tool: str
    given: Variable | None


class OwnTexts:
    """A tool that says itself what a model is told of it, by texts that may be Variables."""

    @property
    def function(self) -> Callable[..., Any] | None:
        """What is run when a model calls it; None where the calls are the answer."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """What a model is told of it, a dict as in OpenAI's API."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Tools:
    """The functions that a model may call.

    Attributes:
        functions: the functions.
        max_turns: how often the model is asked at most.
    """

    functions: tuple[Callable[..., Any], ...]
    max_turns: int

    def of_copy(self, memo: dict[int, Any]) -> Tools:
        """These tools in a copy of a program: methods of modules and of what is copied belong to the copy.

        Args:
            memo: of `copy.deepcopy`: what was copied so far.
        """
        functions = tuple([_of_copy(function, memo) for function in self.functions])
        return self if functions == self.functions else Tools(functions, self.max_turns)

    __deepcopy__ = of_copy

    async def answers(self, completion: Completion, asked: Request, model: Model, example: str) -> list[Told]:
        """What the calls of an answer give, and what the model is told of it; they run at the same time.

        Args:
            completion: the answer.
            asked: the messages that it answers.
            model: who gave it.
            example: what it belongs to.
        """
        calls = completion.tool_calls
        said = asked.model_copy(update={"messages": (*asked.messages, completion.as_message())})
        turn = Turn(model.name, said, keys_of(model), example)
        _log_book.get().used = True
        made = []
        given: dict[int, Variable] = {}
        for place, called in enumerate(calls):
            function = called.get("function") or {}
            arguments = function.get("arguments") or "{}"
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments)
            made.append(ToolCall(str(function.get("name", "")), arguments, turn, place, may_find_inputs()))
        results = await asyncio.gather(
            *[dispatch.caught(tool_result, call, functools.partial(self._run, call, given)) for call in made]
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [
            Told(
                result.message(str(called.get("id", ""))),
                call.name,
                given.get(call.place),
            )
            for called, call, result in zip(calls, made, results)
        ]

    async def _run(self, call: ToolCall, made: dict[int, Variable]) -> ToolResult:
        """Run a tool; what it gave is put into `made`, by the place of the call, if feedback may go through it."""
        name = call.name
        tool = next((each for each in self.functions if name_of(each) == name), None)
        if tool is None:
            return _failed(f"there is no tool {name!r:.{_LONG}}, there are {[*map(name_of, self.functions)]}")
        try:
            form = form_of(tool)
            arguments = form.fields.model_validate_json(call.arguments)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            places = [".".join(map(str, each["loc"]))[:_LONG] or "arguments" for each in found[:_MOST]]
            wrong = [f"{place}: {each['msg']}" for place, each in zip(places, found)]
            more = [f"and {len(found) - _MOST:,} more"] if len(found) > _MOST else []
            return _failed("; ".join([*wrong, *more]))
        given = {name: getattr(arguments, field) for field, name in form.names.items()}
        try:
            with finding_inputs():
                result = await dispatch.called(tool, **given)
                if isinstance(result, AsyncIterator):
                    result = [each async for each in result]
            if isinstance(result, Variable):  # as it is now: another tool may write into it
                result = result._alias()
            if all(type(leaf) in _PLAIN for leaf in pytree.leaves(result)):
                content = content_of(result)  # at once, as a tool is run again that was done and is not on record
            else:  # what is in it may have to be waited for
                content = await dispatch.aside(functools.partial(content_of, result), in_turn=True)
        except TextgradError:
            raise
        except Exception as error:
            _note(tool, error)
            return _failed(f"{type(error).__name__}: {error}")
        text = in_words(content)
        if len(text) > MAX_TEXT:  # no request with it in it would be sent
            return _failed(f"it gave {len(text):,} characters, and {MAX_TEXT:,} are the most; ask it for less")
        if isinstance(result, Variable) and result.requires_grad and may_find_inputs():
            made[call.place] = result
        return ToolResult(text, through=call.place in made, content=() if isinstance(content, str) else tuple(content))


def tools_of(
    tools: Iterable[Any] | None, max_turns: int, call: str
) -> tuple[tuple[Mapping[str, Any], ...] | None, Tools | None]:
    """The descriptions of tools, and how to run them; None where they are descriptions already, which a user runs.

    Args:
        tools: functions, or descriptions as OpenAI's API, a server of MCP, or Anthropic's API has them; not both.
            Either may be a tool with texts of its own.
        max_turns: how often the model is asked at most.
        call: the user's call, for messages.

    Raises:
        TypeError: some are functions and some are not, or one is neither that nor a description; or a function does not
            say what its arguments are.
        ValueError: two have one name, or `max_turns` is below 1.
    """
    if not is_whole(max_turns) or max_turns < 1:
        raise ValueError(f"{call}: max_turns is how often the model is asked at most, at least 1; got {max_turns!r}")
    if tools is None:
        return None, None
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise TypeError(f"{call}: tools is a list of functions, tools=[function, …]; got {told(tools)}")
    offered = tuple(in_order(tools, f"{call}: tools: "))
    tools = tuple([_plainly(tool) for tool in offered])
    functions = [tool for tool in tools if callable(tool)]
    if other := [tool for tool in tools if not callable(tool) and (functions or not isinstance(tool, Mapping))]:
        beside = f"{name_of(functions[0])} and " if functions else ""
        raise TypeError(
            f"{call}: tools are functions, which are run for the model, or descriptions of tools (dicts), whose calls "
            f"are the answer; got {beside}{told(other[0])}. Write a function for each"
        )
    own = [tool.described() if isinstance(tool, OwnTexts) else None for tool in offered]
    if not functions:
        return tuple([texts or tool for texts, tool in zip(own, tools)]), None
    names = [*map(name_of, functions)]
    if wrong := [function for function, name in zip(functions, names) if not name.isidentifier()]:
        raise TypeError(f"{call}: the tool, {told(wrong[0])}, has no name for the model; give a function made with def")
    if unfit := [name for function, name in zip(functions, names) if not isinstance(function, Hashable)]:
        raise TypeError(f"{call}: the tool {unfit[0]!r} is an object without a hash; make its dataclass with eq=False")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"{call}: two tools are called {twice[0]!r}; rename one, as the model calls them by name (a partial, or an "
            'object, by its attribute: tool.__name__ = "...")'
        )
    described = [texts or form_of(function).described for texts, function in zip(own, functions)]
    return tuple(described), Tools(tuple(functions), max_turns)


def _plainly(tool: Any) -> Any:
    """The function of a tool with texts of its own; a description as OpenAI's API has it; anything else as it is."""
    if isinstance(tool, OwnTexts):
        return tool.described() if tool.function is None else tool.function
    return as_function(tool)


def _of_copy(function: Callable[..., Any], memo: dict[int, Any]) -> Callable[..., Any]:
    if isinstance(function, functools.partial):
        inner = _of_copy(function.func, memo)
        if inner is function.func:
            return function
        made = functools.partial(inner, *function.args, **function.keywords)
        made.__dict__.update(function.__dict__)
        return made
    if not isinstance(function, MethodType):
        return function
    owner = function.__self__
    if id(owner) not in memo and (isinstance(owner, type) or not hasattr(owner, "named_parameters")):
        return function  # of something else, such as a connection to a database
    return MethodType(function.__func__, copy.deepcopy(owner, memo))  # of a module, which may be copied only later


def _failed(problem: str) -> ToolResult:
    problem = sendable(problem)
    return ToolResult(templates.load("tool_failed").render(problem=problem), problem)


@contextlib.contextmanager
def telling_anew() -> Iterator[None]:
    """Inside the block, which is that of a run, the log tells of failures of tools, whatever it had told before."""
    with setting(_log_book, _LogBook()):
        yield


def have_been_called() -> bool:
    """Whether a model has called a tool in this run, or outside of runs in this process."""
    return _log_book.get().used


def _note(tool: Callable[..., Any], error: Exception) -> None:
    """Tell of the first failure of each kind of a tool."""
    raised, told = type(error).__name__, _log_book.get().told
    kind = called_by(tool).__module__, name_of(tool), raised
    if kind not in told:
        told.add(kind)
        said = redacted(str(error), secrets_named())
        _log.warning("the tool %s raised %s: %.500r; the model is told, each time", name_of(tool), raised, said)


@dataclass
class _LogBook:
    """What is known of tools in a run, or in this process outside of runs.

    Attributes:
        told: the kinds of failures that the log has: module, name, class of the error.
        used: whether any was called.
    """

    told: set[tuple[str, str, str]] = field(default_factory=set)
    used: bool = False


_log_book: ContextVar[_LogBook] = ContextVar("textgrad_engine_log_of_tools", default=_LogBook())  # noqa: B039
