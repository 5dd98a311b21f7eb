"""What a response means that is no success: its status, what it says, and how long it asks to wait."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from textgrad_engine.errors import (
    APIError,
    AuthenticationFailed,
    BadRequest,
    ContextOverflow,
    DeadlineExceeded,
    MalformedResponse,
    ModelError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.llm import refusals
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.refusals import Refusal
from textgrad_engine.llm.refused import left_out, refused_of_all, refused_setting
from textgrad_engine.llm.request import Request

_NO_IMAGES = re.compile(r"image input is not supported")
_SEND_LESS = "send less, or use a model with a longer context"
_TOO_LONG = {
    "forward": f"{_SEND_LESS}; it is a request of the program, of which nothing is left out",
    "judge": f"{_SEND_LESS}; it is a request to a judge, which is shown all that it judges",
}
_TOO_LONG_TO_BE_FITTED = (
    f"{_SEND_LESS}; requests to critics and optimizers are fitted to the model's context if its size is known: "
    "state it with context=... (llm.resolve, OpenAIModel, or the config's [models])"
)

_TOO_LARGE_FOR_A_MINUTE = (
    "this one request is larger than all that the account allows in a minute, so waiting does not help: set a smaller "
    "max_tokens, which counts, send less, or state with context=... what fits (llm.resolve, OpenAIModel, or the "
    "config's [models])"
)

_TOO_OFTEN = (
    "calls are made more slowly by themselves; state what the account allows with requests_per_minute or "
    "tokens_per_minute (llm.resolve, or the config's [models]), and fewer are refused"
)

_NOBODY_FREE = (
    "the endpoint has no capacity for this service tier now, whatever the account allows; another service_tier may have"
)

_PAGE = re.compile(r"\s*<(?:!doctype html|html)", re.IGNORECASE)
_OF_ANOTHER = (
    "that is a web page, so something in front of the endpoint refused this request, as a firewall may for a word in "
    "it; look there, and whether base_url is right"
)
_TOO_LARGE_FOR_A_PROXY = (
    "that is a web page, so something in front of the endpoint takes no request of this size: raise its limit (nginx's "
    "client_max_body_size), or send less"
)

_KEY = (
    "check the API key (OPENAI_API_KEY, or the variable that api_key names in the config, or "
    "llm.resolve(name, api_key=...)) and its rights"
)
_NO_MONEY_LEFT = "the account has no money left; waiting does not help"
_NOT_TODAY = (
    "what the account allows in a day is used up, and waiting a few minutes does not help; `resume` goes on with a run "
    "later"
)

_NOT_SOON = (
    "what the account allows in some hours, a week or a month is used up, and waiting a few minutes does not help; "
    "`resume` goes on with a run later"
)
_NOTHING_ALLOWED = (
    "the account's limit for this model is 0, so waiting does not help; name another model, or another plan"
)
_NOT_SERVED_HERE = "the key may be right; the endpoint does not serve the place that this is sent from"
_NOTHING_THERE = "check the model's name and the base_url"
_NO_PROVIDER = (
    "no provider of this model takes such a request: send fewer settings, or ask less of providers (extra's provider)"
)
_OTHER_API = "a model that has no chat completions is asked by api='responses' (llm.resolve, or the config's [models])"

_CONTEXT = r"(?:context (?:length|window|limit|size))"
_TOO_MUCH = (
    r"context_length_exceeded|contextwindowexceeded|exceed_context_size"  # OpenAI and others, litellm, llama.cpp
    rf"|(?:exceed\w*|longer than|larger than|greater than|more than|too large for|less than)\b.{{0,80}}{_CONTEXT}"
    rf"|{_CONTEXT}.{{0,40}}exceed|maximum context length (?:is|of) \d"
    r"|maximum number of tokens allowed"  # Gemini
    r"|prompt is too long|prompt too long|input is too long|too many input tokens"  # Anthropic, Bedrock
    r"|maximum prompt length"  # xAI
    r"|maximum model length"  # vLLM
    r"|maximum allowed (?:input )?length"  # SGLang, and litellm before it
    r"|max_new_tokens`? must be|`inputs`? must have less than"  # TGI, Together
    r"|reduce the length of the messages"  # Groq, Cerebras
    r"|total number of tokens in the prompt"  # Cohere
    r"|range of input length"  # Qwen
    r"|exceeded model token limit|prompt exceeds max length"  # Moonshot, Zhipu
    r"|tokens_limit_reached|request body too large"  # GitHub Models
)
_EXCEEDED = re.compile(_TOO_MUCH)
OVERFLOW = re.compile(rf"{_TOO_MUCH}|{_CONTEXT}")
"""What a refusal of a request says that is too long for the model. A server that breaks may speak of its context, too,
when it has no memory for it, so words alone that name the context mean that only where a request is refused."""

_FOR_A_MINUTE = re.compile(r"request too large for .*tokens per min", re.DOTALL)

_FLAGGED = re.compile(
    r"flagged|content[_ ](?:policy|filter|management)|contentpolicyviolation|responsibleai|usage guidelines"
    r"|safety_check|data_inspection_failed|guardrail"
)
_OF_THE_ACCOUNT = re.compile(
    r"(?:account|organi[sz]ation|project|key)[ _](?:[^\W_]+[ _]){0,3}"
    r"(?:flagged|deactivated|disabled|suspended|terminated)"
)
"""What a 403 says that is about the text of one request (OpenRouter's moderation), and not about who has sent it."""

_KEY_REFUSED = re.compile(  # by servers that answer 400 where others answer 401
    r"invalid_api_key|api_key_invalid|api key not valid"  # Gemini
    r"|incorrect api key"  # xAI
    r"|no_db_connection"  # litellm's proxy without a database, of any key but its master key
)

NO_MONEY = re.compile(
    r"insufficient_quota|billing_hard_limit|billing_not_active|insufficient balance|insufficient credit"
    r"|credit balance is too low|specified api usage limits"  # Anthropic, with status 400
    r"|used all available credits|run out of credits|any credits or licenses"  # xAI, with 403 or 429
    r"|spend(?:ing)? limit"  # xAI, Fireworks with 412
    r"|key limit exceeded|budget limit exceeded|openrouter_(?:key_limit|guardrail_budget|workspace_budget)"
    r"|budget_exceeded|budget has been exceeded"  # litellm's proxy, with 400
    r"|exceeded_current_quota_error|arrearage"  # Moonshot, Qwen
)
# Not "exceeded your current quota": Gemini says that of each limit per minute.
_MONEY_STATUSES = (400, 402, 403, 412, 429)

_A_DAY = re.compile(
    r"per[-_ ]?day|\b(?:tpd|rpd)\b|byday|per 86400s"
    r"|\bdaily\b[\w -]{0,30}(?:limit|quota|cap|allowance|allocation)|(?:limit|quota|cap|allowance)[\w -]{0,30}\bdaily\b"
)
_LONGER = re.compile(
    r"(?:calls|requests|tokens) ?(?:per|/) ?(?:week|month)\b"
    r"|\b(?:weekly|monthly)\b[\w /-]{0,30}(?:limit|quota|cap|allowance)"
    r"|limit reached for \d+ hour|quota will be replenished"  # Z.AI, Azure's gateways
)
_NONE_AT_ALL = re.compile(r"\blimit: 0\b")  # Gemini's, of a model that a plan does not have
_ROLLS = re.compile(r"per day \((?:tpd|rpd)\)")
"""A limit of which some comes back all the time, as the wait that is named with it says: OpenAI's and Groq's. Gemini
names half a minute, and midnight is meant."""

_DAY = 86400.0
"""Seconds after which all of a day's limit is back, whatever wait is named with it."""

_A_MINUTE = re.compile(r"(?:per|/)[-_ ]?min|\b(?:tpm|rpm)\b|per[-_ ]?second|byminute")

_NO_CHAT = re.compile(
    r"not a chat model|only supported in v1/responses|chatcompletion operation does not work"  # OpenAI, Azure
)

_TURNED_AWAY = re.compile(r"overloaded|unavailable|loading model|server busy|high demand|no healthy upstream|capacity")
_BROKE = re.compile(r"disconnect|reset|terminat|timeout|timed out")
"""What a server says that takes nothing on now (RFC 9110, 15.6.4), so that nothing of a request was worked on; and what
proxies say beside the same status that lost what they had passed on (Envoy)."""

_LOADING = re.compile(r"loading model|currently loading|model is loading")
_LOADS = 15.0
"""Seconds to wait for a server that is reading its model from disk, which takes a minute or more."""


def error_of(
    status: int, text: str, headers: Mapping[str, str], model: str, where: str, asked: Request | None = None
) -> ModelError:
    """The error that a response with a status other than 2xx stands for.

    Args:
        status: the HTTP status.
        text: the body.
        headers: the headers, with lower-case names.
        model: the name that was sent.
        where: the endpoint, for the message.
        asked: what was refused. Validation errors quote it, and words in it say nothing about the account.
    """
    refusal = refusals.read(text)
    about = f"{where} refused a request to {model!r} with status {status}: {refusal.said or 'no reason given'}"
    return meant(status, refusal, retry_after(headers), about, asked)


def meant(status: int, refusal: Refusal, wait: float | None, about: str, asked: Request | None = None) -> ModelError:
    """The error that a status and what was said beside it stand for.

    Args:
        status: the HTTP status, or the one that comes nearest to what was said.
        refusal: what was said.
        wait: seconds that the headers ask to wait; None where they do not.
        about: who refused what, for the message.
        asked: as for `error_of`.
    """
    if refusal.written is not None and status in (400, 422):
        return MalformedResponse(
            f"{about}; the model had written {refusal.written[:80]!r}", answer=refusal.written, problem=refusal.said
        )
    named = refusal.wait if wait is None else wait
    kind, repair = _kind(status, refusal, named, asked)
    if kind is QuotaExhausted:
        wait = _until_back(refusal, named)
    elif wait is None and issubclass(kind, RateLimited | ServerFailed):  # else words may mean anything
        loads = _LOADS if kind is ServerFailed and _LOADING.search(refusal.all) else None
        wait = loads if named is None else named
    found = kind(f"{about.rstrip('. ')}; {repair}" if repair else about, status=status, retry_after=wait)
    if status in (503, 529) and _TURNED_AWAY.search(refusal.all) and not _BROKE.search(refusal.all):
        mark(found, sent=False)
    if type(found) is BadRequest and not _FLAGGED.search(refusal.all):
        found.setting = refused_of_all(status, refusal, asked)
        found.unserved = repair == _NOTHING_THERE and not found.setting
    return found


def _until_back(refusal: Refusal, named: float | None) -> float | None:
    """Seconds until something of what is used up may be used again; None where nothing says that."""
    return named if named is not None and named <= _DAY and _ROLLS.search(refusal.all) else None


def _of_a_day(wait: float | None) -> str:
    if wait is None:
        return _NOT_TODAY
    back = datetime.fromtimestamp(math.ceil((time.time() + wait) / 60) * 60, UTC)
    return (
        f"what the account allows in a day is used up, and some of it is back at {back:%Y-%m-%d %H:%M} UTC: `resume` "
        "goes on with a run from then on"
    )


def _kind(status: int, refusal: Refusal, wait: float | None, asked: Request | None) -> tuple[type[APIError], str]:
    low = refusal.all
    if status in _MONEY_STATUSES and _says(low, NO_MONEY, asked if status == 400 else None):
        return QuotaExhausted, _NO_MONEY_LEFT
    if status in (400, 403, 422) and _FLAGGED.search(low) and not _OF_THE_ACCOUNT.search(low):
        return BadRequest, "the key is right; what was asked is refused"
    if status == 402:  # OpenRouter says when it will have settled what is under way
        return (QuotaExhausted, _NO_MONEY_LEFT) if wait is None else (RateLimited, _TOO_OFTEN)
    if status == 403 and OVERFLOW.search(low):  # Together's documented status for it
        return ContextOverflow, _too_long(asked)
    if status in (403, 413) and _PAGE.match(refusal.said):  # no endpoint says so that a key is wrong
        return (BadRequest, _OF_ANOTHER) if status == 403 else (ContextOverflow, _TOO_LARGE_FOR_A_PROXY)
    if status in (403, 429) and _LONGER.search(low) and not _A_MINUTE.search(low):
        return QuotaExhausted, _NOT_SOON
    if status == 403 and ("unsupported_country" in low or "not available in your" in low):
        return AuthenticationFailed, _NOT_SERVED_HERE
    if status in (401, 403) or (status == 400 and _says(low, _KEY_REFUSED, asked)):
        return AuthenticationFailed, _KEY
    if status in (400, 404) and _NO_CHAT.search(low):
        return BadRequest, _OTHER_API
    if status == 404 and "no endpoints found" in low:  # OpenRouter's, of a model that it knows
        return BadRequest, _NO_PROVIDER
    if status in (404, 405):  # the latter from what serves web pages there
        return BadRequest, _NOTHING_THERE
    if status in (413, 429) and _FOR_A_MINUTE.search(low):
        return ContextOverflow, _TOO_LARGE_FOR_A_MINUTE
    if status == 413 or (status in (400, 422) and OVERFLOW.search(low)):
        return ContextOverflow, _too_long(asked)
    if status == 500 and _says(low, _NO_IMAGES, asked):  # llama.cpp's, of a model without a projector
        return BadRequest, "the model reads no images"
    if status == 500 and _says(low, _EXCEEDED, asked):  # llama.cpp until September 2025, and what is in front of others
        return ContextOverflow, _too_long(asked)
    if status == 429 and _NONE_AT_ALL.search(low):
        return QuotaExhausted, _NOTHING_ALLOWED
    if status == 429 and _A_DAY.search(low) and not _A_MINUTE.search(low):
        return QuotaExhausted, _of_a_day(_until_back(refusal, wait))
    if status == 429 or (status == 498 and "capacity" in low):  # 498 is Groq's for its flex tier
        return RateLimited, _NOBODY_FREE if "capacity" in low or "resource_unavailable" in low else _TOO_OFTEN
    if status in (408, 425, 499):  # the last is what Gemini, and gateways, have for what they gave up themselves
        return DeadlineExceeded, ""
    if status >= 500 or status == 424:  # 424 is TGI's, and Bedrock's, for a model that broke
        return ServerFailed, ""
    if status == 409:
        return APIError, ""
    setting = refused_setting(refusal) if status in (400, 422) else ""
    return BadRequest, left_out(setting) if setting else ""


def _too_long(asked: Request | None) -> str:
    return _TOO_LONG_TO_BE_FITTED if asked is None else _TOO_LONG.get(asked.purpose, _TOO_LONG_TO_BE_FITTED)


def _says(said: str, signs: re.Pattern[str], asked: Request | None) -> bool:
    """Whether one of the signs is in what was said, and not in what was asked."""
    found = {sign[0] for sign in signs.finditer(said)}
    if found and asked is not None:
        texts = [message.text.lower() for message in asked.messages]
        found = {sign for sign in found if not any(sign in text for text in texts)}
    return bool(found)


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that an endpoint asks to wait: from ``retry-after-ms``, or ``retry-after`` in seconds or as a date.

    Args:
        headers: with lower-case names, or a mapping that does not mind.
        now: the time in seconds since the epoch.

    Example:
        >>> retry_after({"retry-after": "2"}), retry_after({"retry-after-ms": "250"}), retry_after({})
        (2.0, 0.25, None)
    """
    # the third is Azure's, the last is what litellm's proxy makes of the header of the endpoint behind it
    for name, unit in (
        ("retry-after-ms", 1000.0),
        ("retry-after", 1.0),
        ("x-ms-retry-after-ms", 1000.0),
        ("llm_provider-retry-after", 1.0),
    ):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                moment = parsedate_to_datetime(value)
                seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now()
            except (ValueError, OverflowError):  # the latter for a year of many digits
                continue
        if seconds == seconds and seconds != float("inf"):  # "nan" and "inf" are numbers for float()
            return max(0.0, seconds)
    return None
