"""The adapter to every endpoint that speaks OpenAI's chat completions, or its Responses API."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from textgrad_engine.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    MalformedResponse,
    ModelError,
    RequestRefused,
    ServerFailed,
)
from textgrad_engine.llm import inwords, outputs, responses, statuses, stream, wire
from textgrad_engine.llm.check import json_in, strip_fence
from textgrad_engine.llm.context import checked_context
from textgrad_engine.llm.loading import loading
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.rates import hear
from textgrad_engine.llm.redact import conceal_frames, concealed, is_secret, without_password
from textgrad_engine.llm.request import GenerateConfig, Request, unknown_setting
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stream import Teller, listeners
from textgrad_engine.llm.transport import REFUSE_REQUESTS, WIDE, connect, has_aiohttp, is_loopback
from textgrad_engine.llm.usage import is_estimated, mark
from textgrad_engine.llm.vocabulary import settled

__all__ = ["DEFAULT_BASE_URL", "REFUSE_REQUESTS", "Api", "OpenAIModel", "checked_host"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"

Api = Literal["chat", "responses"]
"""Which of OpenAI's two APIs carries the requests: chat completions, or the Responses API."""

_JSON = {"content-type": "application/json"}

_REFUSED_FORMAT = ("response_format", "json_schema", "structured output", "text.format")


