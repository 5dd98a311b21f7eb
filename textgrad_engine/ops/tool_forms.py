"""What Python functions take as tools of a model: the form of their arguments, and what the model is told of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, PydanticUserError, create_model

from textgrad_engine.callables import called_by, name_of, signature_of, types_of_arguments


@dataclass(frozen=True, slots=True)
class ToolForm:
    """The arguments of a function.

    Attributes:
        fields: a pydantic model that has a field for each, with the argument's name as its alias, as models have names
            of their own (`schema`, `json`, `model_config`) that arguments may have, too.
        names: the argument's name by that of the field.
        described: what a model is told of the function, as in OpenAI's API.
    """

    fields: type[BaseModel]
    names: dict[str, str]
    described: dict[str, Any]


@functools.lru_cache(maxsize=256)
def form_of(function: Callable[..., Any]) -> ToolForm:
    """The arguments of a function.

    Raises:
        TypeError: an argument has no type, or cannot be given by its name.
    """
    name = name_of(function)
    if hasattr(function, "named_parameters"):
        raise TypeError(
            f"the tool {name!r} is a module, and a model calls tools by the names of arguments; give a method of the "
            "program that asks that part, says what its argument is, and has a docstring for the model: `def ask(self, "
            "text: str)` with `return self.part(text)`"
        )
    try:
        types = types_of_arguments(function)
        parameters = signature_of(function).parameters.items()
    except (NameError, SyntaxError) as error:
        raise TypeError(f"the tool {name!r} has a type that is not known where it is defined: {error}") from error
    except (TypeError, ValueError) as error:  # a builtin, an object that can be called
        partial = isinstance(function, functools.partial)  # Python shows what it settles, which may be a key
        why = "its function does not, or the partial settles one that it does not have" if partial else error
        raise TypeError(
            f"the tool {name!r} does not say what its arguments are: {why}; give a function made with def"
        ) from (None if partial else error)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    settled = _settled(function)
    for argument, parameter in parameters:
        if argument in settled:
            continue
        _check_argument(function, name, parameter, typed=argument in types)
        place = f"argument_{len(names)}"
        names[place] = argument
        fields[place] = (types[argument], ... if parameter.default is parameter.empty else parameter.default)
    try:
        # dataclasses and TypedDicts among the types take the settings over, and have fields of their own
        config = ConfigDict(extra="forbid", alias_generator=lambda field: names.get(field, field))
        form: type[BaseModel] = create_model(name, __config__=config, **fields)
        schema = form.model_json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        raise TypeError(f"the arguments of the tool {name!r} cannot be described to a model: {error}") from error
    for entry in (schema, *schema.get("properties", {}).values()):
        entry.pop("title", None)
    while isinstance(function, functools.partial):
        function = function.func
    body = called_by(function)
    says = inspect.getdoc(body if body.__doc__ else function)  # of an object, its class
    described = {"name": name, "description": says or "", "parameters": schema}
    return ToolForm(form, names, {"type": "function", "function": described})


def _check_argument(function: Callable[..., Any], name: str, parameter: inspect.Parameter, *, typed: bool) -> None:
    """Refuse an argument that a model cannot give.

    Raises:
        TypeError: it has no type, or cannot be given by its name.
    """
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(
            f"the tool {name!r} takes {str(parameter).partition(':')[0]}, and a model calls tools by the names of "
            f"arguments; write a function that names each with its type: def {name}(text: str)"
        )
    if typed:
        return
    argument = parameter.name
    owner, _, _ = getattr(function, "__qualname__", "").rpartition("<locals>.")[2].rpartition(".")
    if argument == "self" and owner:
        raise TypeError(
            f"the tool {name!r} is a method of {owner} and belongs to no object; give that of one: {owner}(...).{name}"
        )
    raise TypeError(f"the tool {name!r} does not say of what type {argument!r} is, as in `{argument}: str`")


def _settled(function: Callable[..., Any]) -> set[str]:
    """The arguments that partials settle: by who made the tool, and not for the model to change.

    One that has a name of its own stays a partial inside of another.
    """
    found = set[str]()
    while isinstance(function, functools.partial):
        found |= function.keywords.keys()
        function = function.func
    return found
