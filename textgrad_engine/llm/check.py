"""Is it an answer? What is truncated, empty, withheld or not the JSON that was asked for becomes an error."""

from __future__ import annotations

import math
from inspect import isawaitable
from types import CoroutineType

from textgrad_engine.checks import at_least, check
from textgrad_engine.dispatch.endings import MET
from textgrad_engine.errors import (
    AnswerError,
    ContentFiltered,
    EmptyResponse,
    MalformedResponse,
    ReturnError,
    TextgradError,
    TruncatedResponse,
    UnsendableRequest,
)
from textgrad_engine.llm.charged import is_estimated, mark
from textgrad_engine.llm.content import thoughts_in
from textgrad_engine.llm.ended import unless_ended
from textgrad_engine.llm.listening import void
from textgrad_engine.llm.model import Model, Wrapper, defaults_of
from textgrad_engine.llm.parsing import BEGINS_THINKING, THOUGHT_END, check_json, without_thoughts
from textgrad_engine.llm.redact import redacted, secrets_of
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Usage, impossible_in
from textgrad_engine.llm.usage import asks_others
from textgrad_engine.llm.wire_tool_calls import problem_of
from textgrad_engine.wording import with_article

MAX_TEXT = 5_000_000
"""Characters of text that a request or an answer may have; more than any model reads (a million tokens are about four
million)."""