class _Wire(NamedTuple):
    """How one of the APIs says things."""

    path: str
    arguments: Callable[..., dict[str, Any]]
    completion_of: Callable[[bytes, Request, str, float, str | None], Completion]
    body_of: Callable[[AsyncIterator[bytes], Callable[[str], None], str], Awaitable[bytes]]


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint, by the `openai` package.

    The package is loaded and the connection made at the first call. Its own retries are off: wrap the model with
    `resolve` to get ours, with limits and budgets.

    Args:
        name: the model's name as the endpoint knows it, e.g. "gpt-5-mini"; OpenAI itself also gets "openai/gpt-5-mini".
        base_url: the endpoint, e.g. ``"http://localhost:11434/v1"``; without one, `OPENAI_BASE_URL` or OpenAI itself.
        api_key: the key; without one, `OPENAI_API_KEY`. An endpoint of your own needs none.
        max_in_flight: how many calls `resolve` lets through at once; None for its default.
        timeout: seconds to wait for data that does not come. It is an hour, as a server of one's own lets a call wait
            for those sent before it; `resolve` adds a deadline that knows of these (`RetryPolicy(call_deadline=...)`).
        api: ``"responses"`` for the Responses API of endpoints that have it. Requests are written the same way; it has
            no `seed`, no `stop` and no penalties, and it is told to store nothing (`extra={"store": True}` allows it).
            A conversation goes on with `completion.as_message()`, which takes the model's reasoning along where the
            endpoint gave it; some do only with `extra={"include": ["reasoning.encrypted_content"]}`.
        context: the tokens that it reads and writes at most in one call; without it, what genai-prices knows.
        **config: sampling settings for requests that do not set them (the fields of `GenerateConfig`).

    Raises:
        TypeError: a setting that does not exist, there or with this `api`; `extra={...}` passes on what only one
            endpoint knows.
        ValueError: `base_url` is no address, or one with a query.

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
        timeout: float = 3600.0,
        api: Api = "chat",
        context: int | None = None,
        **config: Any,
    ) -> None:
        api_key = concealed(api_key)  # first of all: debuggers and `pytest -l` show the locals of a frame that raised
        if api not in get_args(Api):
            raise ValueError(f"api must be 'chat' or 'responses', got {api!r}")
        if unknown := [setting for setting in config if setting not in GenerateConfig.model_fields]:
            raise TypeError(unknown_setting(unknown[0]))
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        self.host = checked_host(self.base_url)
        self.name = name
        self.max_in_flight = max_in_flight
        self.timeout = timeout
        self.context = None if context is None else checked_context(context)
        self.defaults = GenerateConfig(**config)
        self.api = api
        if api == "responses":
            for setting in responses.UNSUPPORTED:
                if getattr(self.defaults, setting) is not None:
                    raise TypeError(responses.unsupported(setting))
        self._official = self.host == "api.openai.com"
        self._sent_name = name.removeprefix("openai/") if self._official else name
        self._wire = _wire(api, official=self._official)
        self._key = api_key
        self._format = "asked"  # then "in words too" where it is ignored, or "in words" where it is refused
        self._clients: PerLoop[_Client] = PerLoop(_Client)
        weakref.finalize(self, _close_all, self._clients).atexit = False

    @property
    def cache_key(self) -> str | None:
        """What tells its answers from those that another API of the endpoint gives; None for the usual one."""
        return None if self.api == "chat" else f"api={self.api}"

    async def complete(self, request: Request) -> Completion:
        """Send one request, and a second one only when the endpoint turns out not to know ``response_format``.

        Raises:
            ModelError: whatever went wrong, as one of its subclasses; never an exception of the SDK.
        """
        config = request.config.over(self.defaults)
        how = self._format
        if how == "in words too" and config.response_format is not None and inwords.is_by_tags(config.response_format):
            how = "in words"  # tags and a format that wants JSON would contradict each other
        try:
            completion = await self._send(request, config, how)
        except (BadRequest, ServerFailed) as error:
            if how == "in words" or config.response_format is None or not _is_about_format(error):
                raise
        else:
            if how == "asked" and config.response_format is not None and _ignores_format(completion):
                self._format = "in words too"
            return completion
        self._format = "in words"
        return await self._send(request, config, "in words")

    async def aclose(self) -> None:
        """Close the connections made on the running loop; the next call makes new ones."""
        client = self._clients.pop()
        if client is not None:
            await client.close()

    async def _send(self, request: Request, config: GenerateConfig, how: str) -> Completion:
        key = self._secret()
        streamed = bool(listeners())
        sent = self._wire.arguments(
            self._sent_name,
            request,
            config,
            in_words=how == "in words too",
            no_format=how == "in words",
            stream=streamed,
        )
        content = wire.encoded(sent, request)
        clients = self._clients.get()
        client = clients.connected(self, key)
        started = time.perf_counter()
        failure: ModelError
        body = b""
        clients.in_flight += 1
        teller = Teller(request)
        # Raised outside the except block: the SDK's own error may quote the key, and must not hang on to ours.
        try:
            # By the SDK's own door for whatever it has no method for: its methods for these walk through the types of
            # all that is sent first, which takes a third of the processor time of a call.
            response = await client.post(
                self._wire.path,
                cast_to=clients.raw,
                content=content,
                options={"headers": _JSON},
                stream=streamed,
                stream_cls=clients.events,
            )
            if streamed:
                body = await self._read(response, teller.tell)
            else:
                body = response.content
            latency = time.perf_counter() - started
            _tell(response.headers)
            name = self._sent_name
            completion = self._wire.completion_of(body, request, name, latency, None)
            # Not before it is known that there is something to count: mostly the endpoint says what was used.
            if is_estimated(completion) and await settled(name):
                completion = self._wire.completion_of(body, request, name, latency, name)
            return completion if how == "asked" else self._read_in_words(completion, request, config)
        except ModelError as error:  # of a body that is too long, or no answer
            error.args = tuple([_redacted(str(said), key) for said in error.args])
            failure = error
        except Exception as error:
            translated = self._translated(error, key)
            if translated is None:
                conceal_frames(error)
                teller.take_back()
                raise
            failure = translated
        except BaseException as error:  # the call was given up
            conceal_frames(error)
            teller.take_back()
            raise
        finally:
            clients.in_flight -= 1
        teller.take_back()
        body = b""  # it may quote the key, as listings of this frame's locals would show
        raise failure.with_traceback(None)  # the locals of the SDK's frames are not ours to show

    def _read_in_words(self, completion: Completion, request: Request, config: GenerateConfig) -> Completion:
        wanted = config.response_format
        if wanted is None or completion.finish_reason != "stop" or completion.tool_calls or not completion.text.strip():
            return completion
        try:
            text = inwords.read(completion.text, wanted, request, f"{self.name!r} ({request.purpose})")
        except MalformedResponse as error:
            mark(error, usage=completion.usage, estimated=is_estimated(completion))
            raise
        return completion.model_copy(update={"text": text})

    async def _read(self, response: Any, tell: Callable[[str], None]) -> bytes:
        try:
            if "event-stream" not in response.headers.get("content-type", ""):
                whole: bytes = await response.aread()  # it does not stream, and answers in one piece
                return whole
            return await self._wire.body_of(response.aiter_bytes(), tell, self._sent_name)
        finally:
            await response.aclose()

    def _secret(self) -> SecretStr:
        held = self._key if self._key is not None else SecretStr(os.environ.get("OPENAI_API_KEY", ""))
        key = SecretStr(held.get_secret_value().strip())
        if self._key is None and not self._official and not key:
            return SecretStr("none")  # servers of one's own ask for no key, but the SDK insists on sending one
        if not key:
            raise mark(
                AuthenticationFailed(
                    f"no API key for {self.name!r}: set OPENAI_API_KEY or give api_key=..., or name a server that "
                    "needs none with base_url='http://localhost:11434/v1'; nothing was sent"
                ),
                sent=False,
            )
        if not (key.get_secret_value().isascii() and key.get_secret_value().isprintable()):
            raise mark(
                AuthenticationFailed(
                    f"the API key for {self.name!r} holds characters that no key has, e.g. a line break; "
                    "nothing was sent"
                ),
                sent=False,
            )
        return key

    def _translated(self, error: Exception, key: SecretStr) -> ModelError | None:
        import httpx2  # loaded by openai already, which is loaded when a call has failed
        import openai

        where = without_password(self.base_url)
        own = _cause(error, RequestRefused | MalformedResponse)  # of a hook of ours, and wrapped up by some SDKs
        if own is not None:
            said = _redacted(str(own), key)
            refused = isinstance(own, RequestRefused)
            return mark(RequestRefused(said), sent=False) if refused else MalformedResponse(said)
        if isinstance(error, openai.APIStatusError):
            text = _redacted(error.response.content.decode("utf-8", "replace"), key)
            _tell(error.response.headers)
            failed = statuses.error_of(error.status_code, text, error.response.headers, self._sent_name, where)
            if error.status_code == 404 and self.api != "chat":
                failed.add_note(f"it was asked for {where}{self._wire.path}; what lacks that is asked with api='chat'")
            return failed
        lost = _aiohttp_error(error)
        if lost is None and isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
            late = DeadlineExceeded(f"{where} sent nothing for {self.timeout:g} s, asked for {self._sent_name!r}")
            unsent = _cause(error, httpx2.ConnectTimeout | httpx2.PoolTimeout) is not None
            return mark(late, sent=False) if unsent else late
        if isinstance(error, openai.OpenAIError | httpx2.HTTPError | OSError):
            cause = lost or error.__cause__ or error
            reason = _redacted(str(cause), key) or type(cause).__name__
            broken = ConnectionFailed(
                f"no answer from {where}: {reason}; is the server running, and is base_url right?"
            )
            unsent = _cause(error, httpx2.ConnectError) is not None if lost is None else _never_connected(lost)
            return mark(broken, sent=False) if unsent else broken
        return None

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        if self.base_url != DEFAULT_BASE_URL:
            shown.append(f"base_url={without_password(self.base_url)!r}")
        if self.api != "chat":
            shown.append(f"api={self.api!r}")
        shown += [f"{name}={getattr(self.defaults, name)!r}" for name in sorted(self.defaults.model_fields_set)]
        return f"OpenAIModel({', '.join(shown)})"


