"""An app of one's own as a model: whatever it asks, and however, its prompts are trained like any others."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from textgrad_engine import dispatch
from textgrad_engine.callables import in_words, name_of, signature_of
from textgrad_engine.checks import check
from textgrad_engine.errors import ConnectionFailed, ModelError, ReturnError
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Price
from textgrad_engine.wording import told

Said: TypeAlias = str | Completion
"""What an app answers: a text, or one with what it used."""


class CallableModel:
    """A model that is a function of yours: an app behind another library, another provider's SDK, a chain of calls.

    The function is given the messages of a call as OpenAI's API has them, and returns the answer. Pass the app's prompt
    as system message and its input as user message. Then the app is one call: its prompt is trained, its answers are
    recorded, replayed on `resume`, cached, counted and timed, and all examples run concurrently. It counts as one call,
    however many it makes itself. It gets nothing else: sampling settings do not reach it, and a call with tools is
    refused.

    Args:
        fn: called with a list of dicts, each with ``"role"`` and ``"content"``; returns a text, or a `Completion` that
            says what it used, too. It may be `async`; otherwise each call runs in a thread of its own.
        name: the model's name in reports and settings; by default that of the function (for a partial, of its function;
            for a callable object, of its class).
        retry: the exceptions to retry, such as an SDK's rate limit or lost connection. If retries do not help, the
            example has no answer. Any other error ends the run, which can be resumed.
        price: what its tokens cost, if its answers say how many they used. None if unknown: then a limit in dollars is
            refused.
        cache_key: a text that changes whenever its answers could, so that a cache may keep them; None for none.

    Raises:
        TypeError: `fn` is no function of the messages alone, or `retry` is no kind of error; or (where an answer is
            read) the call has tools.
        ReturnError: (where an answer is read) it is neither a text nor a `Completion`.

    Example:
        >>> from textgrad_engine import nn
        >>> def app(messages):
        ...     prompt, question = (message["content"] for message in messages)
        ...     return f"{prompt} {question}"  # here it asks whom it likes
        >>> prompt = nn.Parameter("Answer in one word.", role="system prompt of the app")
        >>> program = nn.ChatCompletion("{question}", system=prompt, model=CallableModel(app))
        >>> str(program(question="Why?"))
        'Answer in one word. Why?'
    """

    def __init__(
        self,
        fn: Callable[[list[dict[str, Any]]], Said | Awaitable[Said]],
        name: str = "",
        *,
        retry: type[Exception] | tuple[type[Exception], ...] = (),
        price: Price | None = None,
        cache_key: str | None = None,
    ) -> None:
        check(CallableModel.__init__, {"fn": fn, "name": name, "price": price, "cache_key": cache_key})
        kinds = retry if isinstance(retry, tuple) else (retry,)
        if wrong := [kind for kind in kinds if not (isinstance(kind, type) and issubclass(kind, Exception))]:
            raise TypeError(
                f"CallableModel: retry names kinds of errors, such as TimeoutError or (TimeoutError, OSError); got "
                f"{told(wrong[0])}"
            )
        _check_takes_messages(fn)
        self.name = name or name_of(fn)
        self.price = price
        self.cache_key = cache_key
        self._fn, self._retry = fn, kinds

    async def complete(self, request: Request) -> Completion:
        """What the function says to the messages.

        Raises:
            ConnectionFailed: it raised one of the errors that another attempt may help against.
            ReturnError: it gave neither a text nor a `Completion`.
            TypeError: the call has tools, of which it would not hear.
        """
        if request.config.tools:
            raise TypeError(
                f"CallableModel: {self.name} is given messages alone, and the call has tools, of which it would not "
                "hear; have the function call them itself"
            )
        messages = [message.model_dump(include={"role", "content"}) for message in request.messages]
        started = time.perf_counter()
        try:
            if inspect.iscoroutinefunction(self._fn):
                answer: object = await self._fn(messages)
            else:
                answer = await dispatch.aside(lambda: self._fn(messages))
                answer = await answer if inspect.isawaitable(answer) else answer
        except self._retry as error:
            if isinstance(error, ModelError) and not any(issubclass(kind, ModelError) for kind in self._retry):
                raise  # of a model of ours, which has tried again by itself, and a budget has not more room
            raise ConnectionFailed(f"{self.name} raised {type(error).__name__}: {error}") from error
        took = time.perf_counter() - started
        if isinstance(answer, Completion):
            return answer if answer.latency else answer.model_copy(update={"latency": took})
        if not isinstance(answer, str):
            raise ReturnError(
                f"CallableModel: {self.name} gave {told(answer)}; an answer is a text or an llm.Completion"
            )
        return Completion(text=answer, latency=took)

    @property
    def when_it_raises(self) -> str:
        """What is said with an error of the app that is none of `retry`."""
        return (
            f"raised in {self.name}; if another attempt may help, name the kind of error in "
            "llm.CallableModel(..., retry=TimeoutError): it is then tried again, and costs at most one answer"
        )

    def __repr__(self) -> str:
        return f"CallableModel({self.name})"


def _check_takes_messages(fn: Callable[..., Any]) -> None:
    """Refuse what cannot be called with messages alone, before a run begins.

    Raises:
        TypeError: it takes something else.
    """
    try:
        signature = signature_of(fn)
    except (TypeError, ValueError):  # a callable that does not say how it is called
        return
    try:
        signature.bind([])
    except TypeError as error:
        raise TypeError(
            f"CallableModel: {told(fn)} is called with a list of messages, and takes {in_words(signature)}: {error}; "
            "give a function of (messages), such as a functools.partial that settles the others by name"
            + (", or an object of the class" if isinstance(fn, type) else "")
        ) from None
