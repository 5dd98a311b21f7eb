"""OpenAI's chat completions as they go over the wire: requests to arguments, bodies to completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from textgrad_engine.errors import MalformedResponse, ModelError, RequestRefused
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.check import surrogate_in
from textgrad_engine.llm.content import refusal_in, text_in, thoughts_in
from textgrad_engine.llm.dialects import Dialect
from textgrad_engine.llm.inwords import words_for
from textgrad_engine.llm.reported import bare_failure_in, failure_in, reported
from textgrad_engine.llm.reported_usage import paid_for, usage_in, written
from textgrad_engine.llm.request import GenerateConfig, Message, Request, unsendable
from textgrad_engine.llm.response import Completion, FinishReason
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.tool_images import moved_behind
from textgrad_engine.llm.wire_tool_calls import calls_in, mended

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "complete": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "blocklist": "content_filter",
    "image_safety": "content_filter",
    "prohibited_content": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "spii": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
}
"""What endpoints say of the end of an answer, in lower case and without what stands behind a colon (Gemini's
``"content_filter: PROHIBITED_CONTENT"``)."""

FIELDS = "message_fields"
"""The type of the item that keeps fields of an answer with tool calls which its endpoint wants back."""

_WANTED_BACK = ("reasoning_content", "reasoning_details")
"""DeepSeek and Moonshot refuse conversations with tools whose messages lost the first; the other is OpenRouter's."""


def arguments(request: Request, config: GenerateConfig, asked: Dialect, stream: bool = False) -> dict[str, Any]:
    """The body that is sent for a request.

    Args:
        request: what is asked.
        config: its settings, with the defaults filled in; those that are None are not sent.
        asked: how the endpoint is asked.
        stream: ask for the answer in pieces.

    Raises:
        RequestRefused: `extra` holds what is not for it to say.
    """
    if problem := unsendable(config.extra):
        raise mark(RequestRefused(problem), sent=False)
    words = None if asked.form == "asked" else config.response_format
    messages = messages_of(request, words, system=asked.system)
    if asked.mend_calls:
        for message in messages:
            if "tool_calls" in message:
                message["tool_calls"] = mended(message["tool_calls"])
    messages = messages if asked.tool_images else moved_behind(messages)
    sent: dict[str, Any] = {"model": asked.name, "messages": messages}
    for name in ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "reasoning_effort"):
        if (value := getattr(config, name)) is not None:
            sent[name] = value
    if config.max_tokens is not None:
        sent[asked.most] = config.max_tokens
    if config.stop is not None:
        sent["stop"] = list(config.stop)
    if config.tools is not None:
        sent["tools"] = [dict(tool) for tool in config.tools]
    if config.tool_choice is not None:
        sent["tool_choice"] = config.tool_choice if isinstance(config.tool_choice, str) else dict(config.tool_choice)
    if config.response_format is not None and asked.form != "in words":
        sent["response_format"] = {"type": "json_schema", "json_schema": config.response_format.described}
    if stream:
        sent["stream"] = True
        if asked.usage:
            sent["stream_options"] = {"include_usage": True}
    return {**sent, **config.extra}


def messages_of(
    request: Request, asked_in_words: ResponseFormat | None = None, *, system: bool = True
) -> list[dict[str, Any]]:
    """The messages as they are sent.

    Args:
        request: what is asked.
        asked_in_words: the format that the last message is to ask for, or that before the calls of tools.
        system: send system messages as such; else their text stands before the first message of the user.
    """
    messages = [_message(message) for message in request.messages]
    if not system:
        messages = _without_system(messages)
    if asked_in_words is not None:
        _add_to_last(messages, words_for(asked_in_words, request))
    return messages


def encoded(sent: dict[str, Any], request: Request) -> bytes:
    """The bytes of a body.

    Args:
        sent: the body.
        request: what is asked, for errors.

    Raises:
        RequestRefused: a part of it is no JSON, or no text.
    """
    try:
        return json.dumps(sent, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_dict).encode()
    except UnicodeEncodeError:
        where = surrogate_in(request) or "a setting or a schema"
        problem = f"{where} holds a lone surrogate, which is no text and cannot be sent"
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"a part of the request is no JSON: {error}"
    raise mark(RequestRefused(problem), sent=False)


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is of the type {type(value).__name__}")


