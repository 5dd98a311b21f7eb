"""How much a model reads: the size of its context, and which whole items go into a request that has no room for all.

NOTE [What is left out]
    What belongs together stays whole: an item (a message, a piece of feedback) is shown or left out. Half of a context
    is filled; the other half is for the answer, and for the error of the estimate that tokens are counted by (a
    tokenizer, where there is one, would make requests differ from machine to machine). Items are taken in the order of
    their worth, each that still fits: feedback on the worst score first, of equal scores the newest, then messages, the
    newest first. Messages for which there is no room, such as what tools gave, are shown without their middle in the
    room that is left. Where what must be shown is longer than the context itself, so are all long texts
    (`ops.shortening`): one page that is too long for a critic would end a run. Short feedback stays beside such a text,
    which takes all room that there is. Whatever was left out is said in the request and in the log. Where the size of a
    context is not known, everything is sent.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from textgrad_engine.checks import check
from textgrad_engine.errors import ContextOverflow
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.model import Model, Wrapper, defaults_of, is_free, sized
from textgrad_engine.llm.prices import address_of, known_context
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.tokens import count
from textgrad_engine.scoped import setting

_log = logging.getLogger("textgrad_engine.llm.context")


class Sized(Wrapper):
    """A model whose context is stated: ``resolve(..., context=8192)`` makes one.

    Args:
        inner: the model that is wrapped.
        context: the tokens that it reads and writes at most in one call.

    Raises:
        ValueError: context is not positive.
    """

    def __init__(self, inner: Model, context: int) -> None:
        super().__init__(inner)
        self.context = checked_context(context)

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Pass the request on."""
        return self.inner.complete(request)  # the inner coroutine itself: a frame less in each call under way

    def __repr__(self) -> str:
        return f"Sized({self.inner!r}, context={self.context})"


def checked_context(context: int) -> int:
    """The size of a context that somebody states.

    Raises:
        ValueError: it is not positive.
    """
    check(checked_context, locals())
    if context < 1:
        raise ValueError(
            f"context is the tokens that a model reads and writes at most, a positive number, got {context}"
        )
    return context


def context_window(model: Model) -> int | None:
    """The tokens that a model reads and writes at most in one call.

    It is what was stated (``context=`` of `resolve` or `OpenAIModel`, or an attribute ``context`` of a model of one's
    own), else what the table of genai-prices says about the name, else None.

    Example:
        >>> from textgrad_engine.llm import OpenAIModel
        >>> context_window(OpenAIModel("gpt-4o")), context_window(OpenAIModel("gpt-4o", context=8192))
        (128000, 8192)
    """
    says = sized(model)
    stated = getattr(says, "context", None)
    if isinstance(stated, int):
        return stated
    return None if is_free(says) else known_context(says.name, address_of(says))


@dataclass(frozen=True)
class Room:
    """What a request to a model may hold, in tokens as `tokens.count` estimates them.

    Attributes:
        model: the name of the model.
        context: the size of its context.
        tokens: what requests are fitted to.
        most: beyond this a request is not worth sending: its estimate is larger than the context itself.
    """

    model: str
    context: int
    tokens: int
    most: int

    def overflow(self, what: str, size: int) -> ContextOverflow:
        """The error about a request that does not fit with everything left out that can be.

        Args:
            what: what was to be sent, with the example that it is about.
            size: its estimated tokens.
        """
        error = ContextOverflow(
            f"{what} is about {size:,} tokens long with everything left out that can be, and {self.model!r} has a "
            f"context of {self.context:,}; shorten the texts, use a model with a longer context, or correct its size "
            f"with context=... (llm.resolve, or the config's [models]). Nothing was sent."
        )
        mark(error, sent=False)
        return error


def room_of(model: Model) -> Room | None:
    """What a request to a model may hold, see NOTE [What is left out]; None when its context is not known."""
    context = context_window(model)
    if context is None:
        return None
    return _room(model.name, context, defaults_of(model).max_tokens or 0)


