"""Sending the messages of a plan to a model, as often as its tools want it to be asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.late import late_input
from textgrad_engine.errors import APIError, BadRequest, ContextOverflow
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.llm.ended import unless_ended
from textgrad_engine.llm.images import images_in
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import Message, Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.stop import BY_OPERATION
from textgrad_engine.llm.usage import Metered, call_key
from textgrad_engine.ops.messages import ChatSettings, Plan
from textgrad_engine.scoped import setting


async def completion_of(
    settings: ChatSettings, plan: Plan, data: list[Any], turns: Sequence[Message] = ()
) -> Completion:
    """Send the messages of a plan with these values, and the turns that came after them; wait for what is answered."""
    if plan.gate is not None and not data[plan.gate]:
        return Completion(text=settings.silence)
    request = plan.request(data, settings)
    if turns:
        request = request.model_copy(update={"messages": (*request.messages, *turns)})
    model = model_for(settings.purpose, settings.model)
    example = EXAMPLE.get()
    token = None if example == call_key.get() else call_key.set(example)
    by_operation = BY_OPERATION.set(True)
    try:
        if settings.sample or SHARED.get() is not None:
            return await _sampled(settings, model, request)
        return await _answer(model, request)
    except APIError as error:
        if settings.purpose in _UNSEEN and isinstance(error, BadRequest | ContextOverflow):
            _say_of_images(error, request)
        raise
    finally:
        BY_OPERATION.reset(by_operation)
        if token is not None:
            call_key.reset(token)


_UNSEEN = {
    "backward": "if the critic reads no images, ops.feedback_images(0), Trainer(feedback_images=0) or [train] "
    "feedback_images = 0 has it asked without them",
    "judge": "if the judge reads no images, nn.Judge(..., images=0) or [metric] images = 0 has it asked without them",
}
"""What is said where an endpoint refuses a request that we have put images into."""
_TOO_MANY = {
    "backward": "ops.feedback_images(n), Trainer(feedback_images=n) or [train] feedback_images = n has fewer sent",
    "judge": "nn.Judge(..., images=n) or [metric] images = n has fewer sent",
}
"""The same where it is too large, which images may be in bytes, whatever the context holds."""


def _say_of_images(error: APIError, request: Request) -> None:
    """Say in an error that the request had images, and how it is asked without; messages reach where notes do not."""
    count = sum([len(images_in(message.content)) for message in request.messages])
    how = (_TOO_MANY if isinstance(error, ContextOverflow) else _UNSEEN)[request.purpose]
    said = f"; the request had {count} image{'s' if count > 1 else ''}: {how}"
    if count and said not in str(error):
        error.args = (f"{error}{said}",)


async def conversation(settings: ChatSettings, plan: Plan, data: list[Any]) -> tuple[Completion, list[Message]]:
    """Ask, run the tools that are called, and ask again, until there is an answer; see NOTE [Tools] in `ops.tools`.

    Returns:
        The last answer, and the turns before it.
    """
    tools = settings.tools
    assert tools is not None
    turns: list[Message] = []
    completion = await completion_of(settings, plan, data)
    if settings.config.tool_choice is not None:  # who must call a tool in every turn never answers
        settings = replace(settings, config=settings.config.model_copy(update={"tool_choice": None}))
    for _ in range(tools.max_turns - 1):
        if not completion.tool_calls:
            break
        asked = plan.request(data, settings)
        said = Request(messages=(*asked.messages, *turns), purpose=settings.purpose)
        model = model_for(settings.purpose, settings.model)
        with setting(BY_OPERATION, True):
            told = await tools.answers(completion, said, model, EXAMPLE.get())
        turns.append(completion.as_message())
        for message, tool, given in told:
            if given is not None:
                late_input(given, (len(turns), tool))
            turns.append(message)
        completion = await completion_of(settings, plan, data, turns)
    return completion, turns


async def _sampled(settings: ChatSettings, model: Model, request: Request) -> Completion:
    """An answer of which each example takes one of its own, or all the same one."""

    async def ask() -> Completion:
        with repeat(settings.sample) if settings.sample else contextlib.nullcontext():
            return await _answer(model, request)

    if (shared := SHARED.get()) is None:
        return await ask()
    # Whoever asks first asks for all; one who is no longer waited for takes nothing away from the others.
    key = (shared.call, id(model), settings.sample, request.model_dump_json())
    if key not in shared.answers:
        shared.answers[key] = asyncio.ensure_future(ask())
    return await asyncio.shield(shared.answers[key])


def _answer(model: Model, request: Request) -> Awaitable[Completion]:
    asked = model.complete(request)
    return asked if isinstance(model, Metered) else unless_ended(asked)  # else a wrapper of a user's own is around it


@dataclass(frozen=True, eq=False, slots=True)
class SharedSamples:
    """What the calls share that one place of a program makes for the examples of a batch.

    Attributes:
        answers: those to the requests of all places, so far.
        call: which of the program's calls it is: an example that asks the same twice takes two samples.
    """

    answers: dict[Any, asyncio.Future[Completion]]
    call: int


SHARED: ContextVar[SharedSamples | None] = ContextVar("textgrad_engine_shared_samples", default=None)
"""Where calls that sample find the answers to equal requests, if they are to share them."""
