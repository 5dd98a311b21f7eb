"""The adapter to every endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import time
import weakref
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from textgrad_engine.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    ModelError,
    RequestRefused,
)
from textgrad_engine.llm import wire
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.usage import mark

__all__ = ["DEFAULT_BASE_URL", "REFUSE_REQUESTS", "OpenAIModel"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"

REFUSE_REQUESTS = "TEXTGRAD_ENGINE_REFUSE_REQUESTS"
"""The environment variable that forbids real requests while it is set; the pytest plugin sets it.

A variable of the environment, so that child processes of a test are covered too.
"""

_REFUSED_FORMAT = ("response_format", "json_schema", "structured output")


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint, by the `openai` package.

    The package is loaded and the connection made at the first call. Its own retries are off: wrap the model with
    `resolve` to get ours, with limits and budgets.

    Args:
        name: the model's name as the endpoint knows it, e.g. "gpt-5-mini"; OpenAI itself also gets "openai/gpt-5-mini".
        base_url: the endpoint, e.g. ``"http://localhost:11434/v1"``; without one, `OPENAI_BASE_URL` or OpenAI itself.
        api_key: the key; without one, `OPENAI_API_KEY`. An endpoint of your own needs none.
        max_in_flight: how many calls `resolve` lets through at once; None for its default.
        timeout: seconds to wait for data that does not come.
        **config: sampling settings for requests that do not set them (the fields of `GenerateConfig`).

    Raises:
        TypeError: a setting that does not exist; `extra={...}` passes on what only one endpoint knows.

    Example:
        >>> OpenAIModel("gpt-5-mini", max_tokens=500)
        OpenAIModel('gpt-5-mini', max_tokens=500)
    """

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        api_key: str | SecretStr | None = None,
        max_in_flight: int | None = None,
        *,
        timeout: float = 300.0,
        **config: Any,
    ) -> None:
        if unknown := [setting for setting in config if setting not in GenerateConfig.model_fields]:
            known = ", ".join(sorted(GenerateConfig.model_fields))
            raise TypeError(
                f"OpenAIModel has no setting {unknown[0]!r}; it knows {known}, "
                f"and extra={{{unknown[0]!r}: ...}} passes one on to the endpoint as it is"
            )
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        self.host = urlsplit(self.base_url).hostname or ""
        if not self.host:
            raise ValueError(f"base_url must be an address like http://localhost:11434/v1, got {base_url!r}")
        self.name = name
        self.max_in_flight = max_in_flight
        self.timeout = timeout
        self.defaults = GenerateConfig(**config)
        self._official = self.host == "api.openai.com"
        self._sent_name = name.removeprefix("openai/") if self._official else name
        self._key = SecretStr(api_key) if isinstance(api_key, str) else api_key
        self._format_in_words = False
        self._clients: PerLoop[_Client] = PerLoop(_Client)
        weakref.finalize(self, _close_all, self._clients).atexit = False

    async def complete(self, request: Request) -> Completion:
        """Send one request, and a second one only when the endpoint turns out not to know ``response_format``.

        Raises:
            ModelError: whatever went wrong, as one of its subclasses; never an exception of the SDK.
        """
        config = request.config.over(self.defaults)
        in_words = self._format_in_words
        try:
            return await self._send(request, config, in_words)
        except BadRequest as error:
            if in_words or config.response_format is None or not _is_about_format(error):
                raise
        self._format_in_words = True
        return await self._send(request, config, True)

    async def aclose(self) -> None:
        """Close the connections made on the running loop; the next call makes new ones."""
        client = self._clients.pop()
        if client is not None:
            await client.close()

    async def _send(self, request: Request, config: GenerateConfig, in_words: bool) -> Completion:
        key = self._secret()
        client = self._clients.get().connected(self, key)
        sent = wire.arguments(self._sent_name, request, config, official=self._official, in_words=in_words)
        started = time.perf_counter()
        failure: ModelError
        # Raised outside the except block: the SDK's own error may quote the key, and must not hang on to ours.
        try:
            response = await client.chat.completions.with_raw_response.create(**sent)
        except Exception as error:
            translated = self._translated(error, key)
            if translated is None:
                raise
            failure = translated
        else:
            latency = time.perf_counter() - started
            return wire.completion_of(_redacted_body(response.content, key), request, self._sent_name, latency)
        raise failure

    def _secret(self) -> str:
        key = self._key.get_secret_value() if self._key is not None else os.environ.get("OPENAI_API_KEY", "")
        key = key.strip()
        if self._key is None and not self._official and not key:
            return "none"  # servers of one's own ask for no key, but the SDK insists on sending one
        if not key:
            raise mark(
                AuthenticationFailed(
                    f"no API key for {self.name!r}: set OPENAI_API_KEY or give api_key=..., or name a server that "
                    "needs none with base_url='http://localhost:11434/v1'; nothing was sent"
                ),
                sent=False,
            )
        if not (key.isascii() and key.isprintable()):
            raise mark(
                AuthenticationFailed(
                    f"the API key for {self.name!r} holds characters that no key has, e.g. a line break; "
                    "nothing was sent"
                ),
                sent=False,
            )
        return key

    def _translated(self, error: Exception, key: str) -> ModelError | None:
        import httpx2  # loaded by openai already, which is loaded when a call has failed
        import openai

        where = _without_password(self.base_url)
        refused = _cause(error, RequestRefused)
        if refused is not None:
            return mark(RequestRefused(str(refused)), sent=False)
        if isinstance(error, openai.APIStatusError):
            text = _redacted(error.response.text, key)
            return wire.error_of(error.status_code, text, error.response.headers, self._sent_name, where)
        if isinstance(error, UnicodeEncodeError):
            return mark(
                RequestRefused(f"a message holds a lone surrogate ({error.reason}), which cannot be sent as UTF-8"),
                sent=False,
            )
        if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
            late = DeadlineExceeded(f"{where} sent nothing for {self.timeout:g} s, asked for {self._sent_name!r}")
            unsent = _cause(error, httpx2.ConnectTimeout | httpx2.PoolTimeout) is not None
            return mark(late, sent=False) if unsent else late
        if isinstance(error, openai.OpenAIError | httpx2.HTTPError | OSError):
            reason = _redacted(str(error.__cause__ or error), key) or type(error.__cause__ or error).__name__
            broken = ConnectionFailed(
                f"no answer from {where}: {reason}; is the server running, and is base_url right?"
            )
            return mark(broken, sent=False) if _cause(error, httpx2.ConnectError) is not None else broken
        return None

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        if self.base_url != DEFAULT_BASE_URL:
            shown.append(f"base_url={_without_password(self.base_url)!r}")
        shown += [f"{name}={getattr(self.defaults, name)!r}" for name in sorted(self.defaults.model_fields_set)]
        return f"OpenAIModel({', '.join(shown)})"


