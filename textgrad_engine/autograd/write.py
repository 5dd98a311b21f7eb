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
    hooked: list[tuple[Variable, Items]] = []
    grads: list[tuple[Variable, Items | None]] = []  # as they were
    freed: list[tuple[FunctionNode, Context]] = []
    try:
        for visit in order:
            node = visit.node
            if isinstance(node, AccumulateGrad):
                items = _said(visit.arrived[0]) if visit.arrived else []
                if accumulate and visit.needed and items:
                    grads.append((node.variable, node.variable._grad))
                    node.variable._grad = [*node.variable.grad, *items]
                    if node.variable._post_hooks:
                        hooked.append((node.variable, items))
            elif isinstance(node, FunctionNode) and retained and node.retained is not None and visit.arrived:
                arrived = prehooked.get(node, visit.arrived)
                for number, kept in node.retained.items():
                    if (variable := kept()) is not None:
                        grads.append((variable, variable._grad))
                        variable._grad = [*variable.grad, *map(entered, _said(arrived[number]))]
        for visit in () if retain_graph else order:
            node = visit.node
            if isinstance(node, FunctionNode) and visit.needed and node.ctx is not None:
                freed.append((node, node.ctx))
                node.ctx._freed, node.ctx = True, None
    except BaseException:  # Ctrl-C; the feedback was paid for, so the pass must be one that can be tried again
        for variable, old in reversed(grads):
            variable._grad = old
        for node, ctx in freed:
            ctx._freed, node.ctx = False, ctx
        raise
    after_accumulation(hooked)


def _said(items: Items) -> Items:
    """What is said in words: the start of a pass is not."""
    return [item for item in items if not is_start(item)]
