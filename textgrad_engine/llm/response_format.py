"""Structured output: the form that an answer must have, and what is wrong with one that does not have it."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from typing import Any

from pydantic import field_validator

from textgrad_engine.llm import typed
from textgrad_engine.llm.frozen import Frozen
from textgrad_engine.llm.schema import check_schema, plainly_fits, schema_problem
from textgrad_engine.llm.strict import strictly, wrapped

_MODEL = "_model"
"""Where a format keeps the class that it was made of: beside its fields, as what is cached there."""

_ROOTS = {"type", "properties", "$ref", "anyOf", "oneOf", "allOf"}


class ResponseFormat(Frozen):
    """Structured output: the answer must be JSON that fits a JSON schema.

    Attributes:
        name: a short identifier that the endpoint sees.
        json_schema: the schema, as a dict (objects with ``additionalProperties: false`` and every property required,
            as strict structured output wants it).

    One that `of` makes of a pydantic model also holds answers against that model, whose rules no schema tells in full.
    The model is neither written down with the format nor compared, and pickled only where it has a name in a file.

    Raises:
        ValueError: no answer could be checked against the schema (see `schema.check_schema`).
    """

    name: str
    json_schema: Mapping[str, Any]

    @functools.cached_property  # most formats are made once, for a place that asks many times
    def described(self) -> dict[str, Any]:
        """What an endpoint is told of it: name, schema, and whether the model can be held to that while it writes.

        Endpoints that hold a model to a schema refuse some keywords in it (see `strict.strictly`), and alternatives at
        its root: these stand in the one property of an object, of which `parsing.unwrapped` takes the answer.
        """
        schema = self._wrapped or dict(self.json_schema)
        strict = strictly(schema)
        schema = schema if strict is None else strict
        return {"name": self.name, "schema": schema, "strict": strict is not None}

    @functools.cached_property
    def _wrapped(self) -> dict[str, Any] | None:
        return wrapped(self.json_schema)

    @property
    def is_wrapped(self) -> bool:
        """Whether an endpoint is told of it as the one property of an object."""
        return self._wrapped is not None

    @field_validator("json_schema")
    @classmethod
    def _can_be_used(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        check_schema(given)
        return given

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> ResponseFormat:
        """A copy with other fields, which are described anew; one with another schema is that of no pydantic model."""
        copied = super().model_copy(update=update, deep=deep)
        for known in ("described", "_wrapped"):
            copied.__dict__.pop(known, None)
        if update is not None and "json_schema" in update:
            copied.__dict__.pop(_MODEL, None)
        return copied

    @property
    def has_model(self) -> bool:
        """Whether it holds answers against a pydantic model, too."""
        return _MODEL in self.__dict__

    def without_model(self) -> ResponseFormat:
        """The format that holds answers against the schema alone, as an endpoint does."""
        return self.model_copy(update={"json_schema": self.json_schema}) if self.has_model else self

    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        model = self.__dict__.get(_MODEL)
        if model is not None and not _can_be_found(model):
            state = {**state, "__dict__": {key: value for key, value in state["__dict__"].items() if key != _MODEL}}
        return state

    def problem(self, value: Any, text: str) -> str | None:
        """What is wrong about an answer, in words for whoever is to mend it; None when it has this form.

        Args:
            value: the answer's JSON value.
            text: the same, as it was written.
        """
        schema = self.json_schema
        if not plainly_fits(value, schema) and (found := schema_problem(value, schema)) is not None:
            return found
        wanted: type[Any] | None = self.__dict__.get(_MODEL)
        return None if wanted is None else typed.problem(wanted, text)

    @classmethod
    def of(cls, wanted: type[Any] | Mapping[str, Any]) -> ResponseFormat:
        """The format that a pydantic model, a dataclass, a TypedDict or a JSON schema describes.

        Strict structured output wants closed objects whose every property is required, so a field of a pydantic model
        that has a default is required in the schema too; an answer must also be one that the model itself takes, by its
        validators and formats. Dataclasses and TypedDicts are read as pydantic reads them. A schema is taken as it is.

        Args:
            wanted: a pydantic model, a dataclass or a TypedDict, as a class; a JSON schema of an object, named by its
                ``title``; or what OpenAI's API takes as ``response_format``.

        Raises:
            ValueError: it is none of these; a schema that no answer could be checked against; or a class that no schema
                tells, such as one with a field for a function, or a field that is found by a path alone.

        Example:
            >>> from pydantic import BaseModel
            >>> class Verdict(BaseModel):
            ...     score: int = 0
            >>> ResponseFormat.of(Verdict).json_schema["required"]
            ['score']
            >>> ResponseFormat.of({"type": "object", "properties": {"score": {"type": "integer"}}}).name
            'answer'
        """
        if typed.is_described_by(wanted):
            made = cls(name=_identifier(wanted.__name__), json_schema=typed.schema_of(wanted))
            made.__dict__[_MODEL] = wanted
            return made
        given: Mapping[str, Any] = wanted if isinstance(wanted, Mapping) else {}
        if given.get("type") == "json_schema":
            described = given.get("json_schema", given)  # nested in chat completions, flat in the Responses API
            name, schema = (
                (described.get("name"), described.get("schema")) if isinstance(described, Mapping) else ("", 0)
            )
        elif "json_schema" in given:
            return cls(**given)
        else:
            name, schema = given.get("title"), given
        if not isinstance(schema, Mapping) or schema.get("type", "object") != "object" or not _ROOTS & schema.keys():
            raise ValueError(typed.no_object(wanted))
        return cls(name=_identifier(name if isinstance(name, str) else "answer"), json_schema=schema)


def _identifier(name: str) -> str:
    """A name as endpoints take it; that of a generic pydantic model has brackets."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "answer"


def _can_be_found(model: type[Any]) -> bool:
    """Whether pickle knows a way to it; to what a function has made, there is none."""
    found: Any = sys.modules.get(model.__module__)
    for name in model.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is model
