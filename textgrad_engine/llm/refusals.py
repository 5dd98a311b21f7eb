"""What the body of a refusal says, in whichever of the shapes that endpoints have for it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from textgrad_engine.llm.rates import duration

_LONGEST = 1000
"""Characters of it that are told, and looked at for signs."""

_LONGEST_CODE = 200

_CODES = ("code", "type", "status", "error_type", "quotaId", "limit_source", "error_code")
_TEXTS = ("message", "detail", "error", "msg")
_UNITS = r"milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d"
_AGAIN = re.compile(rf"(?:try again|retry|wait)\D{{0,12}}?((?:\d+(?:\.\d+)?\s?(?:{_UNITS})(?![a-z]))+)")
_UNIT = re.compile(r"\s?(milliseconds?|seconds?|secs?|minutes?|mins?|hours?|days?)")
_SHORT = {"mil": "ms", "sec": "s", "min": "m", "hou": "h", "day": "d"}


@dataclass(frozen=True)
class Refusal:
    """What a body says about why a request was refused.

    Attributes:
        codes: the short names in it (code, type, status, quota), in lower case.
        said: its words, for people; "" when there are none.
        parameter: the setting that it is about, where it names one.
        wait: the seconds that it asks to wait; None when it says nothing of that.
        written: what the model had written, where that is why the request was refused; else None.
    """

    codes: str = ""
    said: str = ""
    parameter: str = ""
    wait: float | None = None
    written: str | None = None

    @property
    def all(self) -> str:
        """Codes and words in lower case, to look for signs in."""
        return f"{self.codes} {self.said}".lower()


def read(body: Any) -> Refusal:
    """Read the body of a refusal, or what stands under ``error`` in another body.

    Known shapes: OpenAI's object under ``error``; the same at the top (Cerebras, Mistral, vLLM); a text under ``error``
    (xAI, TGI, Ollama); a list around it (Gemini); the validation errors of FastAPI under ``detail``; and what a gateway
    was told by the endpoint behind it, as JSON in ``metadata.raw`` (OpenRouter) or in the message itself.

    Args:
        body: its text, or the JSON value of that.

    Example:
        >>> read('[{"error": {"code": 429, "message": "Slow down. Please retry in 7.5s."}}]')
        Refusal(codes='429', said='Slow down. Please retry in 7.5s.', parameter='', wait=7.5, written=None)
    """
    value = _value_of(body) if isinstance(body, str) else body
    if isinstance(value, str):
        said = " ".join(value.split())[:300]
        return Refusal(said=said, wait=_wait_in(said))
    codes: list[str] = []
    texts: list[str] = []
    parameter, wait, written = "", None, None
    for each in _objects(value):
        for name in _CODES:
            code = each.get(name)
            if not isinstance(code, str | int) or isinstance(code, bool):
                continue
            if (code := str(code)[:_LONGEST_CODE].lower()) not in codes:
                codes.append(code)
        texts += [text for text in _texts(each) if not any(text in known for known in texts)]
        parameter = parameter or _parameter(each)
        if wait is None:
            wait = _stated_wait(each)
        if written is None and isinstance(each.get("failed_generation"), str):
            written = each["failed_generation"]
    said = ("; ".join(texts) if texts else _shown(value))[:_LONGEST]
    return Refusal(" ".join(codes)[:_LONGEST], said, parameter, _wait_in(said) if wait is None else wait, written)


def _value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shown(value: Any) -> str:
    try:
        return "" if value is None else str(value)
    except RecursionError:
        return ""


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a body that say something about the error, from the outside in."""
    waiting, seen = [value], 0
    while waiting and seen < 50:
        each, seen = waiting.pop(0), seen + 1
        if isinstance(each, str):  # what was told by whom is behind a gateway
            each = _value_of(each) if each.lstrip().startswith(("{", "[")) else None
        if isinstance(each, list):
            waiting[:0] = each
        elif isinstance(each, dict):
            yield each
            inside = ("error", "message", "detail", "details", "metadata", "raw", "violations", "innererror", "headers")
            waiting += [each[name] for name in inside if isinstance(each.get(name), dict | list | str)]


def _texts(each: Mapping[str, Any]) -> Iterator[str]:
    for name in _TEXTS:
        text = each.get(name)
        if not isinstance(text, str) or not text.strip() or text.lstrip().startswith(("{", "[")):
            continue
        text = text.strip()
        if name == "msg" and isinstance(each.get("loc"), list):
            text = f"{text} ({'.'.join(map(str, each['loc']))})"
        yield text
    raw = each.get("raw")
    if isinstance(raw, str) and raw.strip() and not raw.lstrip().startswith(("{", "[")):
        who = each.get("provider_name")
        yield f"{who}: {raw.strip()}" if isinstance(who, str) else raw.strip()
    for name in ("content_filter_result", "content_filter_results"):
        found = each.get(name)
        if isinstance(found, dict) and (why := [key for key, one in found.items() if _is_filtered(one)]):
            yield f"filtered: {', '.join(why)}"


def _is_filtered(one: Any) -> bool:
    return isinstance(one, dict) and one.get("filtered") is True


def _parameter(each: Mapping[str, Any]) -> str:
    named = each.get("param")
    if isinstance(named, str):
        return named
    where = each.get("loc")
    if isinstance(where, list) and len(where) > 1 and where[0] == "body":
        return str(where[1])
    return ""


def _stated_wait(each: Mapping[str, Any]) -> float | None:
    for name in ("retryDelay", "retry_after", "retry_after_seconds", "estimated_time"):
        value = each.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            found = duration(str(value))
            if found is not None:
                return found
    reset = each.get("X-RateLimit-Reset")  # OpenRouter's, in thousandths of a second since 1970
    if isinstance(reset, str) and re.fullmatch(r"\d{13}", reset):
        return duration(str(max(0.0, int(reset) / 1000 - time.time())))
    return None


def _wait_in(said: str) -> float | None:
    """The seconds in words such as "Please try again in 1m2.5s"."""
    found = _AGAIN.search(said.lower())
    if found is None:
        return None
    return duration("".join(_UNIT.sub(lambda unit: _SHORT[unit[1][:3]], found[1]).split()))
