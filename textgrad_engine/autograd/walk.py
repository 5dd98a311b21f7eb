"""The plan of a pass: the nodes behind its roots in the order of their feedback, and which of them wait for which."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from textgrad_engine.autograd.gradient import Items
from textgrad_engine.autograd.graph import AccumulateGrad, FunctionNode, GradientEdge, Node
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.dispatch import Call

Contribution: TypeAlias = tuple[int, int, int, int, Variable]
"""An item that was sent to a node, and its place: the rank of the node that sent it, the position of the edge, the
sender's number; then the output that it is about, and the item."""


class Roots(NamedTuple):
    """Where a pass begins: for each item of a root's gradient the node, which output of that the root is, and the item.

    A root that nothing is said about has one entry too, with None.
    """

    nodes: list[Node]
    outputs: list[int]
    items: list[Variable | None]

    def add(self, root: Variable, gradient: Items) -> None:
        """One root more."""
        node, output_nr = root._gradient_node(), 0 if root._grad_fn is None else root.output_nr
        for item in gradient or (None,):
            self.nodes.append(node)
            self.outputs.append(output_nr)
            self.items.append(item)


class Visit:
    """What one pass knows about one node.

    Attributes:
        node: the node.
        number: its number in the pass.
        rank: its number, or that of the node that does the same for an earlier example of a batch.
        waits_for: how many nodes have not sent their gradients yet.
        needed: whether a gradient that somebody wants passes through it.
        targets: for each edge the visit of the node at its end; None where nobody wants what flows along it.
        gradients: what has been sent so far; None where nobody wants it.
        arrived: for each output the items, in order, when all have been sent.
        returned: for each edge what the node's rule gave.
        tell: takes the visit when a call has ended that it waits for; there is never more than one.
        outcome: what that call gave, or `SETTLED`.
        error: what it failed with.
    """

    __slots__ = (
        "arrived", "error", "gradients", "needed", "node", "number", "outcome", "rank", "returned", "targets", "tell",
        "waits_for",
    )  # fmt: skip
    tell: Callable[[Visit], None]
    outcome: Any
    error: BaseException | None

    def __init__(self, node: Node) -> None:
        self.node = node
        self.number = self.rank = -1
        self.waits_for = 0
        self.needed = False
        self.targets: Sequence[Visit | None] = ()
        self.gradients: list[Contribution] | None = None
        self.arrived: Sequence[Items] = ()
        self.returned: Sequence[Items] = ()

    def __call__(self, call: Call) -> None:
        """Say that the text of what the node's rule gave is there; a callback of its call."""
        self.outcome, self.error = SETTLED, call._error
        self.tell(self)


SETTLED: Any = object()
"""The outcome when the text of a rule's gradients is there."""

place_of = itemgetter(0, 1, 2)
"""What contributions to one place are sorted by."""


def plan(
    roots: list[Node], captures: Sequence[GradientEdge] | None
) -> tuple[dict[Node, Visit], list[Visit], ExampleOrders | None]:
    """The nodes behind the roots, by node and in order; and for batches the orders of examples, see NOTE [Rank].

    Args:
        roots: where the pass begins.
        captures: only what leads to these edges is needed; None stands for all leaves.
    """
    visits: dict[Node, Visit] = {}
    order, orders = _postorder(roots, visits)
    only = None if captures is None else set(captures)
    edges: Sequence[GradientEdge | None] | None = None
    targets: list[Visit | None] = []
    passed = set() if only is None else {edge.node for edge in only}  # may end at a node that is itself not needed
    for visit in order:  # postorder: what a node leads to comes before it
        node = visit.node
        if isinstance(node, AccumulateGrad):
            # A leaf that wants no feedback any longer gets none, as in PyTorch, and nothing is paid for it.
            visit.needed = node.variable._requires_grad if only is None else GradientEdge(node, 0) in only
        else:
            if node.call is not None and node.call.done and node.call._error is None:
                node.call = None  # type: ignore[misc]  # a FunctionNode; and the call has told all that it will
            if node.edges is not edges:  # calls of a loop share theirs
                edges, targets = node.edges, []
                for edge in edges:
                    target = None if edge is None else visits[edge.node]
                    wanted = target is not None and (target.needed or (only is not None and edge in only))
                    targets.append(target if wanted else None)
            for target in targets:
                if target is not None:
                    target.waits_for += 1
                    visit.needed = True
            visit.targets = targets
        if visit.needed or node in passed:
            visit.gradients = []
    return visits, order, orders


def _postorder(roots: list[Node], visits: dict[Node, Visit]) -> tuple[list[Visit], ExampleOrders | None]:
    """Number all nodes behind the roots; see NOTE [Order of feedback], and for what comes second NOTE [Rank]."""
    order: list[Visit] = []
    batches = False
    for root in roots:
        if root in visits:
            continue
        visit = visits[root] = Visit(root)
        stack = [(visit, iter(root.edges))]
        while stack:
            visit, edges = stack[-1]
            for edge in edges:
                if edge is not None and edge.node not in visits:
                    node = edge.node
                    below = visits[node] = Visit(node)
                    stack.append((below, iter(node.edges)))
                    break
            else:
                stack.pop()
                visit.number = visit.rank = len(order)
                node = visit.node
                batches = batches or (type(node) is FunctionNode and node.function.of_batch == "together")
                order.append(visit)
    return order, _rank_examples(roots, visits) if batches else None


def of_batch(node: Node) -> str:
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
        kind, own = of_batch(node), inside[node]
        layer = layer_of(node)
        if kind == "apart":
            own = {level: number for level, number in own.items() if level is not layer}
        for number, edge in enumerate(node.edges):
            if edge is not None:
                inside.setdefault(edge.node, {**own, layer: number} if kind == "together" else own)
                yield edge.node

    deque(in_postorder(roots, leads_to), maxlen=0)
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
        if of_batch(node) == "together":
            number = chosen.get(layer_of(node))
            edges = () if number is None else (edges[number],)
        for edge in edges:
            if edge is not None:
                yield edge.node

    last: tuple[int, ...] = ()  # the last node that all examples share and that an earlier walk has met
    behind: dict[int, tuple[int, ...]] = {}  # by depth: the last node that more examples share
    count: dict[int, int] = {}
    walk: list[tuple[int, ...]] = []
    for node in in_postorder(roots, leads_to):
        if of_batch(node):  # has no place in the order
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


def layer_of(node: Node) -> Any:
    """The level of batching that a node takes apart or puts together."""
    return getattr(node.ctx, "layer", None) if type(node) is FunctionNode else None


def in_order_of_turns(roots: Sequence[Node]) -> dict[Node, int]:
    """For each node behind the roots its place in a pass that goes from node to node, the first root and edge first."""

    def leads_to(node: Node) -> Iterator[Node]:
        return (edge.node for edge in reversed(node.edges) if edge is not None)

    last_first = list(in_postorder(roots[::-1], leads_to))
    return {node: place for place, node in enumerate(reversed(last_first))}


def in_postorder(roots: Sequence[Node], leads_to: Callable[[Node], Iterator[Node]]) -> Iterator[Node]:
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
