"""Several answers to one request."""

from __future__ import annotations

import asyncio

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion


async def samples(model: Model, request: Request, n: int) -> list[Completion]:
    """Ask the same `n` times, at once; each is a call of its own for limits, budgets, retries and the cache.

    The endpoints' own ``n`` is not used: few have it, it cannot be retried in part, and what it costs is known late.

    Args:
        model: who is asked.
        request: what is asked; with a temperature, or the samples will hardly differ.
        n: how many answers.

    Raises:
        ModelError: one of the calls failed; the others are given up.
        ValueError: `n` is less than 1.

    Example:
        >>> from textgrad_engine.llm import Message, Request
        >>> from textgrad_engine.testing import ScriptedModel
        >>> request = Request(messages=(Message(role="user", content="A number?"),))
        >>> [answer.text for answer in asyncio.run(samples(ScriptedModel(["3", "7"]), request, 2))]
        ['3', '7']
    """
    check(samples, locals(), at_least(1, "n"))
    tasks = []
    for index in range(n):
        with repeat(index):  # part of the cache's key, so that equal requests are different samples
            tasks.append(asyncio.ensure_future(model.complete(request)))
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
