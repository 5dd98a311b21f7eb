"""What is asked of a model: messages and sampling settings, frozen, with the field's usual names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from textgrad_engine.checks import texts_in_order
from textgrad_engine.keywords import names_of, which_is_meant
from textgrad_engine.llm.frozen import Frozen, Record
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.wording import nearest

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


class GenerateConfig(Frozen):
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
        return (given,) if isinstance(given, str) else texts_in_order(given)

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