@functools.lru_cache(maxsize=64)
def _room(name: str, context: int, answer: int) -> Room:
    return Room(name, context, max(1, min(context // 2, (context - answer) * 3 // 4)), max(1, context - answer))


def room_for(model: Model, at_most: int, beside: Iterable[str] = ()) -> int:
    """A budget in tokens for the items of a request, cut to what its model has room for.

    An optimizer calls it with its ``max_feedback_tokens`` before it picks the feedback that it shows:
    ``cap(room_for(model_for("optimizer", self.model), group["max_feedback_tokens"], [text, prompt.system]))``.

    Args:
        model: who will be asked.
        at_most: the budget that was set.
        beside: the other texts of the request, such as the parameter that is changed.

    Returns:
        `at_most`, or less where the context is small; at least 1.

    Example:
        >>> from textgrad_engine.llm import OpenAIModel
        >>> room_for(OpenAIModel("gpt-4"), 8000, ["word " * 400]), room_for(OpenAIModel("gpt-4o"), 8000)
        (3596, 8000)
    """
    room = room_of(model)
    if room is None:
        return at_most
    return max(1, min(at_most, room.tokens - sum([count(text) for text in beside])))


def refuse_overflow(model: Model, request: Request, what: str) -> None:
    """Refuse a request that its model cannot read, before it is sent.

    Args:
        model: who would be asked.
        request: the request, with everything left out that can be.
        what: what it is, for the message.

    Raises:
        ContextOverflow: it is longer than the model's context, where the size of that is known.
    """
    room = room_of(model)
    texts = [message.text for message in request.messages]
    if room is None or sum(map(len, texts)) <= room.most:  # no text has more tokens than characters
        return
    if (size := sum(map(count, texts))) > room.most:
        raise room.overflow(what, size)


def fit(costs: Sequence[int], room: int, order: Iterable[int] | None = None, *, least: int = 0) -> list[int]:
    """Which of some items a request has room for: whole items, each that still fits, in the order of their worth.

    Args:
        costs: what each item takes.
        room: what there is for all of them.
        order: the positions of the items, the most valuable first; without it, as they stand.
        least: so many of the most valuable ones are kept in any case.

    Returns:
        The positions of those that are kept, rising.

    Example:
        >>> fit([5, 3, 9, 1], 7, order=[2, 1, 3, 0])
        [1, 3]
    """
    kept, spent = [], 0
    for rank, position in enumerate(range(len(costs)) if order is None else order):
        if rank < least or spent + costs[position] <= room:
            kept.append(position)
            spent += costs[position]
    return sorted(kept)


def by_worth(scores: Sequence[float | None]) -> list[int]:
    """The positions of pieces of feedback, the most valuable first: the worst score, then what has none; the newest of
    equals.

    Example:
        >>> by_worth([1.0, None, 0.0, 0.0])
        [3, 2, 0, 1]
    """
    return sorted(range(len(scores)), key=lambda n: (scores[n] is None, scores[n] or 0.0, -n))


@dataclass(frozen=True)
class LeftOut:
    """What a request had no room for.

    Attributes:
        what: the request, with the example that it is about.
        model: the name of the model.
        messages: how many messages were left out.
        feedback: how many pieces of feedback.
        middles: how many messages, answers and pieces of feedback were shown without their middle.
    """

    what: str
    model: str
    messages: int
    feedback: int
    middles: int = 0

    @property
    def items(self) -> int:
        """How many things were not shown, or not whole."""
        return self.messages + self.feedback + self.middles


def note_left_out(left: LeftOut, room: Room) -> None:
    """Say to whoever listens, and in the log, what a request had no room for; there of a run's many of some alone."""
    for tell in _listeners.get():
        tell(left)
    before = _before(left.model)
    if before & (before + 1):
        return
    parts = [
        f"{number} {name if number == 1 else names}"
        for number, name, names in (
            (left.messages, "message", "messages"),
            (left.feedback, "piece of feedback", "pieces of feedback"),
            (left.middles, "middle of a long text", "middles of long texts"),
        )
        if number
    ]
    _log.warning(
        "%s: %s left out, for which the context of %r (%d tokens) has no room%s",
        left.what,
        " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))),
        left.model,
        room.context,
        f", and had none in {before} requests before" if before > 1 else "",
    )


def _before(model: str) -> int:
    """How many requests to a model in the run that is under way had no room for something before; 0 outside of runs."""
    found = _run.get()
    if found is None:
        return 0
    found[model] += 1
    return found[model] - 1


@contextlib.contextmanager
def counting_left_out() -> Iterator[None]:
    """Inside the block, which is that of a run, the log tells of the first, the second, the fourth request and so on.

    Where a critic has no room for what tools give, it has none for any, and a line for each example hides all others.
    """
    with setting(_run, Counter()):
        yield


_run: ContextVar[Counter[str] | None] = ContextVar("textgrad_engine_left_out_run", default=None)


@contextlib.contextmanager
def on_left_out(callback: Callable[[LeftOut], None]) -> Iterator[None]:
    """Inside the block, `callback` is told what requests had no room for; on any thread."""
    with setting(_listeners, (*_listeners.get(), callback)):
        yield


_listeners: ContextVar[tuple[Callable[[LeftOut], None], ...]] = ContextVar("textgrad_engine_left_out", default=())
