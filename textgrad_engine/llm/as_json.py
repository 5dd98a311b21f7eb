"""Requests as JSON: as they are, as records of them are made, and as these are read again.

NOTE [Turns as JSON]
    An agent's conversation is looked through with each of its answers: for the record of the call, and for the names of
    the calls of tools that it makes. What a turn of it comes to, as it is and without what nobody may read, stays the
    same, so it is worked out once and kept with the message. Whoever gets it changes nothing in it. The messages that
    a conversation begins with are made anew with each request, and nothing is kept with them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from textgrad_engine.llm.attachments import as_recorded
from textgrad_engine.llm.redact import redacted
from textgrad_engine.llm.request import FORMS, GenerateConfig, Message, Request
from textgrad_engine.signed import unsigned


def asked_of(request: Request, config: GenerateConfig | None = None) -> dict[str, Any]:
    """A request as JSON, without what it leaves open; what is None inside a user's own schema or setting stays.

    Args:
        request: what is asked.
        config: its settings, where they are not the request's own.
    """
    given = request.config if config is None else config
    settings = {name: value for name, value in given.model_dump(mode="json").items() if value is not None}
    settings["extra"] = dict(sorted(settings["extra"].items()))
    if not settings["extra"]:
        del settings["extra"]
    return {"purpose": request.purpose, "messages": [_as_it_is(each) for each in request.messages], "config": settings}


def recorded(request: Request) -> dict[str, Any]:
    """A request as it is written down; see `as_recorded`."""
    return {
        name: [_recorded(each) for each in request.messages] if name == "messages" else unsigned(value)
        for name, value in asked_of(request).items()
    }


def recorded_without(request: Request, secrets: Sequence[str]) -> dict[str, Any]:
    """A request as it is written down, without secrets; see `redacted`.

    Args:
        request: what is asked.
        secrets: texts to take out wherever they stand.
    """
    return {
        name: [_redacted(each, secrets, _recorded) for each in request.messages]
        if name == "messages"
        else redacted(value, secrets)
        for name, value in recorded(request).items()
    }


def forms_of(model: str, request: Request, secrets: Sequence[str]) -> list[dict[str, Any]]:
    """A request to a model as JSON, in all forms in which it may be on record, each once.

    Args:
        model: the name of the model.
        request: what it was asked.
        secrets: texts to take out wherever they stand.

    Returns:
        It without secrets, with addresses that nothing signs, and as it is.
    """
    whole = {"model": model, **asked_of(request)}
    rest = {name: value for name, value in whole.items() if name != "messages"}
    kept = {**redacted(rest, secrets), "messages": [_redacted(each, secrets, _as_it_is) for each in request.messages]}
    bare = {**unsigned(rest), "messages": [_unsigned(each) for each in request.messages]}
    return [kept, *([bare] if bare != kept else []), *([whole] if whole not in (kept, bare) else [])]


def _as_it_is(message: Message) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        return {name: value for name, value in message.model_dump(mode="json").items() if value is not None}

    return _form(message, "as it is", make)


def _unsigned(message: Message) -> dict[str, Any]:
    return _form(message, "unsigned", lambda: unsigned(_as_it_is(message)))


def _recorded(message: Message) -> dict[str, Any]:
    if isinstance(message.content, str):
        return _unsigned(message)
    (found,) = as_recorded({"messages": [_as_it_is(message)]})["messages"]
    return dict(found)


def _redacted(message: Message, secrets: Sequence[str], of: Callable[[Message], dict[str, Any]]) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        whole = of(message)
        kept: dict[str, Any] = redacted(whole, secrets)
        return whole if kept == whole else kept

    # Not the secrets themselves, as a message may be pickled.
    return _form(message, (of.__name__, hash(tuple(secrets))), make)


def _form(message: Message, name: Hashable, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A form of a message; that of a turn is kept. See NOTE [Turns as JSON]."""
    if message.role not in ("assistant", "tool") or not isinstance(message.content, str):
        return make()
    forms: dict[Hashable, dict[str, Any]] = message.__dict__.setdefault(FORMS, {})
    if name not in forms:
        forms[name] = make()
    return forms[name]


def of_other_kind(name: str, value: object) -> ValueError:
    """The error about a field of a record that holds what such a field cannot hold."""
    return ValueError(f"its {name} cannot be {value!r:.80}")


def request_from_json(found: Any) -> dict[str, Any]:
    """A request of a record, as `attachments.as_recorded` gives it.

    Raises:
        ValueError: it has not the form of a request.
    """
    messages = found.get("messages") if isinstance(found, dict) else None
    if not isinstance(messages, list):
        raise of_other_kind("request", found)
    for message in messages:
        if not isinstance(message, dict):
            raise of_other_kind("message", message)
        for name, plain in (("content", str | None), ("tool_calls", None), ("items", None)):
            value = message.get(name)
            if value is None or (plain is not None and isinstance(value, plain)):
                continue
            if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                raise of_other_kind(name, value)
    config = {} if found.get("config") is None else found["config"]
    if not isinstance(config, dict):
        raise of_other_kind("config", config)
    for name, kind in (("response_format", dict), ("tools", list)):
        if not isinstance(value := config.get(name), kind | None):
            raise of_other_kind(name, value)
    return as_recorded(found)
