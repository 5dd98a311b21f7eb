"""Forms that a Python class describes: a pydantic model, a dataclass or a TypedDict."""

from __future__ import annotations

import dataclasses
import functools
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from textgrad_engine.llm.schema import follow

_MOST = 5
"""How many of the things that a class finds wrong about an answer are told."""

_LONGEST = 500
"""Characters that are told of one of them."""


def is_described_by(wanted: Any) -> TypeGuard[type[Any]]:
    """Whether it is a class that describes a JSON object.

    Example:
        >>> is_described_by(BaseModel), is_described_by(dict)
        (True, False)
    """
    if not isinstance(wanted, type):
        return False
    return issubclass(wanted, BaseModel) or dataclasses.is_dataclass(wanted) or hasattr(wanted, "__total__")


def schema_of(wanted: Any) -> dict[str, Any]:
    """The schema of a class, as strict structured output wants it: closed objects, every property required.

    Raises:
        ValueError: no schema tells it, an answer could not have a field where the schema has it, or it is that of no
            object.
    """
    try:
        described = wanted.model_json_schema() if issubclass(wanted, BaseModel) else _adapter(wanted).json_schema()
        schema: dict[str, Any] = _strict(described)
    except (PydanticUserError, AttributeError, NameError, TypeError) as error:
        said = str(error).split("\n", 1)[0]
        raise ValueError(
            f"{wanted.__name__} cannot be described to a model: {said}; give its fields types that JSON has, and "
            "define what they refer to"
        ) from error
    for name, alias in _by_path(_adapter(wanted).core_schema, by_name=False):
        raise ValueError(
            f"{wanted.__name__}: the field {name!r} is read from the path {alias} alone, and no schema tells that to a "
            "model; give it a plain alias, or a model of its own for what the path leads through, or set "
            "validate_by_name=True in its model_config"
        )
    if (whole := schema.pop("$ref", None)) is not None:  # of a class that holds itself; endpoints want an object here
        schema = {**schema, **follow(whole, schema)}
    if schema.get("type", "object") != "object":
        raise ValueError(no_object(wanted))
    return schema


def problem(wanted: Any, text: str) -> str | None:
    """What is wrong about an answer by the rules of a class, in words for whoever is to mend it; None when all is well.

    Args:
        wanted: the class.
        text: the answer, as JSON.
    """
    try:
        if issubclass(wanted, BaseModel):
            wanted.model_validate_json(text)
        else:
            _adapter(wanted).validate_json(text)
    except ValidationError as error:
        return "; ".join([_told(each) for each in error.errors(include_url=False, include_context=False)[:_MOST]])
    except Exception as error:  # its rules are the user's own code; what they cannot work with is no good answer
        return _shown(f"$: its rules failed: {type(error).__name__}: {error} ({_place_of(error)})")
    return None


def no_object(wanted: Any) -> str:
    """What is said about something that describes no JSON object."""
    got = (
        f"an instance of {type(wanted).__name__}, not the class" if is_described_by(type(wanted)) else str(wanted)[:200]
    )
    return (
        f"expected a pydantic model, a dataclass, a TypedDict or the JSON schema of an object, got {got}; a list or a "
        "number goes into a property of an object, and what only one endpoint knows into extra={...}"
    )


@functools.lru_cache(maxsize=256)
def _adapter(wanted: Any) -> TypeAdapter[Any]:
    return TypeAdapter(wanted)


def _by_path(schema: Any, *, by_name: bool) -> Iterator[tuple[str, str]]:
    """The fields, and where they are read from, that an answer could only have at a place which no schema tells."""
    if isinstance(schema, list | tuple):
        for each in schema:
            yield from _by_path(each, by_name=by_name)
    if not isinstance(schema, Mapping):
        return
    config = schema.get("config") or {}
    by_name = config.get("validate_by_name", by_name)
    fields = schema.get("fields", ())
    named = fields.items() if isinstance(fields, Mapping) else [(field, field) for field in fields]  # of a dataclass
    for name, field in named:
        alias = field.get("validation_alias") if isinstance(field, Mapping) else None
        if isinstance(alias, list) and not by_name and not any(_is_plain(path) for path in alias):
            path = alias[0] if isinstance(alias[0], list) else alias
            yield name if isinstance(name, str) else field["name"], ".".join(map(str, path))
    for key, below in schema.items():
        if key not in ("default", "metadata", "serialization"):
            yield from _by_path(below, by_name=by_name)


def _is_plain(path: Any) -> bool:
    """Whether an alias among several is a key of the object itself, which the schema then has."""
    return isinstance(path, list) and len(path) == 1 and isinstance(path[0], str)


def _told(error: Any) -> str:
    """One of a pydantic model's complaints, with its place."""
    return _shown(f"{'.'.join(['$', *map(str, error['loc'])])}: {error['msg']}")


def _shown(said: str) -> str:
    """What is said about an answer, as it can be sent, and not longer than is good for whoever mends it."""
    said = said.encode("utf-8", "replace").decode()
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."


def _place_of(error: Exception) -> str:
    """The file and the line where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):  # what is below are names of the user's, not keywords
            made[key] = {name: _strict(below) for name, below in value.items()}
        elif key in ("enum", "const", "required"):
            made[key] = value
        elif key != "default":
            made[key] = _strict(value)
    if isinstance(made.get("properties"), dict):
        made["required"] = list(made["properties"])
        made["additionalProperties"] = False
    return made
