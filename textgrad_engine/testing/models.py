"""Models for tests: real `llm.Model`s that answer from a script or a function, as an endpoint would."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from operator import length_hint
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from textgrad_engine.checks import at_least, check, in_order
from textgrad_engine.errors import MalformedResponse, ScriptError
from textgrad_engine.llm.parsing import check_json
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.tokens import count, count_request

Answer = str | Mapping[str, Any] | BaseModel | Completion
"""What a model of a test may answer: a text, an object that is sent as JSON, or a whole completion."""


class ScriptedModel:
    """Answers each request with the next of its answers.

    It costs nothing, counts tokens, and obeys structured output: where a request wants JSON, a scripted answer that
    does not fit its schema is a mistake in the test and says so. A `Completion` is handed on exactly as it is, so that
    bad answers can be scripted too: as many as `llm.RetryPolicy.answer_attempts` says, 3 where it says nothing.

    Args:
        answers: a text; a dict or an object of pydantic, which becomes JSON; an exception, which is raised; or a
            `Completion`.
        name: what the model is called.

    Attributes:
        requests: every request so far, in the order in which they came.

    Example:
        >>> from textgrad_engine.llm import Message, Request
        >>> model = ScriptedModel(["billing"])
        >>> asyncio.run(model.complete(Request(messages=(Message(role="user", content="My bill?"),)))).text
        'billing'
    """

    free = True

    def __init__(self, answers: Iterable[Answer | BaseException], name: str = "scripted") -> None:
        self.name = name  # before the check: a test that fails there shows the model
        self._answers: list[Answer | BaseException] = []
        check(ScriptedModel.__init__, locals())
        given: object = answers
        if isinstance(given, itertools.cycle | itertools.count | itertools.repeat) and length_hint(given, -1) < 0:
            raise TypeError(
                "ScriptedModel: answers never end; FunctionModel(lambda request: next(answers)) takes one for each "
                "request"
            )
        self.requests: list[Request] = []
        self._answers = list(in_order(answers, "ScriptedModel: "))

    @property
    def left(self) -> int:
        """How many answers have not been given yet."""
        return max(0, len(self._answers) - len(self.requests))

    async def complete(self, request: Request) -> Completion:
        """The next answer.

        Raises:
            ScriptError: there is none left, or it does not fit what the request asks for.
        """
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._answers):
            last = request.messages[-1].text if request.messages else ""
            raise ScriptError(
                f"ScriptedModel {self.name!r} has {len(self._answers)} answers and this is request {number} "
                f"(purpose {request.purpose!r}, last message {last[:200]!r}); script one more answer, or find out why "
                "it was asked"
            )
        answer = self._answers[number - 1]
        if isinstance(answer, BaseException):
            raise answer
        return _completion(answer, request, self.name, f"answer {number} of ScriptedModel {self.name!r}")

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._answers)} answers, name={self.name!r})"


class FunctionModel:
    """Answers each request with what a function returns for it.

    Args:
        fn: gets the request, returns a text, a dict or an object of pydantic (becomes JSON), or a `Completion`; may be
            ``async def``.
        name: what the model is called.
        latency: seconds that every answer takes.

    Attributes:
        requests: every request so far, in the order in which they came.
        in_flight: how many it is answering now.
        peak: how many it was answering at once at most.

    Example:
        >>> from textgrad_engine.llm import Message, Request
        >>> model = FunctionModel(lambda request: request.messages[-1].text.upper())
        >>> asyncio.run(model.complete(Request(messages=(Message(role="user", content="hello"),)))).text
        'HELLO'
    """

    free = True

    def __init__(
        self, fn: Callable[[Request], Answer | Awaitable[Answer]], name: str = "function", latency: float = 0.0
    ) -> None:
        check(FunctionModel.__init__, locals(), at_least(0, "latency"))
        self.name = name
        self.latency = latency
        self.requests: list[Request] = []
        self.in_flight = 0
        self.peak = 0
        self._fn = fn

    async def complete(self, request: Request) -> Completion:
        """What the function says.

        Raises:
            ScriptError: the function's answer does not fit what the request asks for.
        """
        self.requests.append(request)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        started = time.perf_counter()
        try:
            if self.latency:
                await asyncio.sleep(self.latency)
            answer = self._fn(request)
            if inspect.isawaitable(answer):
                answer = await answer
        finally:
            self.in_flight -= 1
        completion = _completion(answer, request, self.name, f"the answer of FunctionModel {self.name!r}")
        if isinstance(answer, Completion):
            return completion
        return completion.model_copy(update={"latency": time.perf_counter() - started})

    def __repr__(self) -> str:
        return f"FunctionModel({getattr(self._fn, '__name__', self._fn)}, name={self.name!r})"


def _completion(answer: Answer, request: Request, name: str, what: str) -> Completion:
    if isinstance(answer, Completion):
        return answer
    if isinstance(answer, Mapping | BaseModel):
        text = json.dumps(answer, ensure_ascii=False, default=_as_it_is_read)
    elif isinstance(answer, str):
        text = answer
    else:
        raise ScriptError(
            f"{what} must be a str, a dict, an object of pydantic or a Completion, got {type(answer).__name__}"
        )
    wanted = request.config.response_format
    if wanted is not None:
        try:
            check_json(text, wanted.without_model(), what)  # no endpoint holds a model to a validator
        except MalformedResponse as error:
            raise ScriptError(
                f"{error}. An endpoint with structured output would not have said this; to test what does not fit, "
                "answer with a Completion"
            ) from None
    usage = Usage(input_tokens=count_request(request), output_tokens=count(text), calls=1)
    return Completion(text=text, usage=usage, model=name)


def _as_it_is_read(value: Any) -> Any:
    """What JSON has no form for, by the fields alone that its class reads: not those that it computes."""
    return to_jsonable_python(value, round_trip=True)


def feedback_for(request: Request, said: str) -> dict[str, dict[str, str]]:
    """The answer of a critic that says the same of each text it is asked about, in each case.

    Args:
        request: one for feedback.
        said: the feedback; with "" there is nothing wrong.

    Raises:
        ValueError: it is a request for something else.

    Example:
        >>> import textgrad_engine as tg
        >>> def answer(request):
        ...     return feedback_for(request, "Be brief.") if request.purpose == "backward" else "a long story"
        >>> prompt = tg.nn.Parameter("Tell it.", role="system prompt")
        >>> with tg.use_models(forward=FunctionModel(answer)):
        ...     tg.ops.chat_completion(None, [{"role": "user", "content": [prompt]}]).backward("It is long.")
        >>> [item.data for item in prompt.grad]
        ['Be brief.']
    """
    check(feedback_for, locals())
    form = request.config.response_format
    cases = {} if form is None else form.json_schema.get("properties", {})
    if not all("properties" in fields for fields in cases.values()) or not cases:
        raise ValueError(
            f"feedback_for: this request, of the purpose {request.purpose!r}, names no case to give feedback on; call "
            'it where request.purpose == "backward" and request.config.response_format is not None'
        )
    return {case: dict.fromkeys(fields["properties"], said) for case, fields in cases.items()}
