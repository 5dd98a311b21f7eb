"""A Function's own `vmap` rule, as one call that the levels below the batch see.

NOTE [An own rule is a forward]
    A static method `vmap` says how the outputs of a whole batch are computed, and no more: what feedback on them means
    is said by the Function's `backward`, and what an edit changes by its `jvp`, each for one example. So the rule is
    run as the forward of a Function (`_OwnRule`), whose `setup_context`, `backward` and `jvp` are those of the first,
    once per example. A level below records it like any other call; an outer batch runs it once for each of its
    examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, FunctionNode, Variable
from textgrad_engine.autograd.arguments import layout_of
from textgrad_engine.autograd.backward_rules import Backward, RuleCall, Sorted
from textgrad_engine.autograd.gradient import Items, as_items, without_zeros
from textgrad_engine.autograd.rules import SetUp
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.columns import unbound
from textgrad_engine.func.jvp import run_jvp, without_zero_edits
from textgrad_engine.ops.batching import Stack

if TYPE_CHECKING:
    from textgrad_engine.func.vmap import VmapLayer

Randomness = Literal["error", "same", "different"]


@dataclass(frozen=True)
class VmapInfo:
    """What a Function's own `vmap` rule is told.

    Attributes:
        batch_size: how many examples there are.
        randomness: what the user wants of sampled models: ``"error"``, ``"same"``, ``"different"`` or None.
    """

    batch_size: int
    randomness: Randomness | None


def run_own_rule(layer: VmapLayer, function: type[Function], args: tuple[Any, ...]) -> Any:
    """Call the static method `vmap` of a Function with whole batches, for a level of batching."""
    leaves, spec = pytree.flatten(args)
    batched = tuple([isinstance(leaf, Variable) and leaf._layer is layer for leaf in leaves])
    columns = [list(leaf._inner) if flag else leaf for leaf, flag in zip(leaves, batched)]
    given = _Given(layer, function, spec, batched)
    made, *outs = _as_forward(function).apply(given, *columns)
    whole = tuple([layer.batch(value) if dim == 0 else value for dim, value in made.taken_apart(outs)])
    return whole[0] if made.single else whole


@dataclass(frozen=True)
class _Given:
    """What a call is made of, beside its columns: for each leaf of the arguments its values, or the one for all."""

    layer: VmapLayer
    function: type[Function]
    spec: pytree.TreeSpec
    batched: tuple[bool, ...]

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments, or something else for each of them, from the leaves."""
        found: tuple[Any, ...] = pytree.unflatten(self.spec, list(leaves))
        return found

    def of_example(self, columns: Sequence[Any], number: int) -> tuple[Any, ...]:
        """The arguments of one example."""
        flags = zip(columns, self.batched)
        return self.arguments([column[number] if flag and column is not None else column for column, flag in flags])

    def needs(self, by_column: Sequence[bool]) -> tuple[bool, ...]:
        """For each argument whether anything in it wants a gradient."""
        return tuple([any(pytree.leaves(needed)) for needed in self.arguments(by_column)])


@dataclass(frozen=True)
class _Made:
    """What the outputs are: whether there is but one, and for each whether it is a batch (0)."""

    size: int
    single: bool
    dims: tuple[int | None, ...]

    def taken_apart(self, outs: Sequence[Any]) -> Iterator[tuple[int | None, Any]]:
        """For each output whether it is a batch, and the values of a batch, or the one for all."""
        place = 0
        for dim in self.dims:
            count = self.size if dim == 0 else 1
            yield dim, list(outs[place : place + count]) if dim == 0 else outs[place]
            place += count

    def of_example(self, outs: Sequence[Any], number: int) -> tuple[Any, ...]:
        """The outputs of one example."""
        found, place = [], 0
        for dim in self.dims:
            found.append(outs[place + number] if dim == 0 else outs[place])
            place += self.size if dim == 0 else 1
        return tuple(found)

    def heard(self, grads: Sequence[Any], number: int) -> list[Items]:
        """What is said about the outputs of one example; about one that is the same for all, only the first is told."""
        of_own = [
            grad if dim == 0 or number == 0 else None for dim, grad in zip(self.dims, self.of_example(grads, number))
        ]
        return [without_zeros(as_items(grad, "")) for grad in of_own]


