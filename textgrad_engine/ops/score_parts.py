"""What one score was made of, for who wants to know: the scores of several losses, or the criteria of a rubric."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.scoped import setting

Parts: TypeAlias = dict[str, Variable]
"""The scores that one score was made of, each on its own scale, by name."""

HEARD: ContextVar[list[Parts] | None] = ContextVar("textgrad_engine_parts", default=None)
"""Where a loss puts what it makes a score of; None where nobody wants to know."""


@contextlib.contextmanager
def hearing_parts() -> Iterator[list[Parts]]:
    """Inside the block, what losses make a score of is put into a list, in the order of the calls.

    Of a loss inside of another one it comes before that of the outer one.

    Example:
        >>> from textgrad_engine import nn
        >>> loss = nn.Weighted({"right": nn.ExactMatch(), "as right": nn.ExactMatch()})
        >>> with hearing_parts() as heard:
        ...     score = loss(Variable("new"), "new")
        >>> {name: part.data for name, part in heard[0].items()}
        {'right': 1, 'as right': 1}
    """
    heard: list[Parts] = []
    with setting(HEARD, heard):
        yield heard
