"""A tool of a model as a module: what the model is told of it are texts that can be trained."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import texts_in_order
from textgrad_engine.keywords import names_told
from textgrad_engine.nn.module import Module
from textgrad_engine.nn.parameter import Parameter
from textgrad_engine.nn.parameters import ParameterDict
from textgrad_engine.ops.offered import (
    arguments_of,
    as_function,
    description_problem,
    inside_of,
    is_function,
    name_of_tool,
    part_names,
)
from textgrad_engine.ops.tools import OwnTexts, tools_of
from textgrad_engine.wording import told

MOST_CHARACTERS = 1024
"""Of a function's description, in OpenAI's API: it refuses requests with longer ones."""


class Description(Parameter):
    """What a model is told of a tool: a text without slots, which has to be short (`optim.contracts.standard`)."""

    __slots__ = ()


class Tool(Module, OwnTexts):
    """A tool for ``tools=[…]`` whose description and argument descriptions can be trained.

    The description decides when a model calls a tool, and with which arguments. If it calls the wrong tool, or with
    wrong arguments, feedback on the answer becomes feedback on the descriptions, as on a system prompt. The critic is
    shown all calls, and the tools with tags around the texts that it is asked about.

    GEPA trains descriptions of tools through an adapter for MCP; here they are Parameters like any other.

    Args:
        function: the function that is run when a model calls the tool. Or a description alone: a dict as in OpenAI's
            API or as an MCP server lists it (or what an MCP client makes of that). Then nothing is run: the calls are
            the answer.
        description: what the tool does, as the model is told. Default: the docstring, or what the dict says.
        arguments: descriptions of arguments, by their names; or only the names of those whose existing description is
            to be trained (a `pydantic.Field(description=…)`, what the dict says, or none yet). Those of other arguments
            stay as they are.

    Attributes:
        name: what the model calls it by, which is never trained.
        description: the text, a Parameter. New texts of it have at most 1,024 characters, as OpenAI's API wants it.
        arguments: the texts about arguments that are trained, by their names, with ``_`` for dots in them.

    To keep a text as it is, freeze it: ``tool.description.requires_grad = False``. A Variable is taken as it is, and
    may be shared; optimizers know only its role.

    Raises:
        TypeError: it is neither a function nor such a dict; a description is no text; or the function is none that a
            model can be told of (see `ops.chat_completion`).
        ValueError: there is no argument of a name.

    Example:
        >>> from textgrad_engine.nn import ChatCompletion
        >>> def order(number: int) -> str:
        ...     "Looks something up."
        ...     return "shipped"
        >>> desk = ChatCompletion("{question}", system="Answer the customer.", tools=[Tool(order)])
        >>> [(name, parameter.role) for name, parameter in desk.named_parameters()]
        [('tools.order.description', 'description of the tool order, by which a model decides when and how to call it')]
    """

    @names_told
    def __init__(
        self,
        function: Callable[..., Any] | Mapping[str, Any],
        description: str | Variable | None = None,
        arguments: Mapping[str, str | Variable] | Iterable[str] | None = None,
    ) -> None:
        super().__init__()
        if isinstance(function, OwnTexts):
            raise TypeError("Tool: it is one already; give the function, or what a model is told of it")
        function = as_function(function)
        if not callable(function) and not isinstance(function, Mapping):
            raise TypeError(f"Tool: function is a function, or what a model is told of a tool, got {told(function)}")
        if callable(function):
            described, self._run = tools_of([function], 1, "Tool")
        else:
            described, self._run = (function,), None
        assert described is not None
        self._told = _plain(described[0])
        self.name = name_of_tool(self._told)
        there = inside_of(self._told)
        self.description = _made(description, there, "description", _ROLE.format(self.name))
        self.arguments = ParameterDict()
        self._about: dict[str, Variable] = {}
        known = arguments_of(self._told)
        parts = part_names(known)
        self._argument_of = {part: argument for argument, part in parts.items()}
        for name, text in _by_name(arguments).items():
            if name not in known:
                raise ValueError(f"Tool: {self.name!r} has no argument {name!r}; it has {', '.join(known) or 'none'}")
            there = _schema(known[name])
            if there is None:
                raise TypeError(f"Tool: the argument {name!r} of {self.name!r} has no schema, got {told(known[name])}")
            made = _made(text, there, f"the text about {name!r}", _ROLE_OF_ARGUMENT.format(name, self.name))
            (self.arguments if isinstance(made, Parameter) else self._about)[parts[name]] = made

    @property
    def function(self) -> Callable[..., Any] | None:
        """What is run when a model calls it; None where the calls are the answer."""
        return None if self._run is None else self._run.functions[0]

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(arguments_of(self._told))

    def texts(self) -> dict[str | None, Any]:
        """Its texts, by the arguments that they are about; by None what it does, unless it is told nothing of that.

        Raises:
            ValueError: one is about an argument that there is not.
        """
        texts: dict[str | None, Any] = {} if self.description is None else {None: self.description}
        for part, text in (*self._about.items(), *self.arguments.items()):
            if part not in self._argument_of:
                raise ValueError(
                    f"Tool: {self.name!r} has no argument {part!r}, and there is a text about one; arguments has the "
                    f"names {', '.join(self._argument_of) or 'of none'}"
                )
            texts[self._argument_of[part]] = text
        return texts

    def described(self, texts: Mapping[str | None, Any] | None = None) -> dict[str, Any]:
        """What a model is told of it, a dict as in OpenAI's API; with Variables as its descriptions.

        Args:
            texts: what stands in the place of `texts`.
        """
        made: dict[str, Any] = _copied(self._told)
        texts = self.texts() if texts is None else texts
        if None not in texts:
            inside_of(made).pop("description", None)
        told_of = arguments_of(made)
        for name, text in texts.items():
            if name is None:
                inside_of(made)["description"] = text
            else:
                told_of[name] = {**(_schema(told_of[name]) or {}), "description": text}
        return made

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        if self.function is None:
            raise TypeError(f"nothing is run when a model calls {self.name!r}: it was made of a description")
        return self.function(*args, **kwargs)

    def extra_repr(self) -> str:
        """Its name."""
        return self.name


_ROLE = "description of the tool {}, by which a model decides when and how to call it"
_ROLE_OF_ARGUMENT = "description of the argument {} of the tool {}, by which a model decides what to give for it"


def _made(text: Any, there: Mapping[str, Any], what: str, role: str) -> Any:
    """The text that is given, or that there is."""
    if text is None:
        text = "" if there.get("description") is None else there["description"]
    if not isinstance(text, str | Variable):
        raise TypeError(f"Tool: {what} is a text or a Parameter, got {told(text)}")
    return Description(text, role) if isinstance(text, str) else text


def _by_name(arguments: Any) -> Mapping[str, Any]:
    """The texts about arguments by their names; None for one that there is."""
    if arguments is None or isinstance(arguments, Mapping):
        return arguments or {}
    names = (
        None if isinstance(arguments, str) or not isinstance(arguments, Iterable) else tuple(texts_in_order(arguments))
    )
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f"Tool: arguments are names of arguments, or a dict from these to texts, got {told(arguments)}")
    return dict.fromkeys(names)


def _plain(described: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a description that is JSON, which later changes of the caller's do not reach."""
    try:
        made: dict[str, Any] = json.loads(json.dumps(as_function(described)))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Tool: what a model is told of {name_of_tool(described)!r} is no JSON ({error}); a text of it that is to "
            "be trained is given by itself: nn.Tool(described, description=…)"
        ) from None
    if why := description_problem(made, flat=True):
        raise TypeError(f"Tool: the description {why}")
    if not is_function(made):
        raise TypeError(f"Tool: {made['type']!r} is a tool of the endpoint's own, which nobody can describe otherwise")
    return made


def _schema(told: Any) -> Mapping[str, Any] | None:
    """What a schema says; None for what is none. JSON Schema has true for one that says nothing."""
    return {} if told is True else told if isinstance(told, Mapping) else None


def _copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copied(value) for key, value in tree.items()}
    return [_copied(value) for value in tree] if isinstance(tree, list) else tree
