"""`summarise`: a model merges many items of feedback into few, and each remembers what it stands for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine import templates
from textgrad_engine.checks import at_least, check
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, Message, Request
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.usage import call_key_scope
from textgrad_engine.ops.reduce import (
    MERGE_ATTEMPTS,
    MERGE_SCHEMA,
    Merged,
    Piece,
    in_rounds,
    merge_problem,
    merge_slots,
    merged_items,
    unusable,
)
from textgrad_engine.optim.feedback import joined
from textgrad_engine.optim.transforms.base import Context, FeedbackTransform, Gathered, Updated


@dataclass(frozen=True)
class Summarise(FeedbackTransform):
    """See `summarise`."""

    max_items: int

    @property
    def most_requests(self) -> int:
        """How often it asks in one update at most, where its model has room for all items."""
        return MERGE_ATTEMPTS

    async def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Updated:
        """Ask for a merger when there are too many items.

        Raises:
            MalformedResponse: no answer could be used.
            ContextOverflow: two items are longer together than the model's context.
            ModelError: there was no answer.
        """
        items = gathered.items
        if len(items) <= self.max_items:
            return gathered, state
        model = model_for("optimizer", context.model)
        work = in_rounds(
            [Piece("", item.text, item.times, item.case, item.direct) for item in items], self.max_items, model
        )
        groups = next(work)
        while True:
            found = await asyncio.gather(*(_merged(model, group, most) for group, most in groups))
            try:
                groups = work.send(found)
            except StopIteration as finished:
                merged: list[Merged] = finished.value
                break
        return (
            replace(gathered, items=tuple(joined([items[n - 1] for n in numbers], text) for text, numbers in merged)),
            state,
        )


async def _merged(model: Model, pieces: list[Piece], max_items: int) -> list[Merged]:
    """What a model makes of pieces; where its answer cannot be used, of the same with the problem named."""
    prompt = templates.load("reduce")
    problem = answer = ""
    for _ in range(MERGE_ATTEMPTS):
        request = Request(
            messages=(
                Message(role="system", content=prompt.system),
                Message(role="user", content=prompt.render(**merge_slots(pieces, max_items, problem, answer))),
            ),
            config=GenerateConfig(response_format=ResponseFormat(name="reduce", json_schema=MERGE_SCHEMA)),
            purpose="optimizer",
        )
        with call_key_scope("step"):
            answer = (await model.complete(request)).text
        found = merged_items(answer)
        problem = merge_problem(found, len(pieces), max_items)
        if not problem:
            return found
    raise unusable(len(pieces), max_items, problem, answer)


def summarise(max_items: int) -> Summarise:
    """More items than so many are merged by the optimizer's model into at most so many, the most important first.

    It asks as `ops.reduce` does (the prompt ``reduce``): a second time with the first answer and what was wrong with
    it, and in rounds where the model's context has no room for all items. Each new item was said as often, and at the
    examples, as those that it stands for; every item is in one at least.

    Args:
        max_items: how many may be left, at least 1; nobody is asked where there are no more.

    Raises:
        ValueError: max_items is below 1.
    """
    check(summarise, locals(), at_least(1, "max_items"))
    return Summarise(max_items)
