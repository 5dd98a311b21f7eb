"""Failures that a body or an event tells of, though the status of its response is that of success."""

from __future__ import annotations

import re
from typing import Any

from textgrad_engine.errors import AuthenticationFailed, ModelError
from textgrad_engine.llm import refusals
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.refusals import Refusal
from textgrad_engine.llm.statuses import NO_MONEY, OVERFLOW, meant

_NAMED: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"overloaded|unavailable|insufficient_system_resource"), 503),
    (re.compile(r"rate_limit|rate_limited|resource_exhausted|too_many_requests|throttl"), 429),
    (re.compile(r"timeout|deadline_exceeded"), 504),
    (re.compile(r"server_error|api_error|internal|upstream_error|provider_error|generation"), 500),
)
"""What endpoints call failures for which they name no status, in an event or a body that began as a success."""


def failure_in(body: dict[str, Any]) -> Any:
    """What a body, or an event, says went wrong; something false where nothing did.

    It stands under ``error``, or is the object itself (older servers of vLLM).

    Example:
        >>> failure_in({"object": "error", "code": 400})["code"], failure_in({"choices": []})
        (400, None)
    """
    if body.get("object") in ("error", "Error"):
        return body
    failure = body.get("error")
    if isinstance(failure, str) and failure:  # TGI's kind of it stands beside it
        return {"message": failure, "error_type": body.get("error_type"), "code": body.get("code")}
    return failure


def bare_failure_in(body: dict[str, Any]) -> dict[str, Any]:
    """What a body without an answer says of a failure beside anything else, as gateways and MiniMax do.

    Example:
        >>> bare_failure_in({"code": 429, "message": "slow down", "choices": None})
        {'code': 429, 'message': 'slow down'}
    """
    inside = body.get("base_resp")
    told = {**body, "message": inside.get("status_msg")} if isinstance(inside, dict) else body
    return {name: told[name] for name in ("code", "status", "type", "message", "msg", "detail") if _is_said(told, name)}


def _is_said(told: dict[str, Any], name: str) -> bool:
    return isinstance(told.get(name), str | int)


def reported(error: Any, model: str) -> ModelError | None:
    """The error that a body or an event tells of, though the status of its response was success.

    Proxies that have begun to answer when the model behind them fails say so by a status in the body (OpenRouter's
    "Errors and Debugging"), others by a name or in words. It may have been charged.

    Args:
        error: what stands under ``error``.
        model: the name that was sent.

    Returns:
        None where nothing in it tells what to do. One that refuses a key does not: it is that of the model behind, for
        our own was taken.

    Example:
        >>> reported({"code": 429, "message": "slow down"}, "m")
        RateLimited("the endpoint, in a body of status 200, refused a request to 'm' with status 429: slow down; ...")
        >>> reported({"message": "upstream"}, "m")
    """
    refusal = refusals.read({"error": error})
    said = refusal.said or "no reason given"
    if (status := _status_in(error)) is not None:
        about = f"the endpoint, in a body of status 200, refused a request to {model!r} with status {status}: {said}"
    elif (status := _status_meant(refusal)) is not None:
        about = f"{model!r} accepted a request and then failed: {said}{f' ({refusal.codes})' if refusal.codes else ''}"
    else:
        return None
    found = meant(status, refusal, None, about)
    return None if isinstance(found, AuthenticationFailed) else mark(found, sent=True)


def _status_in(error: Any) -> int | None:
    given = error if isinstance(error, dict) else {}
    for key in ("code", "status", "status_code", "http_code"):
        if re.fullmatch("[45][0-9][0-9]", named := str(given.get(key))):
            return int(named)
    return None


def _status_meant(refusal: Refusal) -> int | None:
    low = refusal.all
    if refusal.written is not None or OVERFLOW.search(low):
        return 400
    if NO_MONEY.search(low):
        return 402
    return next((status for name, status in _NAMED if name.search(refusal.codes)), None)
