"""The feedback on a parameter as an optimizer sees it: collected, transformed, and cut to a budget of tokens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import dispatch
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.feedback import item_of
from textgrad_engine.optim.transforms.base import Chain, Context, Gathered, chain
from textgrad_engine.optim.transforms.cap import cap
from textgrad_engine.optim.transforms.dedupe import dedupe

_log = logging.getLogger("textgrad_engine.optim.gather")

Room = Callable[[Sequence[str]], int]
"""How many tokens of feedback may be shown beside a history of what was tried."""


@dataclass(frozen=True)
class Heard:
    """The feedback on one parameter, and how it is to be shown.

    Attributes:
        gradient: the feedback Variables, in order.
        context: what transforms may know of the step.
        room: gives the budget of tokens.
        transforms: what happens to the feedback; None is `usual`.
        history: what was tried and what became of it, in words.
    """

    gradient: Sequence[Variable]
    context: Context
    room: Room
    transforms: Chain | None = None
    history: tuple[str, ...] = ()


def collect(gradient: Iterable[Variable]) -> Gathered:
    """The items of a gradient, one for each piece of feedback that says anything, in order: where transforms begin.

    Example:
        >>> [item.text for item in collect([Variable("Be brief."), Variable(" "), Variable("Be brief.")]).items]
        ['Be brief.', 'Be brief.']
    """
    items = map(item_of, gradient)
    return Gathered(tuple(item for item in items if item.text))


def usual() -> Chain:
    """What happens to feedback where nobody says otherwise: equal texts become one."""
    return chain(dedupe())


async def shown(
    gathered: Gathered, transforms: Chain, state: dict[str, Any], context: Context, room: Room
) -> tuple[Gathered, dict[str, Any]]:
    """What an optimizer's model is shown of feedback: transformed, then without what there is no room for.

    Args:
        gathered: the feedback.
        transforms: the transforms.
        state: theirs.
        context: what they may know of the step.
        room: gives the budget of tokens, as `transforms.cap` has it.

    Returns:
        What is shown, and the state after it.
    """
    found, state = await transforms.update(gathered, state, context)
    most = room(found.history)
    fitting = cap(most).apply(found)
    if left_out := fitting.left_out - found.left_out:
        _log.warning(
            "feedback on the %s: %d of %d items left out, for which an optimizer's request (%d tokens) has no room",
            context.role or "prompt",
            left_out,
            len(found.items),
            most,
        )
    if cut := len({*fitting.items} - {*found.items}):
        _log.warning(
            "feedback on the %s: the middle of long messages was left out (items: %d), for which an optimizer's "
            "request (%d tokens) has no room",
            context.role or "prompt",
            cut,
            most,
        )
    return fitting, state


def gather(heard: Sequence[Heard]) -> list[Gathered | str]:
    """What a search shows of the feedback on some parameters, all of them at once; nothing is remembered.

    Args:
        heard: the feedback on each.

    Returns:
        For each what is shown; in words why nothing is, where a transform asked a model that gave no answer.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """

    async def one(each: Heard) -> Gathered | str:
        begun = collect(each.gradient)
        transforms = usual() if each.transforms is None else each.transforms
        try:
            given = Gathered(begun.items, each.history)
            return (await shown(given, transforms, transforms.init(), each.context, each.room))[0]
        except UNANSWERED as error:
            return f"the feedback was not transformed: {type(error).__name__}: {error}"

    async def every() -> list[Gathered | str]:
        return await asyncio.gather(*(one(each) for each in heard))

    return dispatch.run(every, label="the feedback for a proposal") if heard else []
