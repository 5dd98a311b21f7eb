"""What is asked of a model: messages and sampling settings, frozen, with the field's usual names."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from textgrad_engine.keywords import names_of, which_is_meant
from textgrad_engine.kinds import nearest
from textgrad_engine.llm import typed
from textgrad_engine.llm.schema import check_schema, plainly_fits, schema_problem
from textgrad_engine.llm.strict import strictly, wrapped

Purpose = Literal["forward", "judge", "backward", "optimizer"]
"""Why a call is made; usage and cost are added up by it, and `use_models` chooses the model by it."""


INSTEAD = {
    "messages": "the messages are the request's own",
    "model": "the model is named where it is made; use another one",
    "n": "one call is one answer; for several, await llm.samples(model, request, n), or ask within llm.repeat(index)",
    "stream": "to see an answer as it comes, ask within llm.on_token(callback)",
    "stream_options": "to see an answer as it comes, ask within llm.on_token(callback)",
}
"""Fields of the endpoints' APIs that are no settings here, nor go through `extra`, and what is used instead."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)  # a dataset, or a key


class Record(_Frozen):
    """Base of records whose fields are given by name, or the first of them in order, and that are made with no others.

    Type checkers go by the `__init__` that each states for them, as what they make of fields takes names alone.

    Example:
        >>> Message("user", "May I?") == Message(role="user", content="May I?")
        True
    """

    def __init__(self, /, *given: Any, **named: Any) -> None:
        if given:
            named = _by_name(type(self), given, named)
        self.__pydantic_validator__.validate_python(named, self_instance=self)
        if len(named) > len(self.model_fields_set):  # of one whose records may have fields of newer versions
            unknown = [name for name in named if name not in type(self).model_fields]
            raise ValidationError.from_exception_data(
                type(self).__name__,
                [{"type": "extra_forbidden", "loc": (name,), "input": named[name]} for name in unknown],
            )

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # or validation would make each by calling it