class _Client:
    """The SDK's client on one loop, made when the first request needs it and anew when the key changes."""

    def __init__(self) -> None:
        self._made: tuple[str, Any] | None = None

    def connected(self, model: OpenAIModel, key: str) -> Any:
        if self._made is None or self._made[0] != key:
            import httpx2  # with openai, most of a second: paid at the first call, not at import
            import openai

            local = _is_loopback(model.host)
            http = httpx2.AsyncClient(
                timeout=httpx2.Timeout(model.timeout, connect=min(10.0, model.timeout), pool=None),
                # how many calls run at once is decided by Limit; a kept connection saves a handshake for each of them
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
                follow_redirects=True,
                trust_env=not local,  # a proxy of the environment cannot reach this machine's own servers
                event_hooks={"request": [_guard]},
            )
            client = openai.AsyncOpenAI(
                api_key=key, base_url=model.base_url, max_retries=0, timeout=http.timeout, http_client=http
            )
            self._made = (key, client)
        return self._made[1]

    async def close(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            await made[1].close()


async def _guard(request: Any) -> None:
    # The trace is called only where a request really goes to the network: a mocked transport never comes there.
    if os.environ.get(REFUSE_REQUESTS) and not _is_loopback(request.url.host):
        request.extensions["trace"] = _refuse


async def _refuse(event: str, info: Any) -> None:
    raise RequestRefused(
        "real requests are refused while tests run, so that none reaches a paid model by accident; to permit them, "
        "mark the test with @pytest.mark.live or use the fixture allow_requests; to do without, use a model of "
        "textgrad_engine.testing"
    )


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _is_about_format(error: BadRequest) -> bool:
    said = str(error).lower()
    # a schema that is wrong is the caller's to mend; asking in words instead would hide it
    return error.status in (400, 422) and "invalid schema" not in said and any(sign in said for sign in _REFUSED_FORMAT)


def _cause(error: BaseException | None, kind: Any) -> BaseException | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def _redacted(text: str, key: str) -> str:
    return text.replace(key, "[API key]") if len(key) > 4 else text


def _redacted_body(body: bytes, key: str) -> bytes:
    return body.replace(key.encode(), b"[API key]") if len(key) > 4 else body


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if parts.username else url


def _close_all(clients: PerLoop[_Client]) -> None:
    for loop, client in clients.items():
        if loop.is_running():
            with contextlib.suppress(RuntimeError):  # it stopped meanwhile, and its connections with it
                asyncio.run_coroutine_threadsafe(client.close(), loop)
