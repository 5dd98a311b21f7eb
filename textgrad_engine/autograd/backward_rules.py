"""Backward rules of one node or of several, and the order of what they pass on.

See NOTE [One example at a time] in `rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from textgrad_engine import dispatch
from textgrad_engine.autograd.arguments import gradients_by_variable, needs_by_argument
from textgrad_engine.autograd.context import Context, ExampleContexts
from textgrad_engine.autograd.function import Function
from textgrad_engine.autograd.gradient import Intake, Items, as_items, combine, is_start, uncombined, without_zeros
from textgrad_engine.autograd.graph import FunctionNode, Source
from textgrad_engine.autograd.reach import Reach
from textgrad_engine.autograd.rules import Rule, Split, gathered_items
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.autograd.walk import Contribution, ExampleOrders, Inside, place_of
from textgrad_engine.callables import misfit
from textgrad_engine.dispatch import Call

Sorted: TypeAlias = dict[FunctionNode, list[Items]]
"""What the rules of some nodes returned: for each node its items by edge."""


@dataclass(slots=True)
class RuleCall:
    """A node whose feedback has arrived.

    Attributes:
        node: the node.
        ctx: what its forward left.
        arrived: for each output the items of feedback on it, in order.
        wanted: for each edge something true if a gradient along it is of use.
        needs: `needs_input_grad` of this pass; None for that of the forward.
        reach: what examples of a batch want, where they differ in it.
        inside: the example that the call is for, as far as a batch was taken apart.
    """

    node: FunctionNode
    ctx: Context
    arrived: Sequence[Items]
    wanted: Sequence[object]
    needs: tuple[bool, ...] | None = None
    reach: Reach | None = None
    inside: Inside = field(default_factory=dict)

    def of_example(self, split: Split, number: int) -> RuleCall:
        """The call for one example of a batch, which has heard nothing yet."""
        ctx = _context_of(self.ctx, split, number)
        if self.reach is None:
            return RuleCall(self.node, ctx, (), self.wanted, self.needs)
        inside = {**self.inside, split.layer: number}
        wanted = self.reach.wanted(self.node, inside)
        needs = None if self.needs is None else needs_by_argument(self.node.layout, list(wanted))
        return RuleCall(self.node, ctx, (), wanted, needs, self.reach, inside)

    def context(self) -> Context:
        """What the rule is given."""
        return self.ctx if self.needs is None else self.ctx._with(needs_input_grad=self.needs)

    def gradients(self) -> list[Variable | None]:
        """What the rule is given for each output."""
        materialize = self.ctx._materialize
        as_one = uncombined if self.node.function.of_batch else combine  # text of a batch is text of each example
        found: list[Variable | None] = []
        shapes, plain = self.ctx._shapes if as_one is combine else None, self.ctx._plain
        if shapes is not None or plain:
            for number, items in enumerate(self.arrived):
                if not items and (not materialize or number in plain):
                    found.append(None)
                else:
                    found.append(as_one(items) if shapes is None else combine(items, shapes.get(number)))
            return found
        for items in self.arrived:
            found.append(as_one(items) if items or materialize else None)  # noqa: PERF401  it would cost a frame
        return found

    def sorted(self, returned: Any, *, fresh: bool = False) -> list[Items]:
        """What the rule returned, as items for each edge, each with where it came from.

        Args:
            returned: what the rule returned.
            fresh: the rule made the Variables in it for this call.
        """
        found: list[Items] = []
        source = intake = None
        for grad, wanted in zip(gradients_by_variable(self.node, returned), self.wanted):
            if not wanted or grad is None:
                found.append([])
                continue
            if fresh and type(grad) is Variable:
                items = [grad]
            else:
                if intake is None:
                    intake = Intake(self.arrived)
                items = intake.take(as_items(grad, f"{self.node.function.__name__}.backward"))
            found.append(items)
            for item in items:
                if (item.source is None or not item.source.node) and not is_start(item):
                    source = source or self._source()
                    given = item.source  # an evaluator says its score, and what hands on to parts says to which
                    if given is None:
                        item.source = source
                    else:
                        item.source = replace(
                            source,
                            score=given.score,
                            places=given.places,
                            direct=given.direct,
                            shares=given.shares or source.shares,
                            case=given.case,
                        )
                    if intake is not None and (item.source.places or intake.hands_through(item)):
                        item.source = replace(item.source, because=())  # it was not made of what was said here
        return found

    def _source(self) -> Source:
        because: list[Variable] = []
        score = None
        shares: tuple[tuple[str, float], ...] = ()
        for items in self.arrived:
            for item in items:
                if not is_start(item):
                    because.append(item)
                    if (source := item.source) is not None:
                        if score is None:
                            score = source.score
                        shares += source.shares
        node, ctx = self.node, self.ctx
        said_of = node.function.describe_output(ctx)
        once = tuple(dict.fromkeys(shares)) if shares else ()
        return Source(ctx.example, node.name(), said_of, score, tuple(because), shares=once)


def run_together(calls: Sequence[RuleCall]) -> list[list[Items]]:
    """Run the rules of several nodes of a Function that has one for many; for each node its items by edge."""
    ctxs = [call.ctx if call.needs is None else call.context() for call in calls]
    many = calls[0].node.function.backward_many(ctxs, [call.gradients() for call in calls])
    return [call.sorted(returned, fresh=True) for call, returned in zip(calls, many, strict=True)]


def _note_arguments(function: type[Function], ctx: Context, grads: Sequence[Any], error: TypeError) -> None:
    """Say what a backward rule is given, where its parameters do not fit that."""
    takes = misfit(function.backward, ctx, *grads)
    if not takes:
        return
    each = "a gradient for its output" if len(grads) == 1 else f"a gradient for each of its {len(grads)} outputs"
    note = (
        f"{function.__name__}.backward takes {takes}, and is called with the ctx and {each}; write a static method "
        f"backward({', '.join(['ctx', *(f'grad_{number}' for number in range(len(grads)))])})"
    )
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


class Backward(Rule):
    """The backward rule of one node, or of several nodes of one Function that share a call."""

    __slots__ = ("calls", "function", "together")

    def __init__(self, calls: list[RuleCall], together: bool) -> None:
        self.calls, self.together = calls, together
        self.function = calls[0].node.function

    def values(self) -> Iterator[Any]:
        """The contexts, and all feedback."""
        for call in self.calls:
            yield call.ctx
            for items in call.arrived:
                yield from items

    def run(self) -> Sorted | Call:
        """For each node its items by edge; a Call for them where the rule is asynchronous."""
        function, calls = self.function, self.calls
        if self.together:
            return {call.node: items for call, items in zip(calls, run_together(calls))}
        (call,) = calls
        ctx, grads = call.context(), call.gradients()
        if not function.backward_is_async:
            try:
                return {call.node: call.sorted(function.backward(ctx, *grads))}
            except NotImplementedError as error:
                note = f"Feedback was to pass through {function.__name__}."
                if note not in getattr(error, "__notes__", ()):  # of a batch, its own rule says so too
                    error.add_note(note)
                raise
            except TypeError as error:
                _note_arguments(function, ctx, grads, error)
                raise

        async def wait() -> Sorted:
            try:
                rule = function.backward(ctx, *grads)
            except TypeError as error:
                _note_arguments(function, ctx, grads, error)
                raise
            return {call.node: call.sorted(await rule)}

        return dispatch.submit(wait, label=call.node.name())

    def examples(self, split: Split) -> Iterable[int]:
        """Of what was done for one example, as a level above a batch records it, only that one hears anything."""
        found = set()
        for call in self.calls:
            for items in call.arrived:
                for item in items:
                    number = split.only(item)
                    if number is None:
                        return range(split.size)
                    found.add(number)
        return sorted(found)

    def of_example(self, split: Split, number: int) -> Backward | None:
        """With what is said about the example; without the nodes that nothing is said to."""
        calls = []
        for call in self.calls:
            part = call.of_example(split, number)
            ctx = part.ctx
            own = [[] if output in ctx._marked else items for output, items in enumerate(call.arrived)]
            arrived = [without_zeros(split.part(items, number)) for items in own]
            if any(arrived) and any(part.wanted):
                part.arrived = arrived
                calls.append(part)
        return Backward(calls, self.together) if calls else None

    def gathered(self, split: Split, results: dict[int, Any]) -> Sorted | Call:
        """Batches of the items, when these are there: the first of each example, the second of each, and so on."""
        if not any(isinstance(result, Call) or _pending_in(result) for result in results.values()):
            return self._gathered(split, results)

        async def when_there() -> Sorted:
            found = {n: await result if isinstance(result, Call) else result for n, result in results.items()}
            for call in [call for result in found.values() for call in _pending_in(result)]:
                await call
            return self._gathered(split, found)

        return dispatch.submit(when_there, label=self.calls[0].node.name())

    def _gathered(self, split: Split, results: dict[int, Sorted]) -> Sorted:
        found: Sorted = {}
        for call in self.calls:
            heard = [(number, result[call.node]) for number, result in results.items() if call.node in result]
            edges = range(len(call.node.edges))
            found[call.node] = [gathered_items(split, {n: by_edge[edge] for n, by_edge in heard}) for edge in edges]
        return found


class InOrder(Rule):
    """Feedback that has come together at one place, in the order of each example; see NOTE [Rank] in ``engine.py``."""

    __slots__ = ("contributions", "example", "orders")
    function = Function

    def __init__(self, contributions: list[Contribution], orders: ExampleOrders, example: Inside) -> None:
        self.contributions, self.orders, self.example = contributions, orders, example

    def values(self) -> Iterator[Any]:
        """All items."""
        yield from [item for *_, item in self.contributions]

    def run(self) -> Items:
        """Sort them."""
        order = self.orders.places.get(frozenset(self.example.items()), {})
        by_place = sorted(self.contributions, key=lambda one: (order.get(one[0], one[0]), place_of(one)))
        return [item for *_, item in by_place]

    def of_example(self, split: Split, number: int) -> InOrder:
        """What of them is said about the example."""
        own = [(*one[:4], split.part(one[4], number)) for one in self.contributions]
        own = [one for one in own if not one[4]._says_nothing()]
        return InOrder(own, self.orders, {**self.example, split.layer: number})

    def gathered(self, split: Split, results: dict[int, Any]) -> Items:
        """Batches again."""
        return gathered_items(split, results)


def _pending_in(result: Sorted) -> list[Call]:
    """The calls that items wait for."""
    items = [item for by_edge in result.values() for items in by_edge for item in items]
    return [
        call for item in items if item._call is not None for call in item._pending() if not call.done or call.failed
    ]


def _context_of(ctx: Context, split: Split, number: int) -> Context:
    """The context for one example; of a call that is the same for all, under the example's name."""
    if isinstance(ctx, ExampleContexts):
        if ctx.layer is split.layer:
            return ctx.parts[number]
        return ExampleContexts(ctx.layer, [_context_of(part, split, number) for part in ctx.parts])
    parts = tuple([_context_of(part, split, number) for part in ctx._parts])
    return ctx._with(example=split.name_of(ctx.example, number), _parts=parts)
