"""What a pass leaves behind when all of it has succeeded: see NOTE [All or nothing] in ``engine.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textgrad_engine.autograd.context import Context
from textgrad_engine.autograd.gradient import Items, entered, is_start
from textgrad_engine.autograd.graph import AccumulateGrad, FunctionNode, Node
from textgrad_engine.autograd.hooks import after_accumulation
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.autograd.walk import Visit


def write(
    order: Sequence[Visit],
    prehooked: Mapping[Node, Sequence[Items]],
    *,
    accumulate: bool,
    retain_graph: bool,
    retained: bool,
) -> None:
    """Write the feedback that arrived, in graph order, and free the graph; then call the hooks of the leaves.

    An interruption before that undoes what was written and freed.

    Args:
        order: the nodes of the pass.
        prehooked: what had arrived at nodes before their prehooks changed it.
        accumulate: append to the leaves' `.grad`.
        retain_graph: keep what the nodes saved.
        retained: write the gradients of results that asked for it.
    """
    written = _Written()
    try:
        for visit in order:
            node = visit.node
            if isinstance(node, AccumulateGrad):
                if accumulate and visit.needed and visit.arrived:
                    written.accumulate(node.variable, _said(visit.arrived[0]))
            elif isinstance(node, FunctionNode) and retained and node.retained is not None and visit.arrived:
                arrived = prehooked.get(node, visit.arrived)
                for number, kept in node.retained.items():
                    if (variable := kept()) is not None:
                        written.retain(variable, _said(arrived[number]))
        if not retain_graph:
            for visit in order:
                if isinstance(visit.node, FunctionNode) and visit.needed and visit.node.ctx is not None:
                    written.free(visit.node, visit.node.ctx)
    except BaseException:  # Ctrl-C; the feedback was paid for, so the pass must be one that can be tried again
        written.undo()
        raise
    after_accumulation(written.hooked)


class _Written:
    """What was written, and how it was before.

    Attributes:
        hooked: leaves that have hooks for what was appended to them, with that.
    """

    def __init__(self) -> None:
        self.hooked: list[tuple[Variable, Items]] = []
        self._grads: list[tuple[Variable, Items | None]] = []  # as they were
        self._freed: list[tuple[FunctionNode, Context]] = []

    def accumulate(self, leaf: Variable, items: Items) -> None:
        if items:
            self._grads.append((leaf, leaf._grad))
            leaf._grad = [*leaf.grad, *items]
            if leaf._post_hooks:
                self.hooked.append((leaf, items))

    def retain(self, result: Variable, items: Items) -> None:
        self._grads.append((result, result._grad))
        result._grad = [*result.grad, *map(entered, items)]

    def free(self, node: FunctionNode, ctx: Context) -> None:
        self._freed.append((node, ctx))
        ctx._freed, node.ctx = True, None

    def undo(self) -> None:
        for variable, old in reversed(self._grads):
            variable._grad = old
        for node, ctx in self._freed:
            ctx._freed, node.ctx = False, ctx


def _said(items: Items) -> Items:
    """What is said in words: the start of a pass is not."""
    return [item for item in items if not is_start(item)]
