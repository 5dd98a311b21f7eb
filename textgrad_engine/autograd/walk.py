"""The nodes behind the roots of a pass, in the order that decides the order of feedback."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from textgrad_engine.autograd.gradient import Items
from textgrad_engine.autograd.graph import FunctionNode, Node

__all__ = ["ExampleOrders", "Inside", "Place", "Visit", "place_of", "postorder"]

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


def postorder(roots: list[Node], visits: dict[Node, Visit]) -> tuple[list[Visit], ExampleOrders | None]:
    """Number all nodes behind the roots; see NOTE [Order of feedback], and for what comes second NOTE [Rank]."""
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
    return order, _rank_examples(roots, visits) if batches else None


def _of_batch(node: Node) -> str:
    """What a node does with a batch of `vmap`, "" for all others; see `Function.of_batch`."""
    return node.function.of_batch if type(node) is FunctionNode else ""


Inside: TypeAlias = dict[Any, int]
"""The example that something belongs to: for each level of batching its number there."""


@dataclass(frozen=True)
class ExampleOrders:
    """Which ranks come first for the examples that have them in another order than the first example has.

    Attributes:
        inside: for each node the example that it was recorded for.
        places: for each such example, what stands for a rank in its own order.
    """

    inside: dict[Node, Inside]
    places: dict[frozenset[tuple[Any, int]], dict[int, int]]

    def differ(self, ranks: Sequence[int]) -> bool:
        """Whether some example has these ranks, which are sorted, in another order."""
        for order in self.places.values():
            own = [order[rank] for rank in ranks if rank in order]
            if own != sorted(own):
                return True
        return False


def _rank_examples(roots: list[Node], visits: dict[Node, Visit]) -> ExampleOrders | None:
    """Rank the nodes so that each example of a batch has the order that it would have alone; see NOTE [Rank].

    The graph is walked once for each example. A node that examples share is put where the first of them has it; what
    is computed for an example alone is put behind the last shared node before it, as the first, second, … such node
    there. So what is done for one example and for the next comes to the same rank.
    """
    inside = _examples_of(roots)
    keys: dict[Node, tuple[int, ...]] = {}
    walks = {chosen: _order_one(roots, dict(chosen), inside, keys) for chosen in _whole_examples(inside.values())}
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
    for node, key in keys.items():
        visits[node].rank = ranks[key]
    places = {}
    for chosen, walk in walks.items():
        own = [ranks[key] for key in walk]
        if own != sorted(own):
            places[chosen] = {rank: place for place, rank in enumerate(own)}
    return ExampleOrders(inside, places) if places else None


def _examples_of(roots: list[Node]) -> dict[Node, Inside]:
    """For each node the example that it was recorded for."""
    inside: dict[Node, Inside] = {root: {} for root in roots}

    def leads_to(node: Node) -> Iterator[Node]:
        kind, own = _of_batch(node), inside[node]
        layer = _layer_of(node)
        if kind == "apart":
            own = {level: number for level, number in own.items() if level is not layer}
        for number, edge in enumerate(node.edges):
            if edge is not None:
                inside.setdefault(edge.node, {**own, layer: number} if kind == "together" else own)
                yield edge.node

    deque(_in_postorder(roots, leads_to), maxlen=0)
    return inside


def _whole_examples(found: Iterable[Inside]) -> list[frozenset[tuple[Any, int]]]:
    """The examples of inner batches, and those of outer ones that have none inside."""
    examples = dict.fromkeys([frozenset(example.items()) for example in found])
    parts = {frozenset(part) for whole in examples for size in range(len(whole)) for part in combinations(whole, size)}
    return [example for example in examples if example not in parts]


def _order_one(
    roots: list[Node], chosen: Inside, inside: dict[Node, Inside], keys: dict[Node, tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Walk what one example is made of, give a key to each node that has none, and return the keys as they come."""

    def leads_to(node: Node) -> Iterator[Node]:
        edges: Sequence[Any] = node.edges
        if _of_batch(node) == "together":
            number = chosen.get(_layer_of(node))
            edges = () if number is None else (edges[number],)
        for edge in edges:
            if edge is not None:
                yield edge.node

    last: tuple[int, ...] = ()  # the last node that all examples share and that an earlier walk has met
    behind: dict[int, tuple[int, ...]] = {}  # by depth: the last node that more examples share
    count: dict[int, int] = {}
    walk: list[tuple[int, ...]] = []
    for node in _in_postorder(roots, leads_to):
        if _of_batch(node):  # has no place in the order
            continue
        depth, key = len(inside[node]), keys.get(node)
        if key is None:
            count[depth] = count.get(depth, 0) + 1
            place = behind.get(depth, ()) if depth else last
            key = keys[node] = (*place, -depth, count[depth] if depth else len(keys))
        elif depth:
            count[depth] = key[-1]
        else:
            last = key
        for deeper in range(depth + 1, len(chosen) + 1):
            behind[deeper], count[deeper] = key, 0
        walk.append(key)
    return walk


def _layer_of(node: Node) -> Any:
    """The level of batching that a node takes apart or puts together."""
    return getattr(node.ctx, "layer", None) if type(node) is FunctionNode else None


def _in_postorder(roots: list[Node], leads_to: Callable[[Node], Iterator[Node]]) -> Iterator[Node]:
    """All nodes behind the roots, each after what it leads to."""
    seen: set[Node] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, leads_to(root))]
        while stack:
            node, following = stack[-1]
            for other in following:
                if other not in seen:
                    seen.add(other)
                    stack.append((other, leads_to(other)))
                    break
            else:
                stack.pop()
                yield node