class Check(Wrapper):
    """Lets only requests that can be sent through, and only finished answers back.

    When the request asks for structured output, the text that comes out is bare JSON that fits the schema: thoughts
    before it, and a Markdown fence around it, are taken off. Thoughts before a plain text are taken off, too (see
    `without_thoughts`). The errors carry what the answer used (see `usage_of`), for it was paid for.

    Args:
        inner: the model that is wrapped.
        max_text: characters of text that a request or an answer may have.
    """

    def __init__(self, inner: Model, max_text: int = MAX_TEXT) -> None:
        super().__init__(inner)
        check(Check.__init__, locals(), at_least(1, "max_text"))
        self.max_text = max_text
        self._who: dict[str, str] = {}  # by purpose who answers, in words for errors
        self._defaults = defaults_of(inner)
        self._is_own = not hasattr(self._core, "base_url")  # no endpoint, which catches nothing

    async def complete(self, request: Request) -> Completion:
        """Ask, and look at the answer.

        Raises:
            UnsendableRequest: the request is longer than `max_text`, or holds what is no text; it was not sent.
            TruncatedResponse: it stopped at its length limit.
            ContentFiltered: it was withheld.
            EmptyResponse: it has neither text nor a tool call, or thoughts alone.
            MalformedResponse: it is not JSON that fits the schema, holds what is no text, or is longer than `max_text`.
            ReturnError: the model gives no completion, does not give it as a coroutine, calls tools in some other
                shape, or states a usage below 0.
        """
        self._check_request(request)
        asked = self.inner.complete(request)
        if type(asked) is not CoroutineType and not isawaitable(asked):
            raise ReturnError(
                f"{_of_class(self._core)}.complete() gave {asked!r:.80} at once; write `async def complete(self, "
                "request)`, and await in it what takes time: it runs on the event loop, together with other calls"
            )
        try:
            completion = await (unless_ended(asked) if self._is_own and MET.get() else asked)
        except TextgradError:
            raise
        except Exception as error:  # a bug, or a failure of the network in the words of somebody's client
            usual = (
                f"raised in {_of_class(self._core)}.complete(); for a failure of the endpoint, raise a `ModelError`, "
                "such as errors.ConnectionFailed or errors.RateLimited: it is tried again, and costs at most one answer"
            )
            error.add_note(getattr(self._core, "when_it_raises", usual))
            if request.purpose != "forward":
                error.add_note(
                    f"it was asked for {request.purpose!r}, as the 'forward' model is unless you name another one: "
                    f"use_models({request.purpose}=...), or {request.purpose} in a config's [models]"
                )
            raise
        if not isinstance(completion, Completion):
            raise ReturnError(
                f"{_of_class(self._core)}.complete() gave {completion!r:.80}; give llm.Completion(text=...), with "
                "usage where it is known"
            )
        used = completion.usage
        least = min(used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens, used.calls)
        if not (least >= 0 <= (used.dollars or 0.0) < math.inf) and (wrong := impossible_in(used)):
            raise ReturnError(
                f"{_of_class(self._core)}.complete() gave a usage with {wrong[0]} = {wrong[1]}; give what it used, "
                "from 0, and leave out what is not known"
            )
        is_counted = completion.usage.calls > 0 or completion.cached or asks_others()
        if not is_counted:  # its tokens were stated, and not that it is an answer
            completion = completion.model_copy(update={"usage": completion.usage + Usage(calls=1)})
        try:
            return self._checked(request, completion)
        except AnswerError as error:
            error.args = (redacted(str(error), secrets_of(self.inner)),)  # it may quote the answer
            mark(error, usage=completion.usage, estimated=is_estimated(completion))
            if completion.text:
                void(request)
            raise

    def _check_request(self, request: Request) -> None:
        length, plain = 0, True
        for message in request.messages:
            text = message.content if type(message.content) is str else message.text
            length += len(text)
            plain = plain and text.isascii()
        if length > self.max_text:
            error = UnsendableRequest(
                f"a request ({request.purpose}) to {self.name!r} has {length:,} characters of text, and the limit is "
                f"{self.max_text:,}; send less of it"
            )
            raise mark(error, sent=False)
        if not plain and (where := surrogate_in(request)) is not None:
            error = UnsendableRequest(no_text_at(where))
            raise mark(error, sent=False)

    def _check_calls(self, completion: Completion) -> None:
        for call in completion.tool_calls:
            if "name" in call and "function" not in call and self._is_own:
                raise ReturnError(
                    f"{_of_class(self._core)}.complete() gave the tool call {call!r:.80}; a call has OpenAI's shape, "
                    "{'id': 'call_1', 'type': 'function', 'function': {'name': ..., 'arguments': '{...}'}}, with JSON "
                    "as arguments"
                )

    def _answer_to(self, request: Request) -> str:
        return f"the answer of {self.name!r} to {with_article(request.purpose)} call"

    def _checked(self, request: Request, completion: Completion) -> Completion:
        wanted = request.config.response_format or self._defaults.response_format
        if completion.finish_reason == "length":
            limit = request.config.max_tokens or self._defaults.max_tokens
            raise TruncatedResponse(
                f"{self._answer_to(request)} was cut off at its length limit"
                f"{f' (max_tokens={limit})' if limit else ''} after {completion.usage.output_tokens} tokens; "
                "allow more max_tokens, or ask for less"
            )
        if completion.finish_reason == "content_filter":
            raise ContentFiltered(f"the endpoint withheld {self._answer_to(request)}")
        if completion.tool_calls:
            self._check_calls(completion)
            if problem := problem_of(completion.tool_calls, completion.items):
                raise MalformedResponse(f"{self._answer_to(request)} cannot be used: {problem}")
            self._reject_surrogates(f"{completion.text}{completion.calls_as_text()}")
            return completion
        if not completion.text.strip():
            field, _ = thoughts_in(completion.raw or {})
            why = (
                f", but with thoughts (in {field!r}): a server that takes answers for thoughts has a reasoning parser "
                "that does not fit its model, or the model was told not to think"
            )
            raise EmptyResponse(
                f"{self.name!r} answered {with_article(request.purpose)} call with no text and no tool call"
                f"{why if field else ''}"
            )
        if len(completion.text) > self.max_text:
            raise MalformedResponse(
                f"{self._answer_to(request)} has {len(completion.text):,} characters, and the limit is "
                f"{self.max_text:,}"
            )
        if not completion.text.isascii():
            self._reject_surrogates(completion.text)
        if wanted is None:
            said = completion.text
            if THOUGHT_END not in said and BEGINS_THINKING.match(said) is None:  # of nearly every answer
                return completion
            without = without_thoughts(completion, request)
            if not without.text:
                raise EmptyResponse(
                    f"{self.name!r} answered {with_article(request.purpose)} call with thoughts and nothing behind them"
                )
            return without
        who = self._who.get(request.purpose)
        if who is None:
            who = self._who[request.purpose] = f"{self.name!r} ({request.purpose})"
        try:
            bare = check_json(completion.text, wanted, who, asked=request)
        except MalformedResponse as error:
            if not hasattr(self._core, "base_url"):  # no adapter, which tells its endpoint of the form
                error.add_note(
                    f"{_of_class(self._core)}.complete() finds the form in request.config.response_format.json_schema; "
                    "have your model keep to it, or tell it in the request"
                )
            raise
        return completion if bare == completion.text else completion.model_copy(update={"text": bare})

    def _reject_surrogates(self, text: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MalformedResponse(
                f"the answer of {self.name!r} holds a lone surrogate at character {error.start}, which is no text"
            ) from None


def surrogate_in(request: Request) -> str | None:
    """Where the text of a request holds a lone surrogate, which UTF-8 cannot express; None when it does nowhere."""
    for number, message in enumerate(request.messages, 1):
        text = message.text
        if text.isascii():
            continue
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"message {number} ({message.role}), character {error.start + 1},"
    return None


def no_text_at(where: str) -> str:
    """What is said about a request that holds a lone surrogate there (see `surrogate_in`)."""
    return f"{where} holds a lone surrogate, which is no text and cannot be sent"


def _of_class(model: Model) -> str:
    return f"the model {model.name!r}: {type(model).__name__}"
