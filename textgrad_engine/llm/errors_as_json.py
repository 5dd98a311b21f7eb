"""Failures of calls as plain JSON, and back: what a cassette and a run folder keep of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textgrad_engine.errors import APIError, BadRequest, ModelError
from textgrad_engine.llm.charged import mark, unknown_of, usage_of
from textgrad_engine.llm.response import usage_from_json

REFUSAL = ("setting", "unserved")
"""The fields of a `BadRequest` that say that it does not come of what was asked."""

_FIELDS = {
    "message": str,
    "status": int | None,
    "retry_after": float | int | None,
    "setting": str | None,
    "unserved": bool | None,
    "sent": bool | None,
}
"""What the fields of a failure are."""


_USED = ("usage", "unknown")
"""What it used, and may have used."""


def error_to_json(error: ModelError) -> dict[str, Any]:
    """A failure as plain JSON: class, message, notes, status, and what it used."""
    found: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, APIError):
        found |= {name: value for name in ("status", "retry_after") if (value := getattr(error, name)) is not None}
    found |= refusal_to_json(error)
    if notes := getattr(error, "__notes__", None):
        found["notes"] = list(notes)
    if error.sent is not None:
        found["sent"] = error.sent
    if (used := usage_of(error)) is not None:
        found["usage"] = used.model_dump()
    if error.usage_estimated:
        found["estimated"] = True
    if (unknown := unknown_of(error)) is not None:
        found["unknown"] = unknown.model_dump()
    return found


def refusal_to_json(error: BaseException) -> dict[str, Any]:
    """What of a failure says that it does not come of what was asked, as plain JSON; of most nothing."""
    if not isinstance(error, BadRequest):
        return {}
    return {name: value for name in REFUSAL if (value := getattr(error, name))}


def error_from_json(found: Mapping[str, Any]) -> ModelError:
    """A failure that `error_to_json` wrote. A class that is no `ModelError` of this library becomes one by its name.

    Raises:
        ValueError: a field of it is of another kind, or it used what nothing can have used.
    """
    for key, kinds in _FIELDS.items():
        if not isinstance(found.get(key), kinds):
            raise ValueError(f"the {key} of a failure cannot be {found[key]!r:.80}")
    name = str(found["type"])
    kind: type[ModelError] = _kinds(ModelError).get(name) or type(name, (ModelError,), {})
    error: ModelError
    if issubclass(kind, APIError):
        error = kind(found["message"], status=found.get("status"), retry_after=found.get("retry_after"))
        if isinstance(error, BadRequest):
            error.setting, error.unserved = found.get("setting") or "", bool(found.get("unserved"))
    else:
        error = kind(found["message"])
    for note in found.get("notes", ()):
        error.add_note(note)
    usage, unknown = [None if (each := found.get(name)) is None else usage_from_json(each) for name in _USED]
    return mark(error, usage=usage, sent=found.get("sent"), estimated=bool(found.get("estimated")), unknown=unknown)


def fresh(error: ModelError) -> ModelError:
    """A failure once more, as each caller adds notes and a traceback to its own."""
    return error_from_json(error_to_json(error))


def _kinds(base: type[ModelError]) -> dict[str, type[ModelError]]:
    found = {base.__name__: base}
    for kind in base.__subclasses__():
        found |= _kinds(kind)
    return found