class _Client:
    """The SDK's clients on one loop, made when a request first needs one and anew when the key changes."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.raw: Any = None  # the SDK's class of responses that it has not looked into
        self.events: Any = None  # and of those that it has not read, which it wants to be told and makes nothing of
        self._made: dict[bool, tuple[SecretStr, Any]] = {}

    def connected(self, model: OpenAIModel, key: SecretStr) -> Any:
        # With many in flight aiohttp costs half. It cannot be mocked, so while real requests are refused it is
        # used for this machine only.
        wide = self.in_flight >= WIDE and has_aiohttp()
        if wide and os.environ.get(REFUSE_REQUESTS) and not is_loopback(model.host):
            wide = False
        made = self._made.get(wide)
        if made is None or made[0] != key:
            with loading():
                import httpx2  # heavy, see `connect`
                import openai

                self.raw, self.events = httpx2.Response, openai.AsyncStream[Any]
                http = connect(model.host, model.timeout, wide=wide)
                client = openai.AsyncOpenAI(
                    api_key=key.get_secret_value(),
                    base_url=model.base_url,
                    max_retries=0,
                    timeout=http.timeout,
                    http_client=http,
                )
            made = self._made[wide] = (key, client)
        return made[1]

    async def close(self) -> None:
        made, self._made = self._made, {}
        for _, client in made.values():
            await client.close()


def checked_host(base_url: str) -> str:
    """The host of an endpoint's address.

    Raises:
        ValueError: it is no address, or one with a query or fragment. No path could be put behind that, and a key in
            it would be written down wherever the address is.

    Example:
        >>> checked_host("http://localhost:11434/v1")
        'localhost'
    """
    address, *rest = re.split("[?#]", base_url, maxsplit=1)
    shown, *_ = re.split("[?#]", without_password(base_url), maxsplit=1)  # in that order: a password may hold them
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # looks whether it is a number
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"base_url = {shown!r} is no address such as http://localhost:11434/v1")
    if rest:
        raise ValueError(
            f"base_url = {shown!r} with something behind '?' or '#': leave that out; a key is "
            "given by OPENAI_API_KEY or api_key=..., and Azure's address that ends in /openai/v1 needs no api-version"
        )
    return parts.hostname or ""


def _wire(api: Api, *, official: bool) -> _Wire:
    if api == "responses":
        return _Wire("/responses", responses.arguments, outputs.completion_of, outputs.body_of)
    chat = partial(wire.arguments, official=official)
    return _Wire("/chat/completions", chat, wire.completion_of, stream.body_of)


def _is_about_format(error: BadRequest | ServerFailed) -> bool:
    said = str(error).lower()
    if error.status == 500:  # what llama-cpp-python's server answers to a request that does not fit its types
        return "response_format" in said and "validation error" in said
    # a schema that is wrong is the caller's to mend; asking in words instead would hide it
    return error.status in (400, 422) and "invalid schema" not in said and any(sign in said for sign in _REFUSED_FORMAT)


def _ignores_format(completion: Completion) -> bool:
    """Whether an answer that was to be JSON is finished and is none, so that nobody held the model to it."""
    bare = strip_fence(completion.text).strip()
    if completion.finish_reason != "stop" or not bare:
        return False
    try:
        return not isinstance(json_in(bare)[1], dict)
    except (ValueError, RecursionError):
        return True


def _tell(headers: Mapping[str, str]) -> None:
    if (listener := hear.get()) is not None:
        listener(headers)


def _aiohttp_error(error: BaseException) -> BaseException | None:
    """What aiohttp said of a connection that failed or broke: the SDK calls all of these a timeout of connecting."""
    aiohttp = sys.modules.get("aiohttp")  # not imported here: without it, nothing of its kind can have been raised
    lost = None if aiohttp is None else _cause(error, aiohttp.ClientConnectionError)
    return None if isinstance(lost, TimeoutError) else lost


def _never_connected(lost: BaseException) -> bool:
    return isinstance(lost, sys.modules["aiohttp"].ClientConnectorError)


def _cause(error: BaseException | None, kind: Any) -> BaseException | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def _redacted(said: str, key: SecretStr) -> str:
    """What an error says, as UTF-8 can hold it, without the key; answers are left as they are, they are data."""
    secret = key.get_secret_value()
    said = said.encode("utf-8", "replace").decode()
    return said.replace(secret, "[API key]") if is_secret(secret) else said


def _close_all(clients: PerLoop[_Client]) -> None:
    for loop, client in clients.items():
        if loop.is_running():
            with contextlib.suppress(RuntimeError):  # it stopped meanwhile, and its connections with it
                asyncio.run_coroutine_threadsafe(client.close(), loop)
