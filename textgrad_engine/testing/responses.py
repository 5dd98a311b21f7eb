"""OpenAI's Responses API as the loopback server speaks it: bodies to requests, completions to bodies and events."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from textgrad_engine.llm.request import GenerateConfig, Message, Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.testing.wire import json_bytes

_UNKNOWN = ("frequency_penalty", "max_tokens", "messages", "n", "presence_penalty", "response_format", "seed", "stop")
_PARTS = {"input_text": "text", "output_text": "text"}


def request_of(asked: Mapping[str, Any]) -> Request:
    """The request that a body is; what it says beyond the settings that the library knows is in `extra`.

    Raises:
        ValueError: the body is no request of this API.
    """
    if unknown := [name for name in _UNKNOWN if name in asked]:
        raise ValueError(f"Unknown parameter: {unknown[0]!r}.")
    if "model" not in asked or not asked.get("input"):
        raise ValueError("it needs a model and an input")
    apart = ("model", "input", "instructions", "stream", "text", "tools", "tool_choice", "reasoning")
    settings = {name: value for name, value in asked.items() if name not in apart}
    known: dict[str, Any] = {name: settings.pop(name) for name in ("temperature", "top_p") if name in settings}
    if "max_output_tokens" in settings:
        known["max_tokens"] = settings.pop("max_output_tokens")
    reasoning, text = dict(asked.get("reasoning") or {}), dict(asked.get("text") or {})
    if "effort" in reasoning:
        known["reasoning_effort"] = reasoning.pop("effort")
    if isinstance(wanted := text.get("format"), Mapping) and wanted.get("type") == "json_schema":
        known["response_format"] = ResponseFormat(name=wanted["name"], json_schema=wanted["schema"])
        del text["format"]
    if asked.get("tools") is not None:
        known["tools"] = tuple([_nested(tool) for tool in asked["tools"]])
    if (choice := asked.get("tool_choice")) is not None:
        known["tool_choice"] = choice if isinstance(choice, str) else _nested(choice)
    settings |= {name: value for name, value in (("reasoning", reasoning), ("text", text)) if value}
    items = [{"role": "user", "content": asked["input"]}] if isinstance(asked["input"], str) else asked["input"]
    if asked.get("instructions"):
        items = [{"role": "system", "content": asked["instructions"]}, *items]
    return Request(messages=_messages(items), config=GenerateConfig(**known, extra=settings))


def _messages(items: list[Mapping[str, Any]]) -> tuple[Message, ...]:
    made: list[Message] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            made.append(Message(role=item["role"], content=_content(item["content"])))
        elif kind == "function_call":
            call = {"name": item["name"], "arguments": item["arguments"]}
            calls: tuple[Mapping[str, Any], ...] = ({"id": item["call_id"], "type": "function", "function": call},)
            if made and made[-1].role == "assistant":
                calls = (*(made[-1].tool_calls or ()), *calls)
                made[-1] = made[-1].model_copy(update={"tool_calls": calls})
            else:
                made.append(Message(role="assistant", content="", tool_calls=calls))
        elif kind == "reasoning":
            made.append(Message(role="assistant", content="", items=(item,)))
        elif kind == "function_call_output":
            made.append(Message(role="tool", content=_content(item["output"]), tool_call_id=item["call_id"]))
        else:
            raise ValueError(f"there is no item of the type {kind!r}")
    return tuple(made)


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for part in content:
        if part["type"] == "input_image":
            parts.append({"type": "image_url", "image_url": {"url": part["image_url"], "detail": part["detail"]}})
        elif part["type"] in _PARTS:
            parts.append({**part, "type": _PARTS[part["type"]]})
        else:
            raise ValueError(f"there is no content part of the type {part['type']!r}")
    return parts


def _nested(described: Mapping[str, Any]) -> dict[str, Any]:
    if described.get("type") != "function":
        return dict(described)
    return {"type": "function", "function": {name: value for name, value in described.items() if name != "type"}}


def body_of(completion: Completion, number: int, model: str) -> dict[str, Any]:
    """A completion as the API words it."""
    items = [dict(item) for item in completion.items if item.get("type") == "reasoning"]
    if completion.text or not completion.tool_calls:
        part = {"type": "output_text", "text": completion.text, "annotations": []}
        items.append({"type": "message", "id": f"msg-{number}", "role": "assistant", "content": [part]})
    items += [
        {"type": "function_call", "id": f"fc-{number}", "call_id": call["id"], **call["function"]}
        for call in completion.tool_calls
    ]
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(completion.finish_reason)
    status = "completed" if reason is None else "incomplete"
    usage = completion.usage
    return {
        "id": f"resp-{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "model": model,
        "output": [{**item, "status": status} for item in items],
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.total_tokens,
        },
    }


def events_of(whole: Mapping[str, Any]) -> bytes:
    """A response's body as server-sent events: a word each, every item when it is done, and the whole at the end."""
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(whole["output"]):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}})
        for part in item.get("content", ()):
            words = re.findall(r"\s*\S+|\s+$", part["text"])
            events += [{"type": "response.output_text.delta", "output_index": index, "delta": word} for word in words]
            events.append({"type": "response.output_text.done", "output_index": index, "text": part["text"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    lines = [
        b"event: " + event["type"].encode() + b"\ndata: " + json_bytes({**event, "sequence_number": at}) + b"\n\n"
        for at, event in enumerate(events)
    ]
    return b"".join(lines)
