"""Calls of models and of tools as lines of JSON, and back: what a run folder keeps of what was paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.errors import ModelError, RunError
from textgrad_engine.llm import toolcalls
from textgrad_engine.llm.answers import Answer
from textgrad_engine.llm.as_json import recorded, request_from_json
from textgrad_engine.llm.attachments import in_names
from textgrad_engine.llm.charged import is_estimated, unknown_of, usage_of, was_sent
from textgrad_engine.llm.errors_as_json import REFUSAL, error_from_json, refusal_to_json
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.response import Completion, completion_from_json
from textgrad_engine.llm.tools_on_record import ToolOnRecord
from textgrad_engine.signed import unsigned
from textgrad_engine.store.records import timestamp
from textgrad_engine.train.events import CallEnded, ToolEnded


@dataclass(frozen=True)
class Place:
    """Where in a run a call was made.

    Attributes:
        number: the number of its phase.
        phase: the name of its phase.
        step: the optimizer step that the phase belongs to, 0 before the first.
    """

    number: int = 0
    phase: str = ""
    step: int = 0


def tool_to_json(call: ToolEnded, place: Place) -> dict[str, Any]:
    """One line of ``tools.jsonl``: a call of a tool and what it came to; `tool_from_json` reads it.

    "id" is what tells it from others; the completions that were asked for inside of it name that.
    """
    entry = {
        "phase": place.number,
        "phase_name": place.phase,
        "step": place.step,
        **_in_names(toolcalls.tool_to_json(call.record)),
        "latency": call.record.latency,
        "time": timestamp(call.record.started, "microseconds"),
    }
    return unsigned(entry)


def _in_names(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "content": [in_names(part) for part in entry["content"]]} if "content" in entry else entry


def tool_from_json(
    entry: Mapping[str, Any], *, nth: int, source: int, read: Callable[[str], bytes] | None = None
) -> ToolOnRecord:
    """The call of a tool that a line of ``tools.jsonl`` tells.

    Args:
        entry: the line.
        nth: where it comes among all, in the order in which they began.
        source: the number of its file.
        read: gives the bytes of an image by its name.

    Raises:
        RunError: it has not the fields of such a line.
    """
    try:
        record = replace(toolcalls.tool_from_json(entry), latency=entry["latency"])
        return ToolOnRecord(record, nth, int(entry["phase"]), source, read)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunError(f"it is no call of a tool: {type(error).__name__}: {error}") from None


def completion_to_json(call: CallEnded, place: Place) -> dict[str, Any]:
    """One line of ``completions.jsonl``: the whole request and what came of it; `answer_from_json` reads it.

    Of the bytes of images and the like it has the names, and addresses lack what signs them (`llm.attachments`). "time"
    is when it was asked, to the microsecond: of equal requests, it says which was the first.
    """
    record = call.record
    asked = recorded(record.request)
    entry: dict[str, Any] = {
        "phase": place.number,
        "phase_name": place.phase,
        "step": place.step,
        "purpose": asked.pop("purpose"),
        "example": record.key,
        "model": record.model,
        "request": asked,
    }
    entry |= toolcalls.belonging(record)
    if record.id:
        entry["id"] = record.id
    if record.sample is not None:
        entry["sample"] = list(record.sample)
    if record.completion is not None:
        entry |= _answer_to_json(record.completion, record.model)
    if record.error is not None:
        entry |= _error_to_json(record.error)
    whole = unsigned({**entry, "request": None, "time": timestamp(record.started, "microseconds")})
    return {**whole, "request": asked}  # in its place, as it is already


def _answer_to_json(answer: Completion, asked: str) -> dict[str, Any]:
    """What is written down of an answer; what is as it mostly is goes without saying.

    Args:
        answer: the answer.
        asked: the name of the model that was asked.
    """
    entry: dict[str, Any] = {
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "usage": answer.usage.model_dump(),
        "attempts": answer.attempts,
        "latency": answer.latency,
    }
    if answer.model not in ("", asked):
        entry["answered_by"] = answer.model
    if answer.words:
        entry["words"] = answer.words
    if answer.cached:
        entry["cached"] = True
    if answer.saved is not None:
        entry["saved"] = {"usage": answer.saved.model_dump(), "latency": answer.saved_latency}
    if answer.tool_calls:
        entry["tool_calls"] = [dict(each) for each in answer.tool_calls]
    if answer.items:
        entry["items"] = [dict(each) for each in answer.items]
    if is_estimated(answer):
        entry["estimated"] = True
    if answer.unknown is not None:
        entry["unknown"] = answer.unknown.model_dump()
    return entry


def _error_to_json(error: BaseException) -> dict[str, Any]:
    """What is written down of a failure: also what it cost, or that nobody knows that."""
    entry: dict[str, Any] = {"error": f"{type(error).__name__}: {error}"}
    if (used := usage_of(error)) is not None:
        entry["usage"] = used.model_dump()
    elif isinstance(error, ModelError) and was_sent(error):
        entry["cost_unknown"] = True
    if isinstance(error, ModelError) and error.usage_estimated:
        entry["estimated"] = True
    if (unknown := unknown_of(error)) is not None:
        entry["unknown"] = unknown.model_dump()
    if isinstance(error, ModelError) and error.counted_again:
        entry["counted_again"] = True
    if notes := getattr(error, "__notes__", None):
        entry["notes"] = list(notes)
    return entry | refusal_to_json(error)


def answer_from_json(entry: Mapping[str, Any], *, nth: int, line: int, source: int) -> Answer:
    """The answer, or the failure, that a line of ``completions.jsonl`` tells.

    Args:
        entry: the line.
        nth: where it comes among all, in the order in which they were asked.
        line: its number.
        source: the number of its file.

    Raises:
        RunError: it has not the fields of such a line.
    """
    try:
        request = {"purpose": entry["purpose"], **request_from_json(entry["request"])}
        return Answer(
            entry["model"],
            entry["purpose"],
            entry["example"],
            nth,
            line,
            digest(request),
            _outcome(entry),
            entry.get("asked"),
            request,
            int(entry["phase"]),
            source,
            bool(entry.get("counted_again", False)),
            tuple(entry.get("item", ())),
            entry.get("tool", ""),
            tuple(entry.get("place", ())),
            entry.get("id", ""),
            tuple(entry["sample"]) if "sample" in entry else None,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:  # a ValidationError is a ValueError
        raise RunError(f"it is no completion: {type(error).__name__}: {error}") from None


def _outcome(entry: Mapping[str, Any]) -> Completion | ModelError:
    if "error" in entry:
        name, _, message = str(entry["error"]).partition(": ")
        told = {key: entry[key] for key in ("usage", "estimated", "unknown", "notes", *REFUSAL) if key in entry}
        sent = None if entry.get("cost_unknown") or "usage" in entry or "unknown" in entry else False
        return error_from_json({"type": name, "message": message, "sent": sent, **told})
    saved = dict(entry.get("saved") or {})
    return completion_from_json(
        {
            "text": entry["text"],
            "finish_reason": entry["finish_reason"],
            "usage": entry["usage"],
            "model": entry.get("answered_by", ""),
            "tool_calls": entry.get("tool_calls", ()),
            "items": entry.get("items", ()),
            "latency": entry["latency"],
            "attempts": entry["attempts"],
            "raw": {"usage_estimated": True} if entry.get("estimated") else None,
            "cached": entry.get("cached", False),
            "saved": saved.get("usage"),
            "saved_latency": saved.get("latency"),
            "words": entry.get("words", ""),
            "unknown": entry.get("unknown"),
        }
    )


def canonical_order(entry: Mapping[str, Any]) -> tuple[int, str, str, str, str]:
    """A key to sort completions, or calls of tools, by that does not depend on when they came."""
    answer = {key: value for key, value in entry.items() if key not in ("request", "time", "latency")}
    return (
        int(entry["phase"]),
        str(entry.get("purpose", "")),
        str(entry["example"]),
        digest(entry.get("request", "")),
        digest(answer),
    )
