"""Answers as they come over the wire of OpenAI's Responses API: in one piece, in events, or as failures."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from textgrad_engine.errors import (
    BadRequest,
    ContentFiltered,
    MalformedResponse,
    ModelError,
    ServerFailed,
)
from textgrad_engine.llm.reported import reported
from textgrad_engine.llm.reported_usage import paid_for, usage_in, written
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, FinishReason
from textgrad_engine.llm.stream import broken_off, events_of
from textgrad_engine.llm.wire import malformed, parsed_body

_KIND = "response"
_UNFINISHED: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
}
_AS_IN_CHAT = ("total_tokens", "cost", "cost_details", "is_byok", "cost_in_usd_ticks")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_OF_THE_REQUEST = ("invalid", "image", "unsupported", "empty", "failed_to_download", "data_residency")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


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
        MalformedResponse: the body is no response, or one that is still under way.
        ModelError: the response says that it failed; one of the subclasses that say in which way.
    """
    parsed = parsed_body(body, model)
    try:
        return _completion(parsed, body, request, model, latency, counted_as)
    except ModelError as error:
        paid_for(error, _usage_in(parsed), request, counted_as)
        raise


def _completion(
    parsed: dict[str, Any], body: bytes, request: Request, model: str, latency: float, counted_as: str | None
) -> Completion:
    status, output = parsed.get("status"), parsed.get("output")
    if status != "failed" and parsed.get("error"):
        raise reported(parsed["error"], model) or malformed(
            model, "the body is an error, though its status says success", body, _KIND
        )
    if status == "failed":
        raise _failure(parsed.get("error"), model)
    if not isinstance(output, list) or not all(
        isinstance(item, dict) and isinstance(item.get("type"), str | None) for item in output
    ):
        raise malformed(model, "the output is not a list of items", body, _KIND)
    text, refused, annotations = _said(output, model, body)
    calls = tuple([_called(item, model, body) for item in output if item.get("type") in _CALLS])
    reason = _reason(parsed, model, body)
    if reason == "stop" and calls:
        reason = "tool_calls"
    if refused and not text:
        reason = "content_filter"
    wrote = written(text, _reasoned(output), calls)
    usage, estimated = usage_in(_usage_in(parsed), request, wrote, counted_as)
    others = [item for item in output if item.get("type") not in (*_CALLS, "message", "reasoning")]
    raw: dict[str, Any] = {
        "id": parsed.get("id"),
        "created_at": parsed.get("created_at"),
        "service_tier": parsed.get("service_tier"),
        "reasoning": _reasoned(output),
        "refusal": refused,
        "annotations": annotations,
        "output": others,
        "usage_estimated": estimated,
    }
    return Completion(
        text=text,
        finish_reason=reason,
        usage=usage,
        model=parsed["model"] if isinstance(parsed.get("model"), str) else model,
        tool_calls=calls,
        items=_to_send_back(output, stored=parsed.get("store") is True),
        latency=latency,
        raw={name: value for name, value in raw.items() if value} or None,
    )


def _reason(parsed: Mapping[str, Any], model: str, body: bytes) -> FinishReason:
    status, details = parsed.get("status"), parsed.get("incomplete_details")
    if status == "completed":
        return "stop"
    why = details.get("reason") if isinstance(details, dict) else None
    if status == "incomplete" and isinstance(why, str) and why in _UNFINISHED:
        return _UNFINISHED[why]
    because = f" ({why})" if why else ""
    raise malformed(model, f"its status is {status!r}{because}, so the answer is not finished", body, _KIND)


def _said(output: list[dict[str, Any]], model: str, body: bytes) -> tuple[str, str, list[Any]]:
    messages = [item for item in output if item.get("type") == "message"]
    # Some models comment on what they are doing first, in messages that are marked so.
    answers = [item for item in messages if item.get("phase") == "final_answer"] or messages
    texts: list[str] = []
    refusals: list[str] = []
    annotations: list[Any] = []
    for item in answers:
        content = item.get("content")
        if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
            raise malformed(model, "the content of a message is not a list of parts", body, _KIND)
        for part in content:
            found = part.get("refusal" if part.get("type") == "refusal" else "text")
            if not isinstance(found, str):
                raise malformed(model, "a part of a message is no text", body, _KIND)
            (refusals if part.get("type") == "refusal" else texts).append(found)
            annotations += _list(part.get("annotations"))
    return "".join(texts), "".join(refusals), annotations


