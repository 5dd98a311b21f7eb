"""Backward rules that may fail without ending their pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from textgrad_engine.autograd.graph import Node

__all__ = ["FORGIVING", "forgiving"]

FORGIVING: ContextVar[Callable[[Node, BaseException], bool] | None] = ContextVar(
    "textgrad_engine_forgiving", default=None
)


@contextlib.contextmanager
def forgiving(handler: Callable[[Node, BaseException], bool]) -> Iterator[None]:
    """Inside the block, a dispatched backward rule, or the forward of a root, that fails need not end its pass.

    Args:
        handler: called with the node and the error; True goes on as if the rule had nothing to say, False raises.
    """
    token = FORGIVING.set(handler)
    try:
        yield
    finally:
        FORGIVING.reset(token)
