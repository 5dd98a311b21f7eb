"""The nodes behind the roots of a pass, in the order that decides the order of feedback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from textgrad_engine.autograd.gradient import Items
from textgrad_engine.autograd.graph import FunctionNode, Node

__all__ = ["Place", "Visit", "place_of", "postorder"]

Place = tuple[int, int, int]
"""Where a gradient came from: the rank of the node that sent it, the position of the edge, the node's number."""


@dataclass(slots=True)
class Visit:
    """What one pass knows about one node.

    Attributes:
        node: the node.
        number: its number in the pass.
        rank: its number, or that of the node that does the same for an earlier example of a batch.
        waits_for: how many nodes have not sent their gradients yet.
        needed: whether a gradient that somebody wants passes through it.
        gradients: for each output, what has been sent so far, with the place that it came from.
        arrived: for each output the items, in order, when all have been sent.
        returned: for each edge what the node's rule gave.
    """

    node: Node
    number: int
    rank: int = -1
    waits_for: int = 0
    needed: bool = False
    gradients: Sequence[list[tuple[Place, Items]]] = ()
    arrived: Sequence[Items] = ()
    returned: Sequence[Items] = ()


def place_of(contribution: tuple[Place, Items]) -> Place:
    """What contributions to one place are sorted by."""
    return contribution[0]


def postorder(roots: list[Node], visits: dict[Node, Visit]) -> list[Visit]:
    """Number all nodes behind the roots; see NOTE [Order of feedback]."""
    order: list[Visit] = []
    batches = False
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
                visit.number = visit.rank = len(order)
                batches = batches or _of_batch(node) == "together"
                order.append(visit)
    if batches:
        _rank_examples(roots, visits)
    return order


def _of_batch(node: Node) -> str:
    """What a node does with a batch of `vmap`, "" for all others; see `Function.of_batch`."""
    return node.function.of_batch if type(node) is FunctionNode else ""


class _Example:
    """What was computed for one example of a batch, while it is walked.

    Attributes:
        around: the example of an outer batch that this batch belongs to.
        known: the ranks of what was computed for the examples so far: of each Function's first use, second use, …
        uses: how often each Function has been met in this example.
    """

    def __init__(self, around: _Example | None, known: dict[tuple[type, int], int]) -> None:
        self.around, self.known = around, known
        self.uses: Counter[type] = Counter()

    def rank(self, function: type, number: int) -> int:
        """The rank of the next use of a Function; its number, where no example before this one has got so far."""
        self.uses[function] += 1
        return self.known.setdefault((function, self.uses[function]), number)


def _rank_examples(roots: list[Node], visits: dict[Node, Visit]) -> None:
    """Give what was computed for each example of a batch a rank that examples have in common; see NOTE [Rank]."""
    walked: set[Node] = set()
    for root in roots:
        stack = [_frame(root, None)] if root not in walked else []
        walked.add(root)
        while stack:
            node, own, edges = stack[-1]
            for edge, inside in edges:
                if edge is not None and edge.node not in walked:
                    walked.add(edge.node)
                    stack.append(_frame(edge.node, inside))
                    break
            else:
                stack.pop()
                _rank(visits[node], own)


def _frame(node: Node, inside: _Example | None) -> tuple[Node, _Example | None, Iterator[Any]]:
    """A node, the example that it belongs to, and its edges, each with the example that it leads to."""
    kind = _of_batch(node)
    if kind == "apart" and inside is not None:
        inside = inside.around
    if kind != "together":
        return node, inside, zip(node.edges, repeat(inside))
    known: dict[tuple[type, int], int] = {}
    return node, inside, zip(node.edges, (_Example(inside, known) for _ in node.edges))


def _rank(visit: Visit, own: _Example | None) -> None:
    while own is not None and isinstance(visit.node, FunctionNode):
        visit.rank = own.rank(visit.node.function, visit.rank)
        own = own.around
