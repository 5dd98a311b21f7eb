"""The nodes behind the roots of a pass, in the order that decides the order of feedback."""

from __future__ import annotations

from dataclasses import dataclass, field

from textgrad_engine.autograd.gradient import Items
from textgrad_engine.autograd.graph import Node

__all__ = ["Place", "Visit", "place_of", "postorder"]

Place = tuple[int, int]
"""Where a gradient came from: the number of the node that sent it, and the position of the edge."""


@dataclass(slots=True)
class Visit:
    """What one pass knows about one node.

    Attributes:
        node: the node.
        number: its number in the pass.
        waits_for: how many nodes have not sent their gradients yet.
        needed: whether a gradient that somebody wants passes through it.
        gradients: for each output, what has been sent so far, with the place that it came from.
        arrived: for each output the items, in order, when all have been sent.
        returned: for each edge what the node's rule gave.
    """

    node: Node
    number: int
    waits_for: int = 0
    needed: bool = False
    gradients: list[list[tuple[Place, Items]]] = field(default_factory=list)
    arrived: list[Items] = field(default_factory=list)
    returned: list[Items] = field(default_factory=list)


def place_of(contribution: tuple[Place, Items]) -> Place:
    """What contributions to one place are sorted by."""
    return contribution[0]


def postorder(roots: list[Node], visits: dict[Node, Visit]) -> list[Visit]:
    """Number all nodes behind the roots; see NOTE [Order of feedback]."""
    order: list[Visit] = []
    for root in roots:
        if root in visits:
            continue
        visits[root] = Visit(root, -1)
        stack = [(root, iter(root.edges))]
        while stack:
            node, edges = stack[-1]
            for edge in edges:
                if edge is not None and edge.node not in visits:
                    visits[edge.node] = Visit(edge.node, -1)
                    stack.append((edge.node, iter(edge.node.edges)))
                    break
            else:
                stack.pop()
                visit = visits[node]
                visit.number = len(order)
                order.append(visit)
    return order
