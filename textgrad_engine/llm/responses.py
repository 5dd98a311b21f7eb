"""Requests as they go over the wire of OpenAI's Responses API; `outputs` reads its answers.

A request is the same whichever API carries it: messages, content parts, tools and tool calls are written as for chat
completions, and translated here. What the API has no place for is an error, never left out. (The API: OpenAI's
reference of ``POST /responses``, and "Migrate to the Responses API".)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine.errors import RequestRefused
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.dialects import Dialect
from textgrad_engine.llm.request import INSTEAD, GenerateConfig, Request, unsendable
from textgrad_engine.llm.wire import FIELDS, messages_of

UNSUPPORTED = ("frequency_penalty", "presence_penalty", "seed", "stop")
"""Settings that chat completions have and this API has not."""

SAID_OTHERWISE = {name: said for name, said in INSTEAD.items() if name != "stream_options"} | {
    "background": "one call is one finished answer",
    "input": "the messages are the request's own",
}
"""Fields of the API that do not go through `extra`, and what is used instead."""


def arguments(request: Request, config: GenerateConfig, asked: Dialect, stream: bool = False) -> dict[str, Any]:
    """The body that is sent for a request.

    Endpoints keep what goes through this API for a month unless they are told not to, and nothing here refers to an
    earlier call, so ``"store": false`` is sent; ``extra={"store": True}`` says otherwise.

    Args:
        request: what is asked.
        config: its settings, with the defaults filled in; those that are None are not sent.
        asked: how the endpoint is asked; its ``text.format`` is this API's ``response_format``.
        stream: ask for the answer in pieces.

    Raises:
        RequestRefused: a setting or a content part that this API does not have; `extra` holds what is not for it to
            say.
    """
    if problem := unsendable(config.extra, SAID_OTHERWISE):
        raise _refused(problem)
    if lacking := [name for name in UNSUPPORTED if getattr(config, name) is not None]:
        raise _refused(unsupported(lacking[0]))
    wanted = config.response_format
    words = None if asked.form == "asked" else wanted
    kept = [
        None if message.items and message.items[0].get("type") == FIELDS else message.items
        for message in request.messages
    ]
    if words is not None:
        kept[-1:] = [None]  # its content is more than it was
    sent: dict[str, Any] = {"model": asked.name, "input": _items(messages_of(request, words), kept), "store": False}
    for name, theirs in (("temperature", "temperature"), ("top_p", "top_p"), ("max_tokens", "max_output_tokens")):
        if (value := getattr(config, name)) is not None:
            sent[theirs] = value
    if config.reasoning_effort is not None:
        sent["reasoning"] = {"effort": config.reasoning_effort}
    if wanted is not None and asked.form != "in words":
        sent["text"] = {"format": {"type": "json_schema", **wanted.described}}
    if config.tools is not None:
        sent["tools"] = [_tool(tool) for tool in config.tools]
    if config.tool_choice is not None:
        sent["tool_choice"] = config.tool_choice if isinstance(config.tool_choice, str) else _choice(config.tool_choice)
    sent["stream"] = stream  # said either way: `transformers serve` streams when nothing is said
    for name, value in config.extra.items():
        known = sent.get(name)
        if isinstance(known, dict) and isinstance(value, Mapping):  # "text" and "reasoning" hold several settings each
            value = {**known, **value}
        sent[name] = value
    return sent


def unsupported(name: str) -> str:
    """What is said about a setting that this API does not have."""
    return (
        f"the Responses API has no setting {name!r}: leave it out, use api='chat', or, for an endpoint that knows it "
        f"all the same, give extra={{{name!r}: ...}}"
    )


def _items(messages: list[dict[str, Any]], kept: Sequence[Sequence[Mapping[str, Any]] | None]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    custom: set[Any] = set()
    for number, (message, came) in enumerate(zip(messages, kept, strict=True), 1):
        if came:  # in the order in which they came: reasoning belongs to what follows it
            custom.update([item.get("call_id") for item in came if item.get("type") == "custom_tool_call"])
            items += [dict(item) for item in came]
            continue
        role, calls = message["role"], message.get("tool_calls") or ()
        where = f"message {number} ({role})"
        content = message["content"]
        if not isinstance(content, str):
            content = [_part(part, role, where) for part in content]
        if role == "tool":
            answered = message.get("tool_call_id")
            kind = "custom_tool_call_output" if answered in custom else "function_call_output"
            items.append({"type": kind, "call_id": answered, "output": content})
        elif content or not calls:
            items.append({"role": role, "content": content})
        for call in calls:
            if call.get("type") == "custom":
                custom.add(call.get("id"))
            items.append(_call(call, where))
    return items


def _part(part: Mapping[str, Any], role: str, where: str) -> dict[str, Any]:
    kind = part.get("type")
    rest = {name: value for name, value in part.items() if name != "type"}
    if kind == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", **rest}
    if kind == "image_url":
        image = rest.pop("image_url", None)
        given = dict(image) if isinstance(image, Mapping) else {"url": image}
        return {"type": "input_image", "image_url": given.pop("url", None), "detail": "auto", **given, **rest}
    if kind == "file":
        file = rest.pop("file", None)
        return {"type": "input_file", **(file if isinstance(file, Mapping) else {}), **rest}
    if kind in ("input_image", "input_file", "refusal"):
        return dict(part)
    raise _refused(
        f"{where} has a content part of the type {kind!r}, for which the Responses API has no place; write text as "
        '{"type": "text", "text": ...}, or use api=\'chat\''
    )


def _call(call: Mapping[str, Any], where: str) -> dict[str, Any]:
    kind = call.get("type", "function")
    inside = call.get(kind)
    field = {"function": "arguments", "custom": "input"}.get(kind)
    if field is None or not isinstance(inside, Mapping):
        raise _refused(f"{where} has a tool call that is none of OpenAI's: {str(dict(call))[:200]}")
    named = {"call_id": call.get("id"), "name": inside.get("name"), field: inside.get(field)}
    return {"type": f"{kind}_call" if kind == "function" else "custom_tool_call", **named}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    flat = _flat(tool)
    if flat.get("type") == "function" and "function" in tool:
        # Chat completions check arguments strictly only when told to; this API, unless told not to.
        return {"parameters": {"type": "object", "properties": {}}, "strict": False, **flat}
    if isinstance(flat.get("format"), Mapping):
        flat["format"] = _flat(flat["format"])
    return flat


def _choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    flat = _flat(choice)
    if isinstance(flat.get("tools"), list | tuple):
        flat["tools"] = [_flat(tool) for tool in flat["tools"]]
    return flat


def _flat(described: Mapping[str, Any]) -> dict[str, Any]:
    """What chat completions put below the name of its type stands beside the type here."""
    inside = described.get(str(described.get("type")))
    if not isinstance(inside, Mapping):
        return dict(described)
    return {**{name: value for name, value in described.items() if name != described["type"]}, **inside}


def _refused(why: str) -> RequestRefused:
    error = RequestRefused(why)
    mark(error, sent=False)
    return error
