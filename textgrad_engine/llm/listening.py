"""Who sees an answer as it comes, piece by piece, and what of it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from textgrad_engine.blocks import block
from textgrad_engine.callables import check_told
from textgrad_engine.checks import check
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.strict import WRAPPED
from textgrad_engine.scoped import setting

Listener = Callable[[Request, str | None], None]


@block
@contextlib.contextmanager
def on_token(callback: Listener) -> Iterator[None]:
    """Inside the block, calls of endpoints are streamed, and `callback` sees each piece of text as it comes.

    It runs on the event-loop thread and must not block; pieces of calls that run at once come mixed. Answers from a
    cache or a cassette, and from models that are no endpoint, come without pieces; a test has
    some from a `LoopbackServer`. The pieces are what the model writes: where structured output had to be asked for in
    words, that may be texts between tags, or JSON in a code fence, and where the server leaves thoughts in the text,
    they come too. An exception of the callback is raised from the call.

    Args:
        callback: called with the request and a piece of the answer's text; with None when what came so far is void (the
            connection broke, or the answer was refused), and the text begins anew or the call fails.

    Raises:
        TypeError: it cannot be called so.

    Example:
        >>> with on_token(lambda request, piece: None):
        ...     len(listeners())
        1
    """
    check(on_token, locals())
    check_told("on_token", "callback", callback, "request", "piece")
    with setting(_listeners, (*_listeners.get(), callback)):
        yield


def listeners() -> tuple[Listener, ...]:
    """Those who want to see the pieces of calls made here."""
    return _listeners.get()


class Teller:
    """Tells those who listen here what one call is answered.

    Args:
        request: what is asked.
        wrapped: whether the model writes the answer into the one property of an object, which nobody hears of.
    """

    def __init__(self, request: Request, *, wrapped: bool = False) -> None:
        self._request = request
        self._told = False
        self._inside = _Inside() if wrapped else None

    def tell(self, piece: str) -> None:
        """Pass on a piece of the answer's text."""
        if self._inside is not None and not (piece := self._inside.of(piece)):
            return
        self._told = True
        for listener in listeners():
            listener(self._request, piece)

    def take_back(self) -> None:
        """Say that what was told is void; if anything was."""
        if self._told:
            self._told = False
            void(self._request)


class _Inside:
    """What stands in the one property of an object that comes in pieces; of anything else, all that comes."""

    _BEGIN = re.compile(rf'\s*\{{\s*"{WRAPPED}"\s*:\s*(?=\S)')

    def __init__(self) -> None:
        self._held = ""
        self._begun: bool | None = None
        """None while nobody knows; False of what is no such object."""

    def of(self, piece: str) -> str:
        """What of a piece, and of what was held back before it, is to be told by now."""
        self._held += piece
        if self._begun is None:
            found = self._BEGIN.match(self._held)
            if found is None and _COMPACT.startswith("".join(self._held.split())):
                return ""  # what there is may be its beginning
            self._begun = found is not None
            self._held = self._held[found.end() :] if found else self._held
        told = self._held.rstrip().removesuffix("}").rstrip() if self._begun else self._held
        self._held = self._held[len(told) :]  # what may be its end
        return told


_COMPACT = f'{{"{WRAPPED}":'


def void(request: Request) -> None:
    """Tell those who listen here that what they heard of a request's answer is void, for it is refused."""
    for listener in listeners():
        listener(request, None)


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("textgrad_engine_on_token", default=())