def _reasoned(output: list[dict[str, Any]]) -> str:
    parts = [
        part
        for item in output
        if item.get("type") == "reasoning"
        for part in (*_list(item.get("summary")), *_list(item.get("content")))
    ]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n\n".join([text for text in texts if isinstance(text, str)])


def _to_send_back(output: list[dict[str, Any]], *, stored: bool) -> tuple[dict[str, Any], ...]:
    """The items that go back in the next request of a conversation; none where there is no reasoning to go with them.

    Reasoning that holds nothing but its number can be sent back only where the endpoint has stored it.
    """
    found = [
        item
        for item in output
        if item.get("type") != "reasoning" or stored or item.get("encrypted_content") or item.get("content")
    ]
    return tuple(found) if any(item.get("type") == "reasoning" for item in found) else ()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _called(item: Mapping[str, Any], model: str, body: bytes) -> dict[str, Any]:
    field = _CALLS[item["type"]]
    named = {"name": item.get("name"), field: item.get(field)}
    if not all(isinstance(value, str) for value in (*named.values(), item.get("call_id"))):
        raise malformed(model, "a tool call lacks its id, its name or its arguments", body, _KIND)
    kind = "function" if field == "arguments" else "custom"
    return {"id": item["call_id"], "type": kind, kind: named}


def _usage_in(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """What a response says was used, in the words of chat completions."""
    found = parsed.get("usage")
    if not isinstance(found, dict):
        return {}
    return {
        "prompt_tokens": found.get("input_tokens"),
        "completion_tokens": found.get("output_tokens"),
        "prompt_tokens_details": found.get("input_tokens_details"),
        "completion_tokens_details": found.get("output_tokens_details"),
        **{name: found[name] for name in _AS_IN_CHAT if name in found},
    }


def _failure(error: Any, model: str) -> ModelError:
    """The error that an endpoint reports after it had accepted a request."""
    if (found := reported(error, model)) is not None:
        return found
    given = error if isinstance(error, dict) else {"message": error or ""}
    code, said = str(given.get("code") or ""), str(given.get("message") or "")[:1000]
    about = f"{model!r} accepted a request and then failed: {said or 'no reason given'}{f' ({code})' if code else ''}"
    kind: type[ModelError]
    if "policy" in code:
        kind = ContentFiltered
    elif code.startswith(_OF_THE_REQUEST):
        kind = BadRequest
    else:
        kind = ServerFailed
    return kind(about)


async def body_of(parts: AsyncIterator[bytes], tell: Callable[[str], None], model: str) -> bytes:
    """Read a streamed response to its end; returns the body that an answer in one piece would have had.

    Args:
        parts: the bytes of the response, in any division.
        tell: called with each piece of text.
        model: the name that was sent, for errors.

    Raises:
        ConnectionFailed: the stream ended before the answer did.
        MalformedResponse: an event is not what its type says.
        ModelError: the endpoint says that it failed.
    """
    items: list[Any] = []
    told: list[str] = []
    async for event in events_of(parts, model):
        if event is None:
            continue
        kind = event.get("type")
        if kind == "response.output_text.delta":
            piece = event.get("delta")
            if isinstance(piece, str) and piece:
                told.append(piece)
                tell(piece)
        elif kind == "response.output_item.done":
            items.append(event.get("item"))
        elif kind == "error" or (kind == "response.failed" and not isinstance(event.get("response"), dict)):
            nested = event.get("error")
            raise _failure(nested if isinstance(nested, dict) else event, model)
        elif kind in _ENDS:
            whole = event.get("response")
            if not isinstance(whole, dict):
                raise MalformedResponse(f"{model!r} ended its answer with an event that holds no response")
            # Some servers leave the items out at the end, for they have sent them (vllm-project/vllm#30223).
            whole["output"] = whole.get("output") or items or _only("".join(told))
            return json.dumps(whole).encode()
    raise broken_off(model, sum(map(len, told)))


def _only(text: str) -> list[Any]:
    return [{"type": "message", "content": [{"type": "output_text", "text": text}]}] if text else []