def _message(message: Message) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls is not None:
        sent["tool_calls"] = [dict(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    for item in message.items or ():
        if item.get("type") == FIELDS:
            sent |= {name: item[name] for name in _WANTED_BACK if name in item}
    return sent


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    rest = [message for message in messages if message["role"] not in ("system", "developer")]
    for message in messages:
        if message["role"] in ("system", "developer"):
            content = message["content"]
            parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    first = next((message for message in rest if message["role"] == "user"), None)
    if first is None:
        first = {"role": "user", "content": ""}
        rest.insert(0, first)
    if isinstance(first["content"], str) and all(part.get("type") == "text" for part in parts):
        first["content"] = "\n\n".join([*[part["text"] for part in parts], first["content"]]).rstrip("\n")
    else:
        own = first["content"]
        first["content"] = [*parts, *([{"type": "text", "text": own}] if isinstance(own, str) else own)]
    return rest


def _add_to_last(messages: list[dict[str, Any]], words: str) -> None:
    if not messages:
        messages.append({"role": "user", "content": words})
        return
    at = len(messages) - 1
    while at > 0 and (messages[at]["role"] == "tool" or messages[at].get("tool_calls")):
        at -= 1  # what a tool gave is no place for what is asked
    last = messages[at]
    if isinstance(last["content"], str):
        last["content"] = f"{last['content']}\n\n{words}"
    else:
        last["content"] = [*last["content"], {"type": "text", "text": words}]


def completion_of(
    body: bytes, request: Request, model: str, latency: float, counted_as: str | None = None
) -> Completion:
    """The completion that a body with status 200 holds.

    Args:
        body: the bytes of the response.
        request: what was asked; where the body lacks the usage, it is counted from this.
        model: the name that was sent.
        latency: seconds that it took.
        counted_as: the model whose vocabulary counts what the body does not say; without one, it is estimated.

    Raises:
        MalformedResponse: the body is no chat completion; the message says in which way, and quotes its beginning.
        APIError: it is an error that names a status of failure; one of the subclasses that say in which way.
    """
    parsed = parsed_body(body, model)
    try:
        if failure := failure_in(parsed):
            said = "the body is an error, though its status says success"
            raise reported(failure, model) or malformed(model, said, body)
        choice, message, text = _choice(parsed, body, model)
    except ModelError as error:
        paid_for(error, parsed.get("usage"), request, counted_as)
        raise
    reason = _REASONS[_plain(choice["finish_reason"])]
    if not text and refusal_in(message):
        reason = "content_filter"
    wrote = written(text, thoughts_in(message)[1], message.get("tool_calls") or ())
    usage, estimated = usage_in(parsed.get("usage"), request, wrote, counted_as)
    raw = {key: value for key, value in parsed.items() if key not in ("choices", "usage", "model", "object")}
    raw |= {key: value for key, value in message.items() if key not in ("role", "content", "tool_calls") and value}
    if estimated:
        raw["usage_estimated"] = True
    return Completion(
        text=text,
        finish_reason=reason,
        usage=usage,
        model=parsed["model"] if isinstance(parsed.get("model"), str) else model,
        tool_calls=calls_in(message, request.messages),
        items=_to_send_back(message),
        latency=latency,
        raw=raw or None,
    )


def _plain(reason: str) -> str:
    return reason.partition(":")[0].strip().lower()


def _to_send_back(message: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """What an endpoint wants back with the tool calls of its answer, as one item; nothing where it said none."""
    kept = {name: message[name] for name in _WANTED_BACK if message.get(name)}
    return ({"type": FIELDS, **kept},) if kept and message.get("tool_calls") else ()


def parsed_body(body: bytes, model: str) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        MalformedResponse: it is none.
    """
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise malformed(model, "the body is not JSON", body) from None
    if not isinstance(parsed, dict):
        raise malformed(model, "the body is not a JSON object", body)
    return parsed


def _choice(parsed: dict[str, Any], body: bytes, model: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    choices = parsed.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise reported(bare_failure_in(parsed), model) or malformed(model, "the body has no choices", body)
    choice = choices[0]
    if (failure := choice.get("error")) and (failed := reported(failure, model)) is not None:
        raise failed
    message = choice.get("message")
    if not isinstance(message, dict):
        raise malformed(model, "the first choice has no message", body)
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple) or not all(isinstance(call, dict) for call in calls):
        raise malformed(model, "the tool calls are not a list of objects", body)
    reason = choice.get("finish_reason")
    if not isinstance(reason, str) or _plain(reason) not in _REASONS:
        raise reported({"code": reason}, model) or malformed(
            model, f"finish_reason is {reason!r}, so the answer is not finished", body
        )
    text = text_in(message.get("content"))
    if text is None:
        raise malformed(model, "the content of the message is no text", body)
    return choice, message, text


def malformed(model: str, what: str, body: bytes, kind: str = "chat completion") -> MalformedResponse:
    """The error of a body that is not what was asked for.

    Args:
        model: the name that was sent.
        what: what is wrong.
        body: its beginning is quoted.
        kind: what was asked for.
    """
    start = body[:200].decode("utf-8", "replace")
    page = "; that is a web page: is base_url right (mostly with /v1 at its end), or is a proxy between?"
    repair = page if start.lstrip("\ufeff \t\r\n").startswith("<") else ""
    return MalformedResponse(f"{model!r} answered with a body that is no {kind}: {what}; it begins {start!r}{repair}")
