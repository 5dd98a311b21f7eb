"""What a model answers: the text, why it ended, what it used, and what that costs."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.frozen import Record
from textgrad_engine.llm.money import cost
from textgrad_engine.llm.request import Message
from textgrad_engine.plain_values import is_number, plain

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]


class Usage(Record):
    """Tokens and money; two add up with ``+``, several with ``sum``.

    Attributes:
        input_tokens: tokens of the request, cached ones included.
        output_tokens: tokens of the answer, reasoning included.
        cached_tokens: those input tokens that the endpoint read from its own cache.
        reasoning_tokens: those output tokens that were reasoning.
        calls: how many answers this stands for; what a model says that it used for one stands for one.
        dollars: what it cost, in US dollars; None when the price is not known (never a silent zero).

    Example:
        >>> total = Usage(12, 1, calls=1, dollars=0.5) + Usage(20, 3, calls=1, dollars=0.25)
        >>> total.input_tokens, total.calls, total.dollars
        (32, 2, 0.75)
        >>> print(total)
        2 calls, 36 tokens, $0.75
        >>> print(Usage(output_tokens=1, calls=1))
        1 call, 1 token, $0.00
    """

    model_config = ConfigDict(extra="ignore")  # of those that newer versions have recorded

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    dollars: float | None = 0.0

    if TYPE_CHECKING:

        def __init__(
            self,
            input_tokens: int = 0,
            output_tokens: int = 0,
            cached_tokens: int = 0,
            reasoning_tokens: int = 0,
            calls: int = 0,
            dollars: float | None = 0.0,
        ) -> None: ...

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __str__(self) -> str:
        calls, tokens = ("" if number == 1 else "s" for number in (self.calls, self.total_tokens))
        return f"{self.calls:,} call{calls}, {self.total_tokens:,} token{tokens}, {cost(self.dollars)}"

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            calls=self.calls + other.calls,
            dollars=None if self.dollars is None or other.dollars is None else self.dollars + other.dollars,
        )

    def __radd__(self, other: int) -> Usage:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # what `sum` begins with


MOST_PRICE = 1_000_000
"""Dollars per million tokens above which a price is a slip, as no token costs a dollar."""


@attributes_told
@dataclass(frozen=True)
class Price:
    """What a model costs, in US dollars per million tokens, as providers list it.

    Args:
        input: input tokens.
        output: output tokens, reasoning included.
        cached: input tokens that the endpoint had cached; None where they cost what other input does.

    Raises:
        ValueError: one of them is negative, no number, or more than a dollar a token.

    Example:
        >>> Price(input=0.4, cached=0.1, output=1.6).of(Usage(input_tokens=1_000_000, cached_tokens=500_000))
        0.25
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            if not is_number(value) or not 0 <= value <= MOST_PRICE:
                raise ValueError(
                    f"a price is US dollars per million tokens, from 0 to {MOST_PRICE:,}, got {name} = {value!r}"
                )
            object.__setattr__(self, name, plain(value))

    def of(self, usage: Usage) -> float:
        """What so many tokens cost, in US dollars."""
        fresh, cached = usage.input_tokens - usage.cached_tokens, self.input if self.cached is None else self.cached
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


