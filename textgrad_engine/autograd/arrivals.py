"""The feedback that has arrived at a node: in the order of its examples, seen by hooks, and captured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine.autograd.backward_rules import InOrder
from textgrad_engine.autograd.gradient import Items, without_zeros
from textgrad_engine.autograd.graph import AccumulateGrad, FunctionNode, GradientEdge, Node
from textgrad_engine.autograd.hooks import MultiGradHook, on_gradient
from textgrad_engine.autograd.rules import run_rule
from textgrad_engine.autograd.walk import Contribution, ExampleOrders, Visit


class Arrivals:
    """What one backward pass brings to each node.

    Args:
        visits: of the pass, by node.
        orders: of the nodes for each example of a batch; None where all have the same.
        captures: the edges whose gradients are wanted; None stands for all leaves.

    Attributes:
        captured: the gradients at these edges, as far as they have arrived.
        multi: what has arrived for hooks on several gradients.
    """

    def __init__(
        self, visits: Mapping[Node, Visit], orders: ExampleOrders | None, captures: Sequence[GradientEdge] | None
    ) -> None:
        self._visits, self._orders = visits, orders
        self.captured: dict[GradientEdge, Items] = {edge: [] for edge in captures or ()}
        self.multi: dict[MultiGradHook, Any] = {}

    def at(self, node: Node, sent: list[Contribution]) -> list[Items]:
        """For each output of a node the feedback on it, after hooks.

        Args:
            node: the node.
            sent: what was sent to it, in the order of the graph.
        """
        arrived = []
        by_output = None if node.num_outputs == 1 else _by_output(sent)
        for number in range(node.num_outputs):
            contributions = sent if by_output is None else by_output.get(number, [])
            if len(contributions) > 1:
                contributions = self._ordered_for_examples(node, contributions)
            items = []
            for one in contributions:
                items.append(one[4])  # noqa: PERF401  a comprehension would cost a frame
            items = without_zeros(items)
            if node.variable._hooks if type(node) is AccumulateGrad else node.hooks:  # type: ignore[attr-defined]
                items = self._hooked(node, number, items)
            arrived.append(items)
            if self.captured and (edge := GradientEdge(node, number)) in self.captured:
                self.captured[edge] = items
        return arrived

    def _ordered_for_examples(self, node: Node, contributions: list[Contribution]) -> list[Contribution]:
        """Where the feedback of examples has different orders, give each its own; NOTE [Rank] in ``engine.py``."""
        orders = self._orders
        if orders is None or (isinstance(node, FunctionNode) and node.function.of_batch):
            return contributions
        if orders.differ([one[0] for one in contributions]):
            items = run_rule(InOrder(contributions, orders, orders.inside[node]))
            return [(*contributions[0][:4], item) for item in items]
        return contributions

    def _hooked(self, node: Node, number: int, items: Items) -> Items:
        if isinstance(node, FunctionNode):
            hooks = node.hooks.get(number) if node.hooks is not None else None
        else:
            hooks = node.variable._hooks  # type: ignore[attr-defined]  # the other kind is AccumulateGrad
        return on_gradient(self, GradientEdge(node, number), hooks, items) if hooks else items

    def reaches(self, edge: GradientEdge) -> bool:
        """Whether the gradient at an edge is computed in this pass."""
        visit = self._visits.get(edge.node)
        return visit is not None and (visit.needed or edge in self.captured)


def _by_output(sent: Sequence[Contribution]) -> dict[int, list[Contribution]]:
    """What was sent to each output of a node, in order."""
    found: dict[int, list[Contribution]] = {}
    for one in sent:
        found.setdefault(one[3], []).append(one)
    return found