def _by_name(record: type[Record], given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    fields = list(record.model_fields)
    if len(given) > len(fields):
        raise TypeError(f"{record.__name__} has {len(fields)} fields ({', '.join(fields)}), got {len(given)} values")
    in_order = dict(zip(fields, given))
    if twice := sorted(in_order.keys() & named.keys()):
        raise TypeError(f"{record.__name__} got {twice[0]!r} twice, in its place and by name")
    return {**in_order, **named}


class Message(Record):
    """One message of a conversation.

    Attributes:
        role: who says it: ``"system"``, ``"user"``, ``"assistant"``, ``"developer"`` or ``"tool"``.
        content: its text, or a list of content parts (dicts as in OpenAI's API) that is passed on as it is.
        tool_calls: the tool calls that an assistant message made, as dicts in OpenAI's shape.
        tool_call_id: the call that a message of role ``"tool"`` answers.
        items: what an assistant message was in the Responses API, with its reasoning (see `Completion.items`). That API
            is sent these in place of content and tool calls. Of chat completions, the fields beside them that the
            endpoint wants back. Items of the one mean nothing to the other.

    Example:
        >>> Message("user", "Where is my parcel?").text
        'Where is my parcel?'
    """

    role: Literal["system", "user", "assistant", "developer", "tool"]
    content: str | list[dict[str, Any]]
    tool_calls: tuple[Mapping[str, Any], ...] | None = None
    tool_call_id: str | None = None
    items: tuple[Mapping[str, Any], ...] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            role: Literal["system", "user", "assistant", "developer", "tool"],
            content: str | list[dict[str, Any]],
            tool_calls: Sequence[Mapping[str, Any]] | None = None,
            tool_call_id: str | None = None,
            items: Sequence[Mapping[str, Any]] | None = None,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text of the message; parts that are not text are left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.get("text", "") for part in self.content if part.get("type") == "text")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Message:
        """A copy with other fields."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop(FORMS, None)
        return copied


class ResponseFormat(_Frozen):
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
        its root: these stand in the one property of an object, of which `check.unwrapped` takes the answer.
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


class GenerateConfig(_Frozen):
    """Sampling settings; None means that the setting is not sent and the endpoint's default holds.

    There is no `n`: `llm.samples` asks for several answers, each a call of its own for limits, budget, retries and
    cache. There is no `stream`: inside an `llm.on_token` block, answers are streamed to a callback.

    Attributes:
        max_tokens: the most tokens an answer may have.
        stop: texts that end an answer where they would come; a single one may be given as it is.
        response_format: structured output: a `ResponseFormat`, or what `ResponseFormat.of` makes one of (a pydantic
            model, a JSON schema).
        extra: settings of one endpoint, passed on by name exactly as they are.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = Field(default=None, gt=0)
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: str | None = None
    response_format: ResponseFormat | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    tool_choice: str | Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = Field(default_factory=dict)

    @field_validator("stop", mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @field_validator(
        "temperature", "top_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty", mode="before"
    )
    @classmethod
    def _number(cls, given: Any) -> Any:
        if isinstance(given, bool) or given != given:
            raise ValueError(f"must be a number, got {given}")
        return given

    @field_validator("response_format", mode="before")
    @classmethod
    def _format_of(cls, given: Any) -> Any:
        return given if given is None or isinstance(given, ResponseFormat) else ResponseFormat.of(given)

    @model_validator(mode="before")
    @classmethod
    def _name_what_is_used_instead(cls, given: Any) -> Any:
        if isinstance(given, dict) and (found := INSTEAD.keys() & given.keys()):
            raise ValueError(unknown_setting(min(found)))
        return given

    def over(self, defaults: GenerateConfig) -> GenerateConfig:
        """These settings, and those of `defaults` where this one has none; `extra` is merged by name.

        Example:
            >>> GenerateConfig(temperature=0.0).over(GenerateConfig(temperature=1.0, max_tokens=9)).max_tokens
            9
        """
        if not defaults.model_fields_set:
            return self
        filled = {
            name: theirs
            for name in defaults.model_fields_set
            if name != "extra" and getattr(self, name) is None and (theirs := getattr(defaults, name)) is not None
        }
        if defaults.extra:
            filled["extra"] = {**defaults.extra, **self.extra}
        return self.model_copy(update=filled) if filled else self


def unsendable(extra: Mapping[str, Any], instead: Mapping[str, str] = INSTEAD) -> str:
    """What is said about settings in `extra` of which one is not for it to say; "" where all can be sent.

    Args:
        extra: the settings.
        instead: the names that are not, and what is used in their place.

    Example:
        >>> unsendable({"model": "m", "top_k": 3})
        "extra={'model': ...} cannot be sent: the model is named where it is made; use another one"
    """
    name = min(instead.keys() & extra.keys(), default=None)
    return "" if name is None else f"extra={{{name!r}: ...}} cannot be sent: {instead[name]}"


def unknown_setting(name: str, function: Callable[..., Any] | None = None) -> str:
    """What is said about a name that is no sampling setting: what there is, or what to use instead.

    Args:
        name: the name.
        function: what was called, whose own arguments may be meant.

    Example:
        >>> unknown_setting("stream")
        "unknown sampling setting 'stream': to see an answer as it comes, ask within llm.on_token(callback)"
    """
    if name in INSTEAD:
        return f"unknown sampling setting {name!r}: {INSTEAD[name]}"
    known = sorted(GenerateConfig.model_fields)
    meant = which_is_meant(name, [*([] if function is None else names_of(function)), *known])
    extra = f"what only one endpoint knows goes into extra={{{name!r}: ...}}"
    if meant:  # what is known by another name, or goes elsewhere, is no setting of an endpoint: a key may be among it
        return f"unknown sampling setting {name!r}{meant}{f' ({extra})' if meant == nearest(name, known) else ''}"
    return f"unknown sampling setting {name!r}; known are {', '.join(known)}, and {extra}"


def config_from(settings: Mapping[str, Any], function: Callable[..., Any]) -> GenerateConfig:
    """Sampling settings by name, checked; whatever takes them by name says the same of wrong ones.

    Args:
        settings: the settings.
        function: what they were given to.

    Raises:
        TypeError: a name is unknown.
        ValueError: a setting is none of its kind, or out of its range.
    """
    known = GenerateConfig.model_fields
    if unknown := [name for name in settings if name not in known]:
        raise TypeError(unknown_setting(unknown[0], function))
    try:
        return GenerateConfig(**settings)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        owner = function.__qualname__.removesuffix(".__init__")
        raise ValueError(f"{owner}: {'; '.join(wrong).replace(': Value error, ', ': ')}") from None


class Request(Record):
    """One call of a model.

    Attributes:
        messages: the conversation so far, oldest first.
        config: sampling settings.
        purpose: why it is asked; not sent to the endpoint.

    Example:
        >>> asked = Request((Message("user", "Hello"),), GenerateConfig(temperature=0))
        >>> asked.messages[0].text, asked.purpose
        ('Hello', 'forward')
    """

    messages: tuple[Message, ...]
    config: GenerateConfig = GenerateConfig()
    purpose: Purpose = "forward"

    if TYPE_CHECKING:

        def __init__(
            self, messages: Sequence[Message], config: GenerateConfig = ..., purpose: Purpose = "forward"
        ) -> None: ...


FORMS = "_forms"
"""Where a message keeps what it is as JSON (`as_json`): beside its fields, as what is cached there."""

_MODEL = "_model"
"""Where a format keeps the class that it was made of: beside its fields, as what is cached there."""

_ROOTS = {"type", "properties", "$ref", "anyOf", "oneOf", "allOf"}


def _identifier(name: str) -> str:
    """A name as endpoints take it; that of a generic pydantic model has brackets."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "answer"


def _can_be_found(model: type[Any]) -> bool:
    """Whether pickle knows a way to it; to what a function has made, there is none."""
    found: Any = sys.modules.get(model.__module__)
    for name in model.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is model
