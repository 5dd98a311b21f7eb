"""The one seam between the library and anything that answers: `Model`, and the base of what wraps one."""

from __future__ import annotations

from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from textgrad_engine.checks import SetBySuper, check
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion, Price

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

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Answer one request; an ``async def``, or what hands on the coroutine of another one."""
        ...


class Closing:
    """What may hold connections: ``aclose`` closes them, and the end of an ``async with`` block does.

    Those of the running loop; the library's own loop, on which operations ask, closes its own when the program ends.
    """

    async def aclose(self) -> None:
        """Close the connections made on the running loop; the next call makes new ones."""
        raise NotImplementedError(f"{type(self).__name__} needs an `aclose`")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Wrapper(Closing):
    """A model around a model; a subclass overrides `complete` and does one thing.

    Put your own wrapper around the result of `resolve` (resolve each of several models; one is `inner`). Then every
    call inside is limited, retried, cached, counted and paid for by itself, and the wrapper's own call is not. If it
    asks a model the same again, `repeat` tells the samples apart.

    Args:
        inner: the model that is wrapped.

    Example:
        >>> import asyncio
        >>> from textgrad_engine.llm import repeat, resolve
        >>> from textgrad_engine.testing import ScriptedModel
        >>> class Majority(Wrapper):
        ...     async def complete(self, request):
        ...         answers = await asyncio.gather(*(self._sample(request, number) for number in range(3)))
        ...         texts = [answer.text for answer in answers]
        ...         return max(answers, key=lambda answer: texts.count(answer.text))
        ...     async def _sample(self, request, number):
        ...         with repeat(number):
        ...             return await self.inner.complete(request)
        >>> from textgrad_engine import nn
        >>> chat = nn.ChatCompletion("Is it?", model=Majority(resolve(ScriptedModel(["no", "yes", "yes"]))))
        >>> chat().data
        'yes'
    """

    if not TYPE_CHECKING:  # for type checkers it is what __init__ sets
        inner = SetBySuper("super().__init__(inner)")

    def __init__(self, inner: Model) -> None:
        check(Wrapper.__init__, locals())
        self.inner = inner
        self._core: Model = innermost(inner)  # looked for once: all of them are asked for in every call
        self._sized: Model = sized(inner)
        self._price: Price | None = stated_price(inner)

    @property
    def name(self) -> str:
        """The name of the innermost model."""
        return self.inner.name

    async def complete(self, request: Request) -> Completion:
        """Pass the request on."""
        return await self.inner.complete(request)

    async def aclose(self) -> None:
        """Close the connections that the model inside has made on the running loop, where it holds any.

        The next call makes new ones. A model of one's own closes what it holds in an ``async def aclose(self)``.
        """
        await close(self.inner)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


async def close(model: Model) -> None:
    """Close the connections of a model on the running loop, if it holds any."""
    own = getattr(model, "aclose", None)
    if own is not None:
        await own()


def innermost(model: Model) -> Model:
    """The model inside all wrappers: the one that really answers."""
    if isinstance(model, Wrapper):
        return model._core
    check(innermost, {"model": model})
    return model


def sized(model: Model) -> Model:
    """The outermost model of a stack that states its ``context``, else the innermost."""
    if isinstance(model, Wrapper) and not isinstance(getattr(model, "context", None), int):
        return model._sized
    return model


def stated_price(model: Model) -> Price | None:
    """What the outermost model of a stack costs that says it, by an attribute ``price``; None where none does."""
    own = getattr(model, "price", None)
    if isinstance(own, Price):
        return own
    return model._price if isinstance(model, Wrapper) else None


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

    What an endpoint calls its model says nothing about that, and a price that is stated goes first.
    """
    if stated_price(model) is not None:
        return False
    inside = model._core if isinstance(model, Wrapper) else model
    if getattr(inside, "free", False):
        return True
    return inside.name.startswith("simulated/") and not hasattr(inside, "base_url")
