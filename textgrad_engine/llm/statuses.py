"""What a response means that is no success: its status, what it says, and how long it asks to wait."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from textgrad_engine.errors import (
    APIError,
    AuthenticationFailed,
    BadRequest,
    ContextOverflow,
    DeadlineExceeded,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.llm.usage import mark

__all__ = ["error_of", "reported", "retry_after"]

_TOO_LONG = (
    "send less, or use a model with a longer context; what a critic or an optimizer is shown is fitted to the size of "
    "the context where it is known: state it with context=... (llm.resolve, OpenAIModel, or the config's [models])"
)

_TOO_OFTEN = (
    "calls are made more slowly by themselves; state what the account allows with requests_per_minute or "
    "tokens_per_minute (llm.resolve, or the config's [models]), and fewer are refused"
)

_OVERFLOW = (
    "context_length_exceeded",
    "maximum context length",
    "context length",
    "context window",
    "context size",  # llama.cpp's word
    "maximum number of tokens allowed",  # Gemini's
    "prompt is too long",
)

_FLAGGED = re.compile(r"flagged|content[_ ]policy")
_OF_THE_ACCOUNT = re.compile(
    r"(?:account|organi[sz]ation|project|key)[ _](?:\w+[ _]){0,3}(?:flagged|deactivated|disabled|suspended|terminated)"
)
"""What a 403 says that is about the text of one request (OpenRouter's moderation), and not about who has sent it."""

_INSIDE = "the endpoint, in a body of status 200,"

_KEY_REFUSED = (  # by servers that answer 400 where others answer 401
    "invalid_api_key",
    "api_key_invalid",
    "api key not valid",  # Gemini
    "no_db_connection",  # litellm's proxy without a database, of any key but its master key
)


def error_of(status: int, text: str, headers: Mapping[str, str], model: str, where: str) -> APIError:
    """The error that a response with a status other than 2xx stands for.

    Args:
        status: the HTTP status.
        text: the body.
        headers: the headers, with lower-case names.
        model: the name that was sent.
        where: the endpoint, for the message.
    """
    code, said = _said(text)
    wait = retry_after(headers)
    low = f"{code} {said}".lower()
    about = f"{where} refused a request to {model!r} with status {status}: {said or 'no reason given'}"
    kind: type[APIError]
    if status == 403 and _FLAGGED.search(low) and not _OF_THE_ACCOUNT.search(low):
        kind, repair = BadRequest, "the key is right; what was asked is refused"
    elif status in (401, 403) or (status == 400 and any(sign in low for sign in _KEY_REFUSED)):
        kind, repair = AuthenticationFailed, "check the API key (OPENAI_API_KEY, or api_key=...) and its rights"
    elif status == 402 or "insufficient_quota" in low or "billing_hard_limit" in low:
        kind, repair = QuotaExhausted, "the account has no money left; waiting does not help"
    elif status == 404:
        kind, repair = BadRequest, "check the model's name and the base_url"
    elif status in (400, 413, 422) and any(sign in low for sign in _OVERFLOW):
        kind, repair = ContextOverflow, _TOO_LONG
    elif status == 429:
        kind, repair = RateLimited, _TOO_OFTEN
    elif status == 408:
        kind, repair = DeadlineExceeded, ""
    elif status >= 500:
        kind, repair = ServerFailed, ""
    elif status == 409:
        kind, repair = APIError, ""
    else:
        kind, repair = BadRequest, ""
    return kind(f"{about}; {repair}" if repair else about, status=status, retry_after=wait)


def reported(error: Any, model: str) -> APIError | None:
    """The error that a body or an event tells of, though the status of its response was success.

    Proxies that have begun to answer when the model behind them fails say so by a status in the body (OpenRouter's
    "Errors and Debugging"). It may have been charged.

    Args:
        error: what stands under ``error``.
        model: the name that was sent.

    Returns:
        None where it names no status that tells what to do. One that refuses a key does not: it is that of the model
        behind, for our own was taken.

    Example:
        >>> reported({"code": 429, "message": "slow down"}, "m")
        RateLimited("the endpoint, in a body of status 200, refused a request to 'm' with status 429: slow down; ...")
        >>> reported({"message": "upstream"}, "m")
    """
    given = error if isinstance(error, dict) else {}
    for key in ("code", "status"):
        named = str(given.get(key))
        if re.fullmatch("[45][0-9][0-9]", named):
            found = error_of(int(named), json.dumps({"error": given}), {}, model, _INSIDE)
            if not isinstance(found, AuthenticationFailed):
                return mark(found, sent=True)
    return None


def _said(text: str) -> tuple[str, str]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return "", " ".join(text.split())[:300]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return "", str(error)[:300]
    code = " ".join(str(error[key]) for key in ("code", "type") if error.get(key))
    said = error.get("message") or error.get("detail") or error
    return code, str(said)[:1000]


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that an endpoint asks to wait: from ``retry-after-ms``, or ``retry-after`` in seconds or as a date.

    Args:
        headers: with lower-case names, or a mapping that does not mind.
        now: the time in seconds since the epoch.

    Example:
        >>> retry_after({"retry-after": "2"}), retry_after({"retry-after-ms": "250"}), retry_after({})
        (2.0, 0.25, None)
    """
    # the last is what litellm's proxy makes of the header of the endpoint behind it
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0), ("llm_provider-retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - now()
            except ValueError:
                continue
        if seconds == seconds and seconds != float("inf"):  # "nan" and "inf" are numbers for float()
            return max(0.0, seconds)
    return None
