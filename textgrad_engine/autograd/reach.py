"""Which gradients are wanted for one example of a batch only: where feedback is a zero for others, nothing leads on.

NOTE [What an example reaches]
    Where a level above a `vmap` records what is made of feedback (feedback on feedback), a value stands for all
    examples, and for some of them the feedback may be a zero: it is made of nothing, and in a loop nothing would be
    recorded of it. The node that puts the examples' values together (`Gather`) has no edge for these. So what is wanted
    of a node is worked out for each example, along the edges that it has: a rule is not run for an example that reaches
    nothing, and is told which inputs want feedback there. In graphs without such a gap all examples want the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from textgrad_engine.autograd.graph import AccumulateGrad, GradientEdge, Node
from textgrad_engine.autograd.walk import Inside, in_postorder, layer_of, of_batch


class Reach:
    """What examples want of the nodes of a pass; see NOTE [What an example reaches].

    Args:
        roots: where the pass begins.
        captures: the edges that gradients are wanted at; None stands for all leaves.
    """

    def __init__(self, roots: Sequence[Node], captures: Collection[GradientEdge] | None) -> None:
        self._roots, self._captures = roots, None if captures is None else frozenset(captures)
        self._known: dict[frozenset[tuple[Any, int]], dict[Node, tuple[bool, ...]]] = {}

    def wanted(self, node: Node, inside: Inside) -> tuple[bool, ...]:
        """For each edge of a node whether an example wants the gradient along it.

        Args:
            node: the node.
            inside: the example; of a level of batching that it does not name, all examples count.
        """
        key = frozenset(inside.items())
        if key not in self._known:
            self._known[key] = self._walk(inside)
        return self._known[key].get(node) or (False,) * len(node.edges)

    def _walk(self, inside: Inside) -> dict[Node, tuple[bool, ...]]:
        def edges_of(node: Node) -> Iterator[GradientEdge | None]:
            number = inside.get(layer_of(node)) if of_batch(node) == "together" else None
            for position, edge in enumerate(node.edges):
                yield edge if number is None or number == position else None

        def leads_to(node: Node) -> Iterator[Node]:
            return (edge.node for edge in edges_of(node) if edge is not None)

        found: dict[Node, tuple[bool, ...]] = {}
        for node in in_postorder(self._roots, leads_to):
            found[node] = tuple([edge is not None and self._is_wanted(edge, found) for edge in edges_of(node)])
        return found

    def _is_wanted(self, edge: GradientEdge, found: dict[Node, tuple[bool, ...]]) -> bool:
        if self._captures is not None and edge in self._captures:
            return True
        if isinstance(edge.node, AccumulateGrad):
            return self._captures is None and edge.node.variable._requires_grad
        return any(found[edge.node])


def reach_of(nodes: Collection[Node], roots: Sequence[Node], captures: Collection[GradientEdge] | None) -> Reach | None:
    """What examples want; None where all of them want the same."""
    gaps = any(of_batch(node) == "together" and None in node.edges for node in nodes)
    return Reach(roots, captures) if gaps else None