class Completion(Record):
    """One finished answer.

    Attributes:
        text: what the model said ("" when it only called tools).
        finish_reason: why it ended; wrappers turn everything but ``"stop"`` and ``"tool_calls"`` into an error.
        usage: what this one answer used.
        model: the name of the model that answered, as the endpoint gives it.
        tool_calls: the tool calls, as dicts in OpenAI's shape.
        items: the items of an answer by the Responses API as they came, when reasoning is among them that can be sent
            back, so that the model goes on from it after its tool calls; they are opaque. Of an answer by chat
            completions with tool calls, one item with the thoughts that some endpoints want back.
        latency: seconds from sending the request that succeeded to its answer; 0 where the model does not say.
        attempts: how many requests were sent for it (1 when the first succeeded, 0 when it came from the cache).
        raw: fields of the endpoint's body that have no place above; under "reasoning", thoughts that stood in the text.
        cached: whether it was paid for before: it came from the cache, or with an equal request that was under way.
            Its `usage` is zero then.
        saved: what a cached answer used when it was paid for.
        saved_latency: seconds that a cached answer took then; None where that was not kept, or it was not cached.
        words: what was added to the last message to ask for the answer's form, where the endpoint has no structured
            output; "" elsewhere.
        unknown: the worst case of those attempts before this answer of which nobody knows whether they were charged,
            such as by a lost connection; budgets count it as spent. None where there were none.

    Example:
        >>> Completion("yes", "stop", Usage(12, 1, calls=1)).usage.output_tokens
        1
    """

    model_config = ConfigDict(extra="ignore")  # of those that newer versions have recorded

    text: str
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage(calls=1)
    model: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    items: tuple[Mapping[str, Any], ...] = ()
    latency: float = 0.0
    attempts: int = 1
    raw: Mapping[str, Any] | None = None
    cached: bool = False
    saved: Usage | None = None
    saved_latency: float | None = None
    words: str = ""
    unknown: Usage | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            text: str,
            finish_reason: FinishReason = "stop",
            usage: Usage = ...,
            model: str = "",
            tool_calls: Sequence[Mapping[str, Any]] = (),
            items: Sequence[Mapping[str, Any]] = (),
            latency: float = 0.0,
            attempts: int = 1,
            raw: Mapping[str, Any] | None = None,
            cached: bool = False,
            saved: Usage | None = None,
            saved_latency: float | None = None,
            words: str = "",
            unknown: Usage | None = None,
        ) -> None: ...

    def calls_as_text(self) -> str:
        """The tool calls as JSON, a list of objects with name and arguments; "" when there are none.

        Example:
            >>> call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Rome"}'}}
            >>> Completion(text="", finish_reason="tool_calls", tool_calls=(call,)).calls_as_text()
            '[{"name": "look_up", "arguments": {"city": "Rome"}}]'
        """
        if not self.tool_calls:
            return ""
        try:
            return json.dumps(list(map(_called, self.tool_calls)), ensure_ascii=False)
        except RecursionError:  # what can be read may be nested too deeply to be written
            return json.dumps([_called(call, as_text=True) for call in self.tool_calls], ensure_ascii=False)

    def as_message(self) -> Message:
        """The answer as a message of the conversation, for a request that goes on from it.

        Example:
            >>> call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
            >>> said = Completion(text="", finish_reason="tool_calls", tool_calls=(call,)).as_message()
            >>> said.role, said.tool_calls[0]["id"]
            ('assistant', '1')
        """
        return Message(
            role="assistant", content=self.text, tool_calls=self.tool_calls or None, items=self.items or None
        )


def usage_from_json(found: Any) -> Usage:
    """What was used, as a record tells it; budgets count it, so nothing may have used less than nothing.

    Raises:
        ValueError: it has not the fields of a usage, or a number that nothing can have used.
    """
    return _possible(Usage.model_validate(found))


def completion_from_json(found: Any) -> Completion:
    """An answer, as a record tells it.

    Raises:
        ValueError: it has not the fields of an answer, or it used what nothing can have used (`usage_from_json`).
    """
    completion = Completion.model_validate(found)
    for call in completion.tool_calls:
        if not isinstance(call.get("function") or {}, Mapping):
            raise ValueError(f"a call of a tool cannot be {call!r:.80}")
    _possible(completion.usage)
    for each in (completion.saved, completion.unknown):
        if each is not None:
            _possible(each)
    return completion


def _possible(used: Usage) -> Usage:
    if found := impossible_in(used):
        name, value = found
        raise ValueError(f"nothing can have used {value} {name.replace('_', ' ')}")
    return used


def impossible_in(used: Usage) -> tuple[str, float] | None:
    """The first field, with its value, that has what nothing can have used; None where there is none."""
    return next(((name, value) for name, value in used if value is not None and not 0 <= value < math.inf), None)


def _called(call: Mapping[str, Any], *, as_text: bool = False) -> dict[str, Any]:
    """The name and the arguments of a tool call; what is no JSON, such as the input of a custom tool, is a text."""
    said = call.get("function") or call.get("custom") or {}
    arguments = said.get("arguments", said.get("input", ""))
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        arguments = arguments if as_text else json.loads(arguments)
    return {"name": said.get("name", ""), "arguments": arguments}
