"""The turns of a call with functions as tools, as messages of it: a critic sees them, and speaks of what is in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from textgrad_engine.autograd import Variable
from textgrad_engine.llm.conversation import with_calls
from textgrad_engine.llm.images import images_in, is_image
from textgrad_engine.llm.request import Message
from textgrad_engine.llm.tool_images import in_words
from textgrad_engine.ops.messages import Plan, Rendered


def shown(messages: Sequence[Message]) -> str:
    """Messages of a conversation as JSON: for each its role and its text, with the calls that a model made in it, and
    where there are images in it its content.
    """
    told: list[Any] = []
    for message in messages:
        if images_in(message.content):
            told.append((message.role, in_words(message.content), message.content))
        else:
            told.append((message.role, with_calls(message.text, message.tool_calls or ())))
    return json.dumps(told, ensure_ascii=False)


class Turns(NamedTuple):
    """A call with tools as one whose messages hold all of its turns.

    Attributes:
        plan: its plan.
        saved: its values, and behind them the answer.
        needs: for each value whether it is asked about.
        edge: where feedback on a value flows, by its number from the end.
        arguments: for what tools gave that is asked about, by the position of its value, which argument of the rule it
            is.
    """

    plan: Plan
    saved: list[Any]
    needs: Sequence[bool]
    edge: Callable[[int], Any]
    arguments: Mapping[int, int]


def with_turns(ctx: Any, saved: Sequence[Any]) -> Turns:
    """A call with tools as one whose messages hold all of its turns.

    Args:
        ctx: that of the call.
        saved: what it has saved: its values, the turns, the answer.
    """
    *values, turns, answer = saved
    said = json.loads(str(turns.data if isinstance(turns, Variable) else turns))
    first, count = len(values), len(said)
    texts: list[Any] = [text for _, text, *_ in said]
    names = ["turn"] * count
    needs = [*ctx.needs_input_grad[2 : 2 + first], *[False] * count]
    arguments = {}
    for number, (given, (turn, tool)) in enumerate(ctx.late_inputs, 2 + first):
        texts[turn], names[turn] = given, f"{tool}_result"
        needs[first + turn] = ctx.needs_input_grad[number]
        arguments[first + turn] = number
    # Not holes: what a tool gave may have slots in it, and is not scanned for them.
    messages = tuple(
        [
            (role, _around_images(*content) or (Rendered(_as_said, ((name, first + number),), whole=True),))
            for number, ((role, _, *content), name) in enumerate(zip(said, names))
        ]
    )
    plan = replace(ctx.plan, messages=(*ctx.plan.messages, *messages))

    def edge(number: int) -> Any:
        position = number + first + count
        return ctx.edge(arguments.get(position, 2 + position))

    return Turns(plan, [*values, *texts, answer], needs, edge, arguments)


def _as_said(texts: list[Any]) -> str:
    return str(texts[0])


def _around_images(content: Sequence[Mapping[str, Any]] = ()) -> tuple[Any, ...]:
    """What a tool gave with images in it, as parts of a message."""
    return tuple([dict(part) if is_image(part) else _constant(part["text"]) for part in content])


def _constant(text: str) -> Rendered:
    return Rendered(lambda _: text, ())
