"""A second model for when the first is down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from textgrad_engine.checks import at_least, check, listed
from textgrad_engine.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    ModelError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.llm.charged import mark, plus, unknown_of, usage_of
from textgrad_engine.llm.context import context_window
from textgrad_engine.llm.gate import quota_may_wait
from textgrad_engine.llm.loops import PerLoop
from textgrad_engine.llm.model import Model, Wrapper, close
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.resolve import without_outer
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.roles import model_for
from textgrad_engine.scoped import setting

DOWN: tuple[type[ModelError], ...] = (ConnectionFailed, DeadlineExceeded, QuotaExhausted, RateLimited, ServerFailed)
"""What counts as "the first model is down", after all its retries, unless somebody says otherwise."""

_log = logging.getLogger("textgrad_engine.llm.fallback")


class Fallback(Wrapper):
    """Asks a second model when the first is down.

    Both have retries, limits and a cache of their own, and budgets hold for both together. Once the first is found to
    be down, calls go to the second at once. After `cooldown`, one call at a time tries the first again, until one is
    answered or finds it down. A used-up daily quota of the first is not waited for, as the second answers meanwhile. A
    completion's `model` says which of them answered. The name, for reports and settings, is the first one's.

    Args:
        first: asked as long as it works; a name or a model.
        second: asked when the first is down; may be a Fallback itself.
        on: which failures of the first send a request to the second.
        cooldown: seconds for which the first is left alone after it failed.

    Raises:
        UnknownModelError: nothing answers to a name.
        TypeError: `on` holds something else than kinds of `ModelError`.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> Fallback("openai/gpt-5", ScriptedModel(["yes"]))
        Fallback(OpenAIModel('gpt-5'), ScriptedModel(1 answers, name='scripted'))
    """

    def __init__(
        self,
        first: str | Model,
        second: str | Model,
        on: Iterable[type[ModelError]] = DOWN,
        *,
        cooldown: float = 60.0,
    ) -> None:
        check(Fallback.__init__, locals() | {"on": ()}, at_least(0, "cooldown"))
        super().__init__(_branch(first))
        self.second = _branch(second)
        self.on = listed("on", on, "kinds of ModelError")
        self.cooldown = cooldown
        if wrong := [kind for kind in self.on if not (isinstance(kind, type) and issubclass(kind, ModelError))]:
            raise TypeError(f"`on` lists kinds of ModelError, such as llm.DOWN; {wrong[0]!r} is none")
        self._rests: PerLoop[_Rest] = PerLoop(_Rest)

    @property
    def context(self) -> int | None:
        """The smaller context of the two, since either may be asked; None when neither is known."""
        known = [size for model in (self.inner, self.second) if (size := context_window(model)) is not None]
        return min(known, default=None)

    async def aclose(self) -> None:
        """Close the connections of both that were made on the running loop."""
        await super().aclose()
        await close(self.second)

    async def complete(self, request: Request) -> Completion:
        """Ask the first, or the second while the first is down.

        Raises:
            ModelError: the second's failure, with a note on what happened to the first; or a failure of the first that
                is not listed in `on`.
        """
        rest = self._rests.get()
        now = asyncio.get_running_loop().time()
        if now < rest.until:
            return await self._ask_second(request, rest.reason)
        tries_again = rest.until > 0
        if tries_again:
            rest.until = now + self.cooldown  # the others need not
        may_wait = quota_may_wait.get() and not issubclass(QuotaExhausted, self.on)
        try:
            with setting(quota_may_wait, may_wait):
                completion = await self.inner.complete(request)
        except self.on as error:
            rest.until = asyncio.get_running_loop().time() + self.cooldown
            rest.reason = f"{type(error).__name__}: {error}"
            failure: ModelError = error
        except BaseException:
            if tries_again:
                rest.until = now  # this says nothing about whether the first is down, so the next call tries it
            raise
        else:
            rest.until = 0.0
            return _named(completion, self.inner)
        _log.warning("%r is down, so %r is asked: %.500r", self.inner.name, self.second.name, rest.reason)
        used, unknown = usage_of(failure), unknown_of(failure)
        attempts = getattr(failure, "attempts", None) or 1
        try:
            completion = await self._ask_second(request, rest.reason)
        except (Exception, asyncio.CancelledError) as error:
            mark(error, usage=plus(used, usage_of(error)), unknown=plus(unknown, unknown_of(error)))
            raise
        changed: dict[str, object] = {
            "attempts": completion.attempts + attempts,
            "unknown": plus(unknown, completion.unknown),
        }
        if used is not None:
            changed["usage"] = used + completion.usage
        return completion.model_copy(update=changed)

    async def _ask_second(self, request: Request, reason: str) -> Completion:
        try:
            return _named(await self.second.complete(request), self.second)
        except ModelError as error:
            error.add_note(f"it was asked in place of {self.inner.name!r}, which was down ({reason})")
            raise

    def __repr__(self) -> str:
        return f"Fallback({_shown(self.inner)!r}, {_shown(self.second)!r})"


class _Rest:
    """Until when, on one loop's clock, the first model is left alone, and why; 0 when it works."""

    def __init__(self) -> None:
        self.until = 0.0
        self.reason = ""


def _branch(model: str | Model) -> Model:
    # The same stack as elsewhere, so that one endpoint has one limit; what counts calls stands around the Fallback.
    return without_outer(model_for("forward", model))


def _named(completion: Completion, model: Model) -> Completion:
    return completion if completion.model else completion.model_copy(update={"model": model.name})


def _shown(model: Model) -> Model:
    while isinstance(model, Wrapper) and not isinstance(model, Fallback):
        model = model.inner
    return model
