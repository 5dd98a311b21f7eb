"""Inputs that a forward comes upon on its way.

NOTE [Late inputs]
    What a call is made of is known when it is dispatched: its arguments. A Function that says `finds_inputs` may be
    made of more, such as of what the tools gave that a model called. Its forward, which is dispatched, names each such
    value by `late_input`, in an order that does not depend on time. In the graph they are inputs like any other: their
    edges stand behind those of the arguments, and so do their entries in `needs_input_grad` and in what its rule
    returns.

    A node that may have late inputs is recorded wherever grad mode is on, as nobody can know beforehand whether one of
    them wants feedback. Whoever walks the graph waits at it for its forward (`LateNode.edges`), which costs a backward
    pass nothing where the loss was read before. Of a forward that failed there are none. A transform (`func.grad`,
    `func.jvp`) has a graph of its own, in which there are none either.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from textgrad_engine.autograd.grad_mode import set_grad_enabled
from textgrad_engine.autograd.graph import FunctionNode, GradientEdge
from textgrad_engine.autograd.variable import Variable

if TYPE_CHECKING:
    from textgrad_engine.autograd.context import Context


class LateInput(NamedTuple):
    """What a forward came upon.

    Attributes:
        variable: the value.
        note: what the rule needs to know of it.
        version: that of the value then; feedback on it does not fit a later one.
    """

    variable: Variable
    note: Any
    version: int


FOUND: ContextVar[list[LateInput] | None] = ContextVar("textgrad_engine_late_inputs", default=None)
"""What the forward has come upon in which code runs; None where nothing is recorded."""


def may_find_inputs() -> bool:
    """Whether code runs inside of a forward that is recorded and may come upon inputs."""
    return FOUND.get() is not None


@contextlib.contextmanager
def finding_inputs() -> Iterator[None]:
    """Inside the block, of a forward, operations are recorded if the forward itself is, so that they may be inputs."""
    if FOUND.get() is None:
        yield
        return
    with set_grad_enabled(True):
        yield


def late_input(variable: Variable, note: Any = None) -> None:
    """Say that the result of the forward that runs is made of a value, too; nothing where that wants no feedback.

    Args:
        variable: the value.
        note: what the rule needs to know of it; it finds both in ``ctx.late_inputs``.
    """
    found = FOUND.get()
    if found is not None and variable._requires_grad:
        found.append(LateInput(variable, note, variable._version))


class LateNode(FunctionNode):
    """The node of a call whose forward may come upon inputs."""

    __slots__ = ("_edges", "_whole")

    @property
    def edges(self) -> tuple[GradientEdge | None, ...]:
        """Those of the arguments and, behind them, of the late inputs; waits for the forward."""
        call = self.call
        if not self._whole:
            if call is not None:
                call.wait()
            with _extending:
                if not self._whole:
                    self._extend(self.ctx)
        return self._edges

    @edges.setter
    def edges(self, edges: tuple[GradientEdge | None, ...]) -> None:
        self._edges, self._whole = edges, False

    def _extend(self, ctx: Context | None) -> None:
        if ctx is not None and (late := [each.variable._gradient_edge() for each in ctx.late]):
            first = len(self._edges)
            self.layout = (*self.layout, *range(first, first + len(late)))
            ctx.needs_input_grad = (*ctx.needs_input_grad, *[True] * len(late))
            self._edges = (*self._edges, *late)
        self._whole = True


_extending = threading.Lock()
