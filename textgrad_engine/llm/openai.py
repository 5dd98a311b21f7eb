"""The adapter to every endpoint that speaks OpenAI's chat completions, or its Responses API."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from textgrad_engine.checks import above, at_least, check
from textgrad_engine.errors import (
    AnswerError,
    AuthenticationFailed,
    BadRequest,
    ModelError,
    ServerFailed,
)
from textgrad_engine.keys import HIDDEN
from textgrad_engine.llm import dialects, failures, inwords, responses, wire
from textgrad_engine.llm.address import DEFAULT_BASE_URL, checked_host
from textgrad_engine.llm.apis import WIRES, Api
from textgrad_engine.llm.charged import is_estimated, mark
from textgrad_engine.llm.clients import Clients
from textgrad_engine.llm.context import checked_context
from textgrad_engine.llm.dialects import Dialect
from textgrad_engine.llm.formed import ignores_format, is_wrapped, read_in_words, without_wrapping
from textgrad_engine.llm.headers import Headers, check_headers, concealed_headers, plain, secrets_in
from textgrad_engine.llm.listening import Teller, listeners
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.model import Closing
from textgrad_engine.llm.rates import tell
from textgrad_engine.llm.redact import conceal_frames, concealed, is_secret, without_password, without_secret
from textgrad_engine.llm.request import GenerateConfig, Request, config_from, unsendable
from textgrad_engine.llm.response import Completion, Price
from textgrad_engine.llm.silent_truncation import was_cut
from textgrad_engine.llm.stream import are_events, in_one_part, without_end
from textgrad_engine.llm.transport import REFUSE_REQUESTS
from textgrad_engine.llm.vocabulary import settled
from textgrad_engine.llm.wire_tool_calls import tell_of_unread
from textgrad_engine.signed import unsigned

_JSON = {"Content-Type": "application/json"}

_log = logging.getLogger("textgrad_engine.llm.openai")


class OpenAIModel(Closing):
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
        price: what it costs; without it, what `set_price` or genai-prices says.
        headers: sent with each request to this endpoint, for gateways that want some, such as
            ``{"x-portkey-provider": "openai", "x-portkey-api-key": SecretStr(...)}``. What is a `SecretStr`, or a
            secret by its name or form, is shown and written down nowhere; the others tell answers in a cache apart.
        **config: sampling settings for requests that do not set them (the fields of `GenerateConfig`).

    Raises:
        TypeError: a setting that does not exist, there or with this `api`; `extra={...}` passes on what only one
            endpoint knows, and holds something else. Or `headers` are no mapping.
        ValueError: `base_url` is no address, or one with a query; a header that cannot be sent.

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
        price: Price | None = None,
        headers: Headers | None = None,
        **config: Any,
    ) -> None:
        # first of all: debuggers and `pytest -l` show the locals of a frame that raised
        api_key, headers = concealed(api_key), concealed_headers(headers)
        check_headers(headers)
        self.defaults = config_from(config, OpenAIModel.__init__)
        check(OpenAIModel.__init__, locals(), at_least(1, "max_in_flight"), above(0, "timeout"))
        # a file or a secret that it comes from may end in a line break
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).strip().rstrip("/")
        self.host = checked_host(self.base_url)
        self.name = name
        self.max_in_flight = max_in_flight
        self.timeout = timeout
        self.context = None if context is None else checked_context(context)
        self.price = price
        self.headers = headers
        self._secrets = secrets_in(headers)
        self.api = api
        self._wire = WIRES[api]
        if problem := unsendable(self.defaults.extra, self._wire.instead):
            raise TypeError(problem)
        if api == "responses":
            for setting in responses.UNSUPPORTED:
                if getattr(self.defaults, setting) is not None:
                    raise TypeError(responses.unsupported(setting))
        self._official = self.host == "api.openai.com" or self.host.endswith(".api.openai.com")  # that of a region
        self._dialect = (  # what is known of how this endpoint is asked
            Dialect(name=name.removeprefix("openai/"), most="max_completion_tokens")
            if self._official
            else Dialect(name=name)
        )
        self._cut = False  # whether it was seen to read less than it was sent
        self._unread = False  # whether it was seen to leave calls of tools in the text
        self._key = api_key
        self._clients: PerLoop[Clients] = PerLoop(Clients)
        weakref.finalize(self, _close_all, self._clients).atexit = False

    @property
    def cache_key(self) -> str | None:
        """What tells its answers from those by the endpoint's other API, or with other headers; None for the usual."""
        said = [] if self.api == "chat" else [f"api={self.api}"]
        if shown := {name.lower(): value for name, value in plain(self.headers).items()}:
            said.append(f"headers={json.dumps(shown, sort_keys=True)}")
        return "; ".join(said) or None

    async def complete(self, request: Request) -> Completion:
        """Send one request, and another one only when the endpoint turns out to want it said otherwise (`dialects`).

        Raises:
            ModelError: whatever went wrong, as one of its subclasses; never an exception of the SDK.
        """
        config = request.config.over(self.defaults)
        known = asked = self._dialect
        wanted = config.response_format
        if known.form == "in words too" and wanted is not None and (inwords.is_by_tags(wanted) or wanted.is_wrapped):
            asked = replace(known, form="in words")  # the words and a format that wants other JSON would contradict
        began, whole = asked, None  # the refusal of a name, before a part of it was tried
        while True:
            sent = self._wire.arguments(request, config, asked, asked.stream or bool(listeners()))
            try:
                completion = await self._send(request, config, asked, sent)
            except (BadRequest, ServerFailed, AuthenticationFailed) as error:
                other = dialects.after(error, asked, config, sent)
                if other is None:
                    if whole is not None and error.status in (whole.status, 404):
                        whole.add_note(f"nor is there a model {asked.name!r}")
                        raise whole from None
                    raise
                whole = error if other.name != asked.name else whole
                asked = other
                continue
            except AnswerError:  # an answer all the same, if a bad one
                self._learn(began, asked)
                raise
            if asked.form == "asked" and wanted is not None and ignores_format(completion):
                asked = replace(asked, form="in words too")
            self._learn(began, asked)
            return completion

    def _learn(self, began: Dialect, asked: Dialect) -> None:
        """Ask so from now on; only what one call found out, as those that run beside it find out other things."""
        if asked != began:
            new = {field: value for field, value in vars(asked).items() if value != getattr(began, field)}
            self._dialect = replace(self._dialect, **new)

    async def aclose(self) -> None:
        """Close the connections made on the running loop; the next call makes new ones."""
        client = self._clients.pop()
        if client is not None:
            await client.close()

    async def _send(self, request: Request, config: GenerateConfig, asked: Dialect, sent: dict[str, Any]) -> Completion:
        key = self._secret()
        streamed, name = bool(sent.get("stream")), asked.name
        content = wire.encoded(sent, request)
        clients = self._clients.get()
        client = clients.connected(self.host, self.base_url, self.timeout, key, self.headers)
        started = time.perf_counter()
        failure: ModelError
        response: Any = None
        body = b""
        clients.in_flight += 1
        teller = Teller(request, wrapped=asked.form == "asked" and is_wrapped(config))
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
                body = await self._read(response, teller.tell, name)
            else:
                body = await self._whole(response.content, teller.tell, name)
            latency = time.perf_counter() - started
            tell(response.headers)
            completion = self._wire.completion_of(body, request, name, latency, None)
            # Not before it is known that there is something to count: mostly the endpoint says what was used.
            if is_estimated(completion):
                if await settled(name):
                    completion = self._wire.completion_of(body, request, name, latency, name)
            elif not self._cut and was_cut(request, completion.usage):
                self._say_cut(request, completion)
            if config.tools and not self._unread and not completion.tool_calls:
                self._unread = tell_of_unread(self.name, completion.text, config.tools)
            if asked.form == "asked":
                return without_wrapping(completion, config)
            return read_in_words(completion, request, config, self.name)
        except ModelError as error:  # of a body that is too long, or no answer
            error.args = tuple([self._redacted(str(said), key) for said in error.args])
            if moved := failures.sent_on(response, self._sent(request, name, key)):
                error.add_note(moved)
            failure = error
        except Exception as error:
            told = failures.translated(error, self._sent(request, name, key))
            if told is None:
                conceal_frames(error)
                teller.take_back()
                raise
            failure = told
        except BaseException as error:  # the call was given up
            conceal_frames(error)
            teller.take_back()
            raise
        finally:
            clients.in_flight -= 1
        teller.take_back()
        body = b""  # it may quote the key, as listings of this frame's locals would show
        raise failure.with_traceback(None)  # the locals of the SDK's frames are not ours to show

    def _say_cut(self, request: Request, completion: Completion) -> None:
        self._cut = True
        _log.warning(
            "%r counted %d tokens of a request (%s) of %d characters, fewer than any text has: without saying so, it "
            "reads only a part, as Ollama does beyond its num_ctx. Give the server a longer context "
            "(OLLAMA_CONTEXT_LENGTH), and state it here with context=...",
            self.name,
            completion.usage.input_tokens,
            request.purpose,
            sum([len(message.text) for message in request.messages]),
        )

    async def _read(self, response: Any, tell: Callable[[str], None], name: str) -> bytes:
        try:
            if "event-stream" not in response.headers.get("content-type", ""):
                # it does not stream, and answers in one piece
                return await self._whole(await response.aread(), tell, name)
            return await self._wire.body_of(response.aiter_bytes(), tell, name)
        finally:
            await response.aclose()

    async def _whole(self, body: bytes, tell: Callable[[str], None], name: str) -> bytes:
        """The body of an answer in one piece; of events, which some send whatever they are asked for, all of them."""
        if not are_events(body):
            return without_end(body)
        whole = await self._wire.body_of(in_one_part(body), tell, name)
        # from now on it is asked for what it does, and so for the usage, too
        self._dialect = replace(self._dialect, stream=True)
        return whole

    def _secret(self) -> SecretStr:
        held = self._key if self._key is not None else SecretStr(os.environ.get("OPENAI_API_KEY", ""))
        key = SecretStr(held.get_secret_value().strip())
        elsewhere = not self._official or any(name.lower() == "authorization" for name in self.headers)
        if self._key is None and elsewhere and not key:
            return SecretStr("none")  # servers of one's own ask for no key, but the SDK insists on sending one
        if not key:
            # Else who sets the key that a test lacks is told only then that it is of no use.
            refused = ", and while tests run nothing would be: use a model of textgrad_engine.testing"
            raise mark(
                AuthenticationFailed(
                    f"no API key for {self.name!r}: set OPENAI_API_KEY, or give llm.resolve(name, api_key=...) in "
                    "place of the name; for a server that needs none, "
                    "llm.resolve(name, base_url='http://localhost:11434/v1'); nothing was sent"
                    + (refused if os.environ.get(REFUSE_REQUESTS) else "")
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

    def _sent(self, request: Request, name: str, key: SecretStr) -> failures.Sent:
        where = without_password(self.base_url)
        return failures.Sent(
            request,
            name,
            where,
            self._wire.path,
            self._wire.lacking,
            self.timeout,
            lambda said: self._redacted(said, key),
        )

    def _redacted(self, said: str, key: SecretStr) -> str:
        """What an error says, as UTF-8 can hold it, without secrets; answers are left as they are, they are data."""
        said = said.encode("utf-8", "replace").decode()
        for held, instead in ((key, "[API key]"), *((each, HIDDEN) for each in self._secrets)):
            if is_secret(secret := held.get_secret_value()):
                said = without_secret(said, secret, instead)
        return unsigned(said)  # of an image that cannot be had, some endpoints repeat the address

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        if self.base_url != DEFAULT_BASE_URL:
            shown.append(f"base_url={without_password(self.base_url)!r}")
        if self.headers:
            shown.append(f"headers={self.headers!r}")
        if self.api != "chat":
            shown.append(f"api={self.api!r}")
        shown += [f"{name}={getattr(self.defaults, name)!r}" for name in sorted(self.defaults.model_fields_set)]
        return f"OpenAIModel({', '.join(shown)})"


def _close_all(clients: PerLoop[Clients]) -> None:
    for loop, client in clients.items():
        if loop.is_running():
            with contextlib.suppress(RuntimeError):  # it stopped meanwhile, and its connections with it
                asyncio.run_coroutine_threadsafe(client.close(), loop)
