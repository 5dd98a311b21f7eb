"""What a pass leaves behind when all of it has succeeded: see NOTE [All or nothing] in ``engine.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textgrad_engine.autograd.gradient import Items, entered, is_start
from textgrad_engine.autograd.graph import AccumulateGrad, FunctionNode, Node
from textgrad_engine.autograd.hooks import after_accumulation
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.autograd.walk import Visit

__all__ = ["write"]


def write(
    order: Sequence[Visit],
    prehooked: Mapping[Node, Sequence[Items]],
    *,
    accumulate: bool,
    retain_graph: bool,
    retained: bool,
) -> None:
    """Write the feedback that arrived, in graph order; then call the hooks of the leaves.

    Args:
        order: the nodes of the pass.
        prehooked: what had arrived at nodes before their prehooks changed it.
        accumulate: append to the leaves' `.grad`.
        retain_graph: keep what the nodes saved.
        retained: write the gradients of results that asked for it.
    """
    hooked: list[tuple[Variable, Items]] = []
    for visit in order:
        node = visit.node
        if isinstance(node, AccumulateGrad):
            items = [item for item in visit.arrived[0] if not is_start(item)] if visit.arrived else []
            if accumulate and visit.needed and items:
                node.variable._grad = [*node.variable.grad, *items]
                if node.variable._post_hooks:
                    hooked.append((node.variable, items))
        elif isinstance(node, FunctionNode):
            if retained and node.retained is not None and visit.arrived:
                arrived = prehooked.get(node, visit.arrived)
                for number, kept in node.retained.items():
                    if (variable := kept()) is not None:
                        own = [entered(item) for item in arrived[number] if not is_start(item)]
                        variable._grad = [*variable.grad, *own]
            if not retain_graph and visit.needed and node.ctx is not None:
                node.ctx._freed = True
                node.ctx = None
    after_accumulation(hooked)
