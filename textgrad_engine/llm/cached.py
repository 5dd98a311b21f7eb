"""A model whose answers are kept, and the block in which all of them are."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Awaitable, Coroutine, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

from textgrad_engine.blocks import block
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.attachments import signed_again
from textgrad_engine.llm.cache import DEFAULT_BYTES, Cache, always, open_cache
from textgrad_engine.llm.cachekey import identity_of, keys_of_sample, sample_of
from textgrad_engine.llm.model import Model, Wrapper, defaults_of, innermost, is_free
from textgrad_engine.llm.parsing import check_json, without_thoughts
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.usage import note_sample
from textgrad_engine.scoped import setting

_log = logging.getLogger("textgrad_engine.llm.cache")
_NAMELESS = (
    "it has no endpoint, and its name does not tell it from others. Give it an attribute cache_key, a text that "
    "changes whenever its answers could"
)


def _fits(wanted: ResponseFormat, kept: Completion) -> bool:
    if kept.tool_calls:
        return True
    try:
        check_json(kept.text, wanted)
    except MalformedResponse:
        return False
    return True


class Cached(Wrapper):
    """Answers from a cache what was asked before.

    Stands outside retry, limit and budget: a kept answer costs none of them. It is marked `cached`, its `usage` is zero
    and `saved` says what the answer used when it was paid for. Where a pydantic model has a say in what is an answer,
    it has it of a kept one, too, as its rules may have changed.

    Args:
        inner: the model that is wrapped.
        cache: where answers are kept; None for that of the `caching` block around a call, if there is one.

    Raises:
        TypeError: a cache is given, and nothing tells this model's answers from another's (see `cachekey`).
    """

    def __init__(self, inner: Model, cache: Cache | None = None) -> None:
        super().__init__(inner)
        check(Cached.__init__, locals())
        self.cache = cache
        self._identity = identity_of(inner)
        self._untold = self._identity is None and not is_free(inner)  # in the log: once, as it is of every call
        self._format = defaults_of(inner).response_format
        if cache is not None and self._identity is None:
            raise TypeError(f"{innermost(inner)!r} cannot be cached: {_NAMELESS}")

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Look the request up, or pass it on and keep the answer."""
        cache = self.cache
        if cache is None and self._identity is not None:
            cache = _block.get()
        if cache is None:
            if self._untold and _block.get() is not None:
                self._untold = False
                _log.warning("answers of %r are not cached: %s", self.name, _NAMELESS)
            return self.inner.complete(request)
        wanted = request.config.response_format or self._format
        fits = partial(_fits, wanted) if wanted is not None and wanted.has_model else always
        bases, sample = sample_of(self.inner, request)
        note_sample(sample)
        key, *before = keys_of_sample(bases, sample)
        answer = cache.answer(key, lambda: self.inner.complete(request), fits, before)
        return _given(answer, request, wanted)

    def __repr__(self) -> str:
        return f"Cached({self.inner!r}{'' if self.cache is None else f', {self.cache!r}'})"


async def _given(answer: Awaitable[Completion], request: Request, wanted: ResponseFormat | None) -> Completion:
    """A kept answer for who asks now; without thoughts before it, as older versions have kept them."""
    kept = await answer
    if kept.cached:
        kept = signed_again(kept, request)
    if wanted is not None:
        return kept
    bare = without_thoughts(kept, request)
    return bare if bare.text else kept


@block
@contextlib.contextmanager
def caching(path: str | os.PathLike[str] | Cache | None = None, *, max_bytes: int = DEFAULT_BYTES) -> Iterator[Cache]:
    """Inside the block, what an endpoint answered before is not asked again; models without one are asked as ever.

    Models without an endpoint are the embedded ones and those for tests. Answers of your own model are kept if it has a
    ``cache_key``, a text that changes whenever its answers could, even if it is free.

    Equal requests get equal answers, also those sampled at a temperature; `repeat` asks for further samples. A run and
    `evaluate` use it themselves: a program that asks the same twice for one example gets two samples, but not at
    temperature 0.

    Args:
        path: the folder of the cache, or a `Cache`; by default the user's cache folder.
        max_bytes: what its answers may take on disk.

    Raises:
        ConfigError: the folder cannot be made or written.

    Example:
        >>> import tempfile
        >>> with caching(tempfile.mkdtemp()) as cache:
        ...     len(cache)
        0
    """
    check(caching, locals(), at_least(1, "max_bytes"))
    cache = open_cache(path, max_bytes)
    with setting(_block, cache):
        yield cache


_block: ContextVar[Cache | None] = ContextVar("textgrad_engine_cache", default=None)
