"""Backward rules that may fail without ending their pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeAlias

from textgrad_engine.autograd.graph import Node
from textgrad_engine.scoped import setting

Forgiven: TypeAlias = tuple[Node, BaseException]
"""A node, and what its rule or its forward raised."""


class Forgiving:
    """Who says which failures do not end a pass.

    Args:
        passes_over: called with the node and the error, when it is seen.

    Attributes:
        forgiven: the failures of the passes that came to their end, of each in the order of its graph.
    """

    def __init__(self, passes_over: Callable[[Node, BaseException], bool]) -> None:
        self.passes_over = passes_over
        self.forgiven: list[Forgiven] = []


FORGIVING: ContextVar[Forgiving | None] = ContextVar("textgrad_engine_forgiving", default=None)


@contextlib.contextmanager
def forgiving(passes_over: Callable[[Node, BaseException], bool]) -> Iterator[list[Forgiven]]:
    """Inside the block, a dispatched backward rule, or the forward of a root, that fails need not end its pass.

    Args:
        passes_over: called with the node and the error; True goes on as if the rule had nothing to say, False raises.

    Returns:
        What was passed over, of each pass when it is through, in the order of its graph.
    """
    here = Forgiving(passes_over)
    with setting(FORGIVING, here):
        yield here.forgiven
