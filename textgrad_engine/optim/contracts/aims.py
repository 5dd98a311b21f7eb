"""What a run asks of texts besides their score, in words: proposers are told, and it is decided elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar

from textgrad_engine.optim.contracts.base import Wish
from textgrad_engine.scoped import setting

_aims: ContextVar[tuple[Wish, ...]] = ContextVar("textgrad_engine_aims", default=())


def aiming(aims: Iterable[str]) -> setting[tuple[Wish, ...]]:
    """Inside the block, `contracts_for` gives these, too: what a text costs, and what it may not fall below.

    Args:
        aims: a sentence or two each.

    Example:
        >>> from textgrad_engine.optim.contracts import contracts_for
        >>> with aiming(["Be brief: length counts."]):
        ...     contracts_for((), 100)[-1].describe("Sort.")
        'Be brief: length counts.'
    """
    return setting(_aims, tuple(map(Wish, aims)))


def aims_now() -> tuple[Wish, ...]:
    """The aims of the block that this is called in."""
    return _aims.get()
