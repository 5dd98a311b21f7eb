"""Functions that are called while feedback flows: on a variable, a node, several gradients at once, a written leaf.

NOTE [When hooks run]
    At each place of a backward pass, in this order:

    1. the feedback on a variable is complete: its own hooks (`Variable.register_hook`, `register_multi_grad_hook`), in
       the order of their registration; each may replace it;
    2. it is kept where somebody asked for it (`retain_grad`, `autograd.grad`);
    3. a node is about to run its rule: its prehooks (`Node.register_prehook`);
    4. the rule;
    5. its gradients are there: the node's hooks (`Node.register_hook`);
    6. the pass has succeeded, every leaf is written and the graph is freed: the hooks of the leaves that got feedback
       (`Variable.register_post_accumulate_grad_hook`), in graph order.

    A hook of 1, 3 or 5 that raises fails the pass, and nothing is written. In 6 the pass is over: the hooks of all
    leaves run, then the first error is raised, with a note about the others; the feedback stays.
    Where nothing is said (a true zero) no rule runs, and no hook.

    A hook of 1, 3 or 5 is called as a rule is (`run_rule`): inside `vmap` for each example that is spoken to, with the
    feedback on its value alone; see NOTE [One example at a time] in `rules.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from textgrad_engine.autograd.function import Function
from textgrad_engine.autograd.gradient import (
    Intake,
    Items,
    as_items,
    combine,
    in_words,
    inherited,
    is_start,
    texts_for,
    without_zeros,
)
from textgrad_engine.autograd.graph import (
    POST,
    PRE,
    FunctionNode,
    GradientEdge,
    Handle,
    Handles,
    LeafNodeHook,
    add_hook,
    hooks_at,
)
from textgrad_engine.autograd.rules import Rule, Split, gathered_items, run_rule
from textgrad_engine.autograd.value import label_of
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.checks import check, in_order
from textgrad_engine.errors import AutogradError

if TYPE_CHECKING:
    from textgrad_engine.autograd.engine import Pass


class _HookCall(Rule):
    """One call of a hook.

    Attributes:
        call: gets the groups, then the example; gives what goes on instead of the first group, or None.
        groups: gradients; the hook is called where the last group says something.
        example: of each level of batching that it is inside of, the number of the example.
    """

    __slots__ = ("call", "example", "groups")
    function = Function

    def __init__(
        self,
        call: Callable[..., Sequence[Items] | None],
        groups: Sequence[Sequence[Items]],
        example: tuple[int, ...] = (),
    ) -> None:
        self.call, self.groups, self.example = call, groups, example

    def values(self) -> Iterator[Any]:
        """All items."""
        yield from [item for group in self.groups for items in group for item in items]

    def run(self) -> Sequence[Items] | None:
        """Call it."""
        return self.call(*self.groups, self.example)

    def of_example(self, split: Split, number: int) -> _HookCall | None:
        """With what is said to the example; None where that is nothing."""
        own = [[without_zeros(split.part(items, number)) for items in group] for group in self.groups]
        return _HookCall(self.call, own, (*self.example, split.start + number)) if any(own[-1]) else None

    def gathered(self, split: Split, results: dict[int, Any]) -> Sequence[Items] | None:
        """Batches again; None where nothing is replaced for any example."""
        if all(result is None for result in results.values()):
            return None
        first: Sequence[Items] = self.groups[0]
        kept = {number: [split.part(items, number) for items in first] for number in range(split.size)}
        goes_on = {**kept, **{number: result for number, result in results.items() if result is not None}}
        return [
            gathered_items(split, {number: group[place] for number, group in goes_on.items()})
            for place in range(len(first))
        ]


def _call(hook: Callable[..., Sequence[Items] | None], *groups: Sequence[Items]) -> Sequence[Items]:
    """Call a hook where there is a single value to show it, and return what goes on instead of the first group."""
    changed: Sequence[Items] | None = run_rule(_HookCall(hook, groups))
    return groups[0] if changed is None else changed


class MultiGradHook:
    """A function that is called once a pass for the gradients of several variables; see `register_multi_grad_hook`.

    Attributes:
        edges: where the gradients of the variables flow, in order.
        any: whether it is called with the first gradient, instead of with all.
        function: what is called.
    """

    def __init__(self, edges: tuple[GradientEdge, ...], any_of: bool, function: Callable[..., Any]) -> None:
        self.edges, self.any, self.function = edges, any_of, function

    def arrived(self, work: Pass, edge: GradientEdge, items: Items) -> None:
        """One of the gradients is complete."""
        state = work.multi.get(self)
        if state is None:
            state = work.multi[self] = _Arrivals({known for known in self.edges if work.reaches(known)})
        state.missing.discard(edge)
        if items:
            state.found[edge] = items
            if self.any:
                _call(functools.partial(self._first, state), [items])
        if not self.any and not state.missing and state.found:
            _call(self._all, [state.found.get(known, []) for known in self.edges])

    def _first(self, state: _Arrivals, arrived: Sequence[Items], example: tuple[int, ...]) -> None:
        if example not in state.told:
            state.told.add(example)
            self.function(*_shown(arrived))

    def _all(self, arrived: Sequence[Items], example: tuple[int, ...]) -> None:
        self.function(list(_shown(arrived)))


class _Arrivals:
    """What one pass has brought so far, and which examples have been told of their first gradient."""

    def __init__(self, missing: set[GradientEdge]) -> None:
        self.missing = missing
        self.found: dict[GradientEdge, Items] = {}
        self.told: set[tuple[int, ...]] = set()


def register_multi_grad_hook(
    variables: Sequence[Variable], fn: Callable[..., Any], *, mode: Literal["all", "any"] = "all"
) -> Handle:
    """Have a function called in each backward pass with the gradients of several variables.

    Args:
        variables: which; leaves and results.
        fn: with mode ``"all"`` called when the last of the gradients is complete, with a list: for each variable one
            Variable (`data` the feedback joined in order, `grad` the items), or None where nothing is said or the pass
            does not get there. With mode ``"any"`` called with the first gradient that says something, and not again in
            the same pass; which one is first may depend on which call of a model ends first. What it returns is
            ignored.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle whose `remove()` takes the hook away.

    Raises:
        ValueError: the mode is another, or there are no variables.
        AutogradError: a variable does not require grad.

    Example:
        >>> a, b = Variable("Hello", requires_grad=True), Variable("Ann", requires_grad=True)
        >>> handle = register_multi_grad_hook([a, b], lambda grads: print([grad.data for grad in grads]))
        >>> (a + b).backward("put a comma in between")
        ['put a comma in between', 'put a comma in between']
    """
    check(register_multi_grad_hook, locals())
    variables = list(in_order(variables, "register_multi_grad_hook: "))  # several rounds
    if not variables:
        raise ValueError("register_multi_grad_hook: there are no variables to wait for")
    for variable in variables:
        if not variable.requires_grad:
            raise AutogradError(f"{label_of(variable)} does not require grad: no feedback will come by")
    edges = tuple([variable._gradient_edge() for variable in variables])
    hook = MultiGradHook(edges, mode == "any", fn)
    return Handles([add_hook(hooks_at(edge), fn, hook) for edge in dict.fromkeys(edges)])


def call_hooks_of(stand_ins: Sequence[tuple[Variable, Variable]]) -> None:
    """Have leaves call the hooks that other leaves have now, where they stand for these.

    A hook on several gradients is called once a pass with those of the stand-ins.

    Args:
        stand_ins: leaves, each with the one that stands for it.
    """
    several: dict[MultiGradHook, MultiGradHook] = {}
    for leaf, other in stand_ins:
        other._hooks = dict(leaf._hooks) if leaf._hooks else None
        other._post_hooks = dict(leaf._post_hooks) if leaf._post_hooks else None
        several |= {hook: hook for hook in (other._hooks or {}).values() if type(hook) is MultiGradHook}
    if not several:
        return
    edges = {leaf._gradient_edge(): other._gradient_edge() for leaf, other in stand_ins}
    for hook in several:
        several[hook] = MultiGradHook(tuple([edges.get(edge, edge) for edge in hook.edges]), hook.any, hook.function)
    for _, other in stand_ins:
        own = other._hooks or {}
        own |= {key: several[hook] for key, hook in own.items() if type(hook) is MultiGradHook}


def on_gradient(work: Pass, edge: GradientEdge, hooks: dict[int, Any], items: Items) -> Items:
    """Run the hooks on one gradient, and return what goes on instead of it."""
    for hook in tuple(hooks.values()):
        if type(hook) is MultiGradHook:
            hook.arrived(work, edge, items)
        elif items:
            (items,) = _call(functools.partial(_on_variable, hook), [items])
    return items


def _on_variable(hook: Any, arrived: Sequence[Items], example: tuple[int, ...]) -> Sequence[Items] | None:
    shown = _shown(arrived)
    changed = hook(*shown)
    if changed is None:
        return _as_left(shown, arrived)
    return [_said_instead(Intake(arrived), _of_batch(shown[0], changed), "a hook", arrived[0])]


def _said_instead(intake: Intake, changed: Any, giver: str, before: Items) -> Items:
    """What a hook gave as items that go on instead of others; what is new comes from where these came from."""
    items = without_zeros(intake.take(as_items(changed, giver)))
    for item in items:
        if item.source is None and not is_start(item):
            item.source = inherited(before)
    return items


def _as_left(shown: Sequence[Variable | None], before: Sequence[Items]) -> list[Items] | None:
    """What a hook that returned nothing has made of gradients in place; None where it left them as they were."""
    if [as_items(gradient, "a hook") for gradient in shown] == [*before]:
        return None
    intake = Intake(before)
    return [_said_instead(intake, gradient, "a hook", items) for gradient, items in zip(shown, before)]


def _of_batch(whole: Variable | None, changed: Any) -> Any:
    """What a hook on a batch gave; a list of texts is one item, with a text for each entry, as in `backward`."""
    if isinstance(changed, list | tuple) and in_words(changed) and whole is not None and whole._layer is None:
        data = whole.data
        return Variable(texts_for(data, changed, whole), role=whole.role) if isinstance(data, list) else changed
    return changed


def before_rule(node: FunctionNode, arrived: Sequence[Items]) -> Sequence[Items]:
    """Run the prehooks of a node, and return the gradients that its rule gets."""
    for hook in _hooks_of(node, PRE):
        arrived = _call(functools.partial(_on_node, node, hook), arrived) if any(arrived) else arrived
    return arrived


def _on_node(node: FunctionNode, hook: Any, arrived: Sequence[Items], example: tuple[int, ...]) -> Any:
    shown = _shown(arrived)
    changed = hook(shown)
    if changed is None:
        return _as_left(shown, arrived)
    return _replaced(node, "prehook", changed, arrived, "outputs")


def after_rule(node: FunctionNode, returned: Sequence[Items], arrived: Sequence[Items]) -> Sequence[Items]:
    """Run the hooks of a node, and return the gradients that go on to its inputs."""
    for hook in _hooks_of(node, POST):
        returned = _call(functools.partial(_behind_node, node, hook), returned, arrived)
    return returned


def _behind_node(
    node: FunctionNode, hook: Any, returned: Sequence[Items], arrived: Sequence[Items], example: tuple[int, ...]
) -> Any:
    said = [without_zeros(items) for items in returned]
    shown = _shown(said)
    changed = hook(shown, _shown(arrived))
    if changed is None:
        return _as_left(shown, said)
    return _replaced(node, "hook", changed, said, "inputs that are Variables")


def after_accumulation(leaves: list[tuple[Variable, Items]]) -> None:
    """Run the hooks of leaves that got feedback; the first error is raised when all have run."""
    errors: list[Exception] = []
    for variable, items in leaves:
        for hook in tuple((variable._post_hooks or {}).values()):
            try:
                if type(hook) is LeafNodeHook:
                    hook.hook((), _shown([items]))
                else:
                    hook(variable)
            except Exception as error:  # raised below: other leaves' hooks must not depend on this one's
                error.add_note(f"in a hook that runs after feedback was written to {label_of(variable)}")
                errors.append(error)
    if errors:
        for other in errors[1:]:
            errors[0].add_note(f"another such hook failed too: {type(other).__name__}: {other}")
        raise errors[0]


def _hooks_of(node: FunctionNode, kind: int) -> tuple[Any, ...]:
    return () if node.hooks is None else tuple(node.hooks.get(kind, {}).values())


def _shown(gradients: Sequence[Items]) -> tuple[Variable | None, ...]:
    """What a hook sees of gradients; the lists of items are its own."""
    return tuple([combine(list(items)) if items else None for items in gradients])


def _replaced(node: FunctionNode, kind: str, changed: Any, before: Sequence[Items], what: str) -> list[Items]:
    count = len(before)
    given = (changed,) if count == 1 and not isinstance(changed, tuple) else changed
    if not isinstance(given, tuple) or len(given) != count:
        got = f"{len(given)} of them" if isinstance(given, tuple) else f"{type(given).__name__} {given!r:.40}"
        raise AutogradError(
            f"a {kind} of {node.name()} must return None or a tuple of {count} gradients, one for each of the node's "
            f"{what}; got {got}"
        )
    intake, giver = Intake(before), f"a {kind} of {node.name()}"
    return [_said_instead(intake, gradient, giver, items) for gradient, items in zip(given, before)]
