"""Calls that failed: what the SDK, its transport or a status say, as one of our errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from textgrad_engine.errors import ConnectionFailed, DeadlineExceeded, MalformedResponse, ModelError, RequestRefused
from textgrad_engine.llm import statuses
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.rates import tell
from textgrad_engine.llm.redact import without_password
from textgrad_engine.llm.request import Request

_LONGEST = 500
"""Characters that are told of a failure; what is no HTTP may be a whole page."""


class Sent(NamedTuple):
    """A call as its errors speak of it.

    Attributes:
        request: what was asked.
        name: the model's name, as it was sent.
        where: the endpoint's address, without a password.
        path: what was asked for there.
        lacking: what is said where there is nothing at that path.
        timeout: seconds that data was waited for.
        redact: takes secrets out of what is said.
    """

    request: Request
    name: str
    where: str
    path: str
    lacking: str
    timeout: float
    redact: Callable[[str], str]


def translated(error: Exception, sent: Sent) -> ModelError | None:
    """The error of ours that one of the SDK's, or of its transport, stands for; None for one that is neither's."""
    import httpx2  # loaded by openai already, which is loaded when a call has failed
    import openai

    where, name = sent.where, sent.name
    own = _cause(error, RequestRefused | MalformedResponse)  # of a hook of ours, and wrapped up by some SDKs
    if own is not None:
        said = sent.redact(str(own))
        refused = isinstance(own, RequestRefused)
        return mark(RequestRefused(said), sent=False) if refused else MalformedResponse(said)
    if isinstance(error, openai.APIStatusError):
        text = sent.redact(error.response.content.decode("utf-8", "replace"))
        tell(error.response.headers)
        failed = statuses.error_of(error.status_code, text, error.response.headers, name, where, sent.request)
        if moved := sent_on(error.response, sent):
            failed.add_note(moved)
        elif error.status_code in (404, 405):
            failed.add_note(f"it was asked for {where}{sent.path}{_at_azure(where) or sent.lacking}")
        return failed
    lost = _aiohttp_error(error)
    if lost is None and isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        late = DeadlineExceeded(f"{where} sent nothing for {sent.timeout:g} s, asked for {name!r}")
        unsent = _cause(error, httpx2.ConnectTimeout | httpx2.PoolTimeout) is not None
        return mark(late, sent=False) if unsent else late
    if lost is not None or isinstance(error, openai.OpenAIError | httpx2.HTTPError | OSError):
        cause = lost or error.__cause__ or error
        reason = sent.redact(_told(cause)) or type(cause).__name__
        broken = ConnectionFailed(f"no answer from {where}: {reason}; is the server running, and is base_url right?")
        unsent = _cause(error, httpx2.ConnectError) is not None if lost is None else _never_connected(lost)
        return mark(broken, sent=False) if unsent else broken
    return None


def sent_on(response: Any, sent: Sent) -> str:
    """Where the endpoint sent a request on to, and what to do; "" where it answered by itself.

    Most redirects, as from http to https, make a GET without a body of what was posted.
    """
    if response is None or not response.history:
        return ""
    there = sent.redact(without_password(str(response.url.copy_with(query=None, fragment=None))))
    lost = "" if response.request.method == "POST" else ", where it came without what was asked"
    first = response.history[0].status_code
    return (
        f"{sent.where} sent the request on to {there} (status {first}){lost}; name that address as base_url, without "
        f"{sent.path} at its end"
    )


def _at_azure(where: str) -> str:
    """What is said where there is nothing at an address of Azure; "" of any other."""
    host = urlsplit(where).hostname or ""
    if not (host.endswith(".azure.com") or "/openai/deployments/" in where) or where.endswith("/openai/v1"):
        return ""
    return "; at Azure a base_url ends in /openai/v1, without an api-version, and the model is the name of a deployment"


def _aiohttp_error(error: BaseException) -> BaseException | None:
    """What aiohttp said of a connection that failed or broke, or of what came by it and is no HTTP.

    The SDK calls the former a timeout of connecting, and knows nothing of the latter.
    """
    aiohttp = sys.modules.get("aiohttp")  # not imported here: without it, nothing of its kind can have been raised
    lost = None if aiohttp is None else _cause(error, aiohttp.ClientError)
    return None if isinstance(lost, TimeoutError) else lost


def _told(cause: BaseException) -> str:
    """What an exception says, in one line; aiohttp draws the place of what it cannot read, and adds the address."""
    said = getattr(cause, "message", None)
    return " ".join((said if isinstance(said, str) and said else str(cause)).split())[:_LONGEST]


def _never_connected(lost: BaseException) -> bool:
    return isinstance(lost, sys.modules["aiohttp"].ClientConnectorError)


def _cause(error: BaseException | None, kind: Any) -> BaseException | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error
