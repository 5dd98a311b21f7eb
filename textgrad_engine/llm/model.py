"""The one seam between the library and anything that answers: `Model`, and the base of what wraps one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion

__all__ = ["Model", "Wrapper", "defaults_of", "innermost", "is_free", "sized"]

_NOTHING = GenerateConfig()


@runtime_checkable
class Model(Protocol):
    """Anything with a name that completes requests.

    `complete` runs on the library's event-loop thread, many at a time; it must not block. It returns a finished
    `Completion` or raises one of the `ModelError` family.
    """

    @property
    def name(self) -> str:
        """What the model is called in reports, prices and settings."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Answer one request."""
        ...


class Wrapper:
    """A model around a model; a subclass overrides `complete` and does one thing.

    Args:
        inner: the model that is wrapped.
    """

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self._core: Model = innermost(inner)  # looked for once: both are asked for in every call
        self._sized: Model = sized(inner)

    @property
    def name(self) -> str:
        """The name of the innermost model."""
        return self.inner.name

    async def complete(self, request: Request) -> Completion:
        """Pass the request on."""
        return await self.inner.complete(request)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


def innermost(model: Model) -> Model:
    """The model inside all wrappers: the one that really answers."""
    return model._core if isinstance(model, Wrapper) else model


def sized(model: Model) -> Model:
    """The outermost model of a stack that states its ``context``, else the innermost."""
    if isinstance(model, Wrapper) and not isinstance(getattr(model, "context", None), int):
        return model._sized
    return model


def defaults_of(model: Model) -> GenerateConfig:
    """The settings that a model fills in where a request leaves them out: its attribute ``defaults``, if it has one."""
    while True:
        found = getattr(model, "defaults", None)
        if isinstance(found, GenerateConfig):
            return found
        if not isinstance(model, Wrapper):
            return _NOTHING
        model = model.inner


def is_free(model: Model) -> bool:
    """Whether the innermost model costs nothing: it says ``free = True``, or it is simulated in this process.

    What an endpoint calls its model says nothing about that.
    """
    inside = model._core if isinstance(model, Wrapper) else model
    if getattr(inside, "free", False):
        return True
    return inside.name.startswith("simulated/") and not hasattr(inside, "base_url")