def _as_forward(function: type[Function]) -> type[_OwnRule]:
    """The Function whose forward is the rule; under the name of the other, for it takes its place in the graph."""
    made: type[_OwnRule] | None = vars(function).get("_own_rule")
    if made is None:
        said: dict[str, Any] = {"starts_backward": function.starts_backward, "__module__": function.__module__}
        if function.jvp is Function.jvp:
            said["jvp"] = staticmethod(Function.jvp)
        made = type(function.__name__, (_OwnRuleLater if function.backward_is_async else _OwnRule,), said)
        function._own_rule = made
    return made


class _OwnRule(Function):
    """`apply(given, *columns)`; see NOTE [An own rule is a forward]."""

    @staticmethod
    def forward(given: _Given, *columns: Any) -> Any:
        """What the outputs are; then for each output its values, or the one for all."""
        layer, function = given.layer, given.function
        by_leaf = [0 if flag else None for flag in given.batched]
        in_dims = [dims if 0 in pytree.leaves(dims) else None for dims in given.arguments(by_leaf)]
        whole = [Stack.apply(column) if flag else column for column, flag in zip(columns, given.batched)]
        info = VmapInfo(layer.size, layer.randomness)
        result = function.vmap(info, tuple(in_dims), *given.arguments(whole))
        if not isinstance(result, tuple) or len(result) != 2:
            raise AutogradError(f"{function.__name__}.vmap returns a pair (outputs, out_dims), got {result!r:.80}")
        outs, out_dims = result
        single = not isinstance(outs, tuple)
        values, dims = ((outs,), (out_dims,)) if single else (outs, out_dims)
        if dims is None or type(dims) is int:
            dims = (dims,) * len(values)
        if not isinstance(dims, tuple | list) or len(dims) != len(values):
            raise AutogradError(
                f"{function.__name__}.vmap gave {len(values)} outputs and out_dims {out_dims!r:.60}: expected 0, "
                "None, or a tuple with one of these for each output"
            )
        where = f"{function.__name__}.vmap"
        found = [entry for value, dim in zip(values, dims) for entry in _entries(value, dim, layer.size, where)]
        return (_Made(layer.size, single, tuple(dims)), *found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Have the Function save what it needs, once per example."""
        ctx.given, *columns = inputs
        ctx.made, *outs = output
        layer, function = ctx.given.layer, ctx.given.function
        first = ctx.given.of_example(columns, 0)
        ctx.layout = layout_of(first)[1]
        ctx.variables = [place for place, leaf in enumerate(pytree.leaves(first)) if isinstance(leaf, Variable)]
        needs = ctx.given.needs(ctx.needs_input_grad[1:])
        parts = []
        for number in range(layer.size):
            values, results = ctx.given.of_example(columns, number), ctx.made.of_example(outs, number)
            with layer.named(layer.start + number):
                part, _ = SetUp(function, needs, values, results, ctx.made.single).run()
            parts.append(part)
        ctx._parts = tuple(parts)
        ctx.mark_non_differentiable(*[output for part in ctx._parts for output in part._constants])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, made: None, *grads: Variable | None) -> Any:
        """The Function's own rule, once for each example that anything is said to."""
        calls = _calls(ctx, grads)
        returned: Sorted = {}
        for rule in _rules(list(calls.values())):
            returned.update(rule.run())  # type: ignore[arg-type]  # no Call, as the rule is not asynchronous
        return _gradients(ctx, calls, returned)

    @staticmethod
    def jvp(ctx: Any, *edits: Any) -> Any:
        """The Function's own rule, once for each example that anything is edited in."""
        given, made, changes = ctx.given, ctx.made, []
        for number, part in enumerate(ctx._parts):
            tangents = tuple([without_zero_edits(edit) for edit in given.of_example(edits[1:], number)])
            needs = tuple([tangent is not None for tangent in tangents])
            if any(needs):
                own = part._with(needs_input_grad=needs, primals=given.of_example(ctx.primals[1:], number))
                changes.append(run_jvp(given.function, own, tangents, made.single, len(made.dims)))
            else:
                changes.append([None] * len(made.dims))
        found: list[Any] = [None]
        for dim, column in zip(made.dims, zip(*changes)):
            found += column if dim == 0 else [next((change for change in column if change is not None), None)]
        return tuple(found)

    @classmethod
    def is_random(cls, *args: Any) -> bool:
        """As the Function says."""
        given, *columns = args
        return bool(given.function.is_random(*given.of_example(columns, 0)))

    @classmethod
    def resample(cls, args: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        """As the Function does it, in what is the same for all examples."""
        given, *columns = args
        leaves = pytree.leaves(given.function.resample(given.of_example(columns, 0), number))
        return (given, *[old if flag else new for old, new, flag in zip(columns, leaves, given.batched)])


class _OwnRuleLater(_OwnRule):
    """The same for a Function whose backward rule is asynchronous."""

    @staticmethod
    async def backward(ctx: Any, made: None, *grads: Variable | None) -> Any:
        """All at the same time."""
        calls = _calls(ctx, grads)
        returned: Sorted = {}
        for pending in [rule.run() for rule in _rules(list(calls.values()))]:
            returned.update(pending if isinstance(pending, dict) else await pending)
        return _gradients(ctx, calls, returned)


def _entries(value: Any, dim: Any, size: int, where: str) -> list[Any]:
    """The values of an output, or the one for all."""
    if dim is None:
        return [value]
    if isinstance(dim, bool) or dim != 0:
        raise AutogradError(
            f"{where}: an output is a batch (0) or the same for all examples (None), and out_dims has {dim!r:.40} "
            "for it"
        )
    whole = Variable(value) if isinstance(value, list) else value
    if not isinstance(whole, Variable):
        raise AutogradError(f"{where}: expected a batch for an output, got {type(value).__name__} {value!r:.40}")
    return list(unbound(whole, size, where))


def _calls(ctx: Any, grads: Sequence[Variable | None]) -> dict[int, RuleCall]:
    """The uses of the Function's rule, by example."""
    given, needs = ctx.given, ctx.needs_input_grad[1:]
    wanted = [needs[place] for place in ctx.variables]
    found = {}
    for number, part in enumerate(ctx._parts):
        arrived = ctx.made.heard(grads, number)
        if any(arrived):
            node = FunctionNode(given.function, part, (None,) * len(wanted), ctx.layout, len(arrived))
            found[number] = RuleCall(node, part, arrived, wanted, given.needs(needs))
    return found


def _rules(calls: Sequence[RuleCall]) -> list[Backward]:
    """Those that may share a call together, the others one by one."""
    groups: dict[Any, list[RuleCall]] = {}
    alone = []
    for call in calls:
        key = call.node.function.backward_group(call.ctx)
        if key is None:
            alone.append(call)
        else:
            groups.setdefault(key, []).append(call)
    return [Backward([call], together=False) for call in alone] + [Backward(g, together=True) for g in groups.values()]


def _gradients(ctx: Any, calls: dict[int, RuleCall], returned: Sorted) -> tuple[Any, ...]:
    """For each column what the rules returned: for each of its values, or from all examples in order."""
    found: list[Any] = [None] * (1 + len(ctx.given.batched))
    for variable, place in enumerate(ctx.variables):
        by_example = {number: returned[call.node][variable] for number, call in calls.items()}
        if ctx.given.batched[place]:
            found[1 + place] = [by_example.get(number) for number in range(len(ctx._parts))]
        else:
            found[1 + place] = [item for items in by_example.values() for item in items]
    return tuple(found)
