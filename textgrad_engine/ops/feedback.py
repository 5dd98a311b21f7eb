"""What a backward pass says to the critic, and how its answer is taken apart. The words are in ``prompts/feedback.md``.

The critic's call is a chat completion like any other, so with ``create_graph=True`` feedback has a graph of its own
that leads to the critic's instructions.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.ops.text import Compute

__all__ = ["FEEDBACK_BATCH_SIZE", "Case", "Extract", "Part", "feedback_batch_size", "feedback_on", "object_schema"]

FEEDBACK_BATCH_SIZE: ContextVar[int] = ContextVar("textgrad_engine_feedback_batch_size", default=1)


@contextlib.contextmanager
def feedback_batch_size(size: int) -> Iterator[None]:
    """Inside the block, up to `size` examples share one feedback call.

    Fewer calls and tokens (the prompt is shown once), against some attention for each example.

    Raises:
        ValueError: size is below 1.
    """
    if size < 1:
        raise ValueError(f"feedback_batch_size must be at least 1, got {size}")
    token = FEEDBACK_BATCH_SIZE.set(size)
    try:
        yield
    finally:
        FEEDBACK_BATCH_SIZE.reset(token)


@dataclass(frozen=True)
class Part:
    """An input that wants feedback: its key in the critic's answer, and whether it is a whole message."""

    key: str
    variable: Variable
    whole: bool


@dataclass(frozen=True)
class Case:
    """One call of a model as the critic sees it.

    Attributes:
        parts: the inputs that want feedback.
        messages: for each message its role, the keys of the parts in it, and a function that gives its text.
        answer: what the model answered.
        feedback: the items of feedback on the answer.
        leaves: all values of messages and inputs, in order.
    """

    parts: list[Part]
    messages: list[tuple[str, str, Callable[[], str]]]
    answer: Variable
    feedback: list[Variable]
    leaves: list[Any]


def feedback_on(cases: list[Case], ask: Callable[..., Variable]) -> list[dict[str, Variable]]:
    """Ask the critic once about all cases; for each case its feedback by the key of the part, pending.

    Args:
        cases: the calls that feedback is wanted on.
        ask: `chat_completion.ask`, handed in because that file stands above this one.
    """
    names = [f"case_{number}" for number in range(1, len(cases) + 1)]
    fields = {name: object_schema({part.key: _STRING for part in case.parts}) for name, case in zip(names, cases)}
    tracked = [[case.leaves, case.answer, case.feedback] for case in cases]
    user = Compute.apply(lambda _: _render(cases), tracked, "request to the critic")
    answer = ask("feedback", user, object_schema(fields), purpose="backward", role="answer of the critic")
    paths = tuple([(name, part.key) for name, case in zip(names, cases) for part in case.parts])
    roles = tuple([f"feedback on the {part.variable.role or part.key}" for case in cases for part in case.parts])
    found = Extract.apply(answer, paths, roles)
    values = iter(found if isinstance(found, tuple) else (found,))
    return [{part.key: next(values) for part in case.parts} for case in cases]


_STRING = {"type": "string"}


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class Extract(Function):
    """`Extract.apply(answer, paths, roles)`: the texts at some places of a JSON answer."""

    deferrable = True

    @staticmethod
    def forward(answer: Variable, paths: tuple[tuple[str, ...], ...], roles: tuple[str, ...]) -> Any:
        """Parse the answer and pick the texts."""
        try:
            body = json.loads(answer.data)
            texts = []
            for path in paths:
                value = body
                for key in path:
                    value = value[key]
                texts.append(value.strip())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MalformedResponse(
                f"{answer.role or 'the answer'} is no JSON object with the keys that were asked for ({error!r}): "
                f"{answer.data!r:.200}"
            ) from error
        values = tuple([Variable(text, role=role) for text, role in zip(texts, roles)])
        return values if len(values) > 1 else values[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the paths."""
        ctx.paths = inputs[1]

    @classmethod
    def count_outputs(cls, answer: Any, paths: Any, roles: Any) -> int:
        """One for each path."""
        return len(paths)

    @staticmethod
    def output_role(answer: Variable, paths: Any, roles: tuple[str, ...]) -> tuple[str, ...]:
        """The roles that were given."""
        return roles

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """Feedback on the texts, each with the place it speaks of."""
        items = []
        for path, grad_out in zip(ctx.paths, grad_outs):
            for item in grad_out.grad:
                about = Compute.apply(lambda text, path=path: f"On {'.'.join(path)}: {text}", item, item.role)
                about.source = item.source
                items.append(about)
        return items, None, None


def _render(cases: list[Case]) -> str:
    """The user part of the request; messages that all cases begin with are shown once."""
    shown = [[{"role": r, "keys": keys, "text": text()} for r, keys, text in case.messages] for case in cases]
    common = 0
    if len(cases) > 1:
        while all(len(m) > common for m in shown) and all(m[common] == shown[0][common] for m in shown):
            common += 1
    parts: dict[str, Any] = {}
    for case in cases:
        for part in case.parts:
            texts = parts.setdefault(
                part.key, {"key": part.key, "role": part.variable.role or "an input", "texts": set()}
            )
            texts["texts"].add(None if part.whole else str(part.variable.data))
    inputs = [
        {"key": p["key"], "role": p["role"], "text": next(iter(p["texts"])) if len(p["texts"]) == 1 else None}
        for p in parts.values()
    ]
    return templates.load("feedback").render(
        inputs=inputs,
        shared=shown[0][:common],
        cases=[
            {
                "messages": messages[common:],
                "answer": case.answer.data,
                "feedback": [str(item.data) for item in case.feedback if item.data],
            }
            for messages, case in zip(shown, cases)
        ],
        example=json.dumps({f"case_{n}": {part.key: "..." for part in case.parts} for n, case in enumerate(cases, 1)}),
    )
