"""`jacrev`, `jacfwd` and `hessian`: every output against every argument, each separately.

The shapes are those of `torch.func`: what the function gives outside, what the argument is inside. A list, tuple or
dict counts part by part, a batch (a Variable whose data is a list) entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import pytree, templates
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.gradient import START, Items, start
from textgrad_engine.autograd.starts import begins_at, first_data
from textgrad_engine.autograd.value import label_of
from textgrad_engine.checks import check
from textgrad_engine.dispatch import waits
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.columns import keys_of, made_of, unbound
from textgrad_engine.func.grad import GradLayer, at_level, check_numbers, gradients_at, numbers_of
from textgrad_engine.func.jvp import check_edit, jvp
from textgrad_engine.func.levels import below, called, kind_of, lift, map_variables, quoting, with_aux
from textgrad_engine.func.pmap import pmap
from textgrad_engine.func.vmap import vmap
from textgrad_engine.keywords import names_told
from textgrad_engine.plain_values import is_whole


@dataclass(frozen=True)
class _Start:
    """One place where a backward pass begins."""

    root: Variable
    items: Items


@names_told
def jacrev(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    feedback: str | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the feedback of each output on an argument, each output by itself.

    `grad` of a sum of losses gives the feedback of all of them together; this gives the feedback of each. The function
    is run once, then one backward pass for each output, all concurrently.

    Args:
        function: returns losses: one, or a tuple, list or dict of them, or a batch (what `vmap` of a loss gives).
        argnums: which positional arguments feedback is wanted on: a number, or several.
        has_aux: the function returns ``(outputs, aux)``; aux is handed through.
        feedback: what is said of outputs that are text; losses need none.

    Returns:
        A function of the same arguments. Its result has the shape of the outputs (a list where an output is a batch);
        in the place of each stands the gradient of this output alone, as `grad` would give it.

    Raises:
        AutogradError: (from the new function) an output is text and there is no `feedback`; and as `grad`.

    Example:
        >>> from textgrad_engine import ops
        >>> def losses(draft):
        ...     return [ops.exact_match_evaluator(draft + end, "hi!")[0] for end in ("!", "?")]
        >>> [gradient.data != "" for gradient in jacrev(losses)("hi")]
        [False, True]
    """
    check(jacrev, {"has_aux": has_aux, "feedback": feedback})
    call = called("jacrev", function)
    numbers = numbers_of(argnums, call)

    @quoting(function, call)
    @waits("await func.ajacrev(f)(...)")
    def transformed(*args: Any, **kwargs: Any) -> Any:
        layer, targets, outputs = at_level(function, args, kwargs, numbers, call)
        results, aux = with_aux(outputs, has_aux, call)

        def gradient_from(start: _Start) -> Any:
            gradients = gradients_at(layer, [(start.root, start.items)], targets)
            return gradients[0] if is_whole(argnums) else tuple(gradients)

        starts, spec = pytree.flatten(pytree.map_leaves(lambda leaf: _starts(layer, leaf, feedback, call), results))
        rows = pmap(gradient_from)(starts) if len(starts) > 1 else [gradient_from(start) for start in starts]
        table = pytree.unflatten(spec, rows)
        return (table, map_variables(lambda value: below(layer, value), aux)) if has_aux else table

    return transformed


def _starts(layer: GradLayer, root: Any, feedback: str | None, call: str) -> Any:
    """Where passes from one output begin: one place, or (nested) lists of them for a batch."""
    if not isinstance(root, Variable):
        raise AutogradError(
            f"{call}: expected Variables (or tuples, lists, dicts of them) from the function, got {kind_of(root)}"
        )
    shape = first_data(root)
    number = shape
    while isinstance(number, list) and number:
        number = number[0]
    if begins_at(root) or not isinstance(number, str) or not layer.records(root):
        # The explanations of an evaluator of batches are feedback on a batch, which has its entries already.
        apart = isinstance(shape, list) and not (root.grad_fn is not None and root.grad_fn.function.starts_backward)
        return _at_each(root, shape, START, start) if apart else _Start(root, [start()])
    if feedback is None:
        raise AutogradError(
            f"{call}: {label_of(root)} is text, and a pass from text begins with words. Pass them, "
            "jacrev(f, feedback='too long'), or return a loss (nn.ExactMatch, nn.Judge, …)."
        )
    return _at_each(root, shape, str(feedback), lambda data: Variable(data, role="feedback"))


def _at_each(root: Variable, shape: Any, said: str, item: Callable[[Any], Variable]) -> Any:
    """A pass from each entry of a batch, of which it says what is `said`, and nothing of the others."""
    if not isinstance(shape, list):
        return _Start(root, [item(said)])

    def at(number: int, data: Any) -> Variable:
        return item([data if position == number else _silent(part) for position, part in enumerate(shape)])

    return [_at_each(root, part, said, lambda data, n=number: at(n, data)) for number, part in enumerate(shape)]  # type: ignore[misc]


def _silent(shape: Any) -> Any:
    return [_silent(part) for part in shape] if isinstance(shape, list) else ""


@dataclass(frozen=True)
class _Slot:
    """A leaf of an argument, and the edits of it that are asked about.

    Attributes:
        value: the leaf.
        edits: one, or for a batch one for each entry.
        batch: whether it is a batch.
    """

    value: Variable
    edits: list[Any]
    batch: bool

    def tangents(self, start: int, count: int) -> list[Any]:
        """Its tangent for each of `count` questions; its own questions begin at `start`."""
        if not self.batch:
            return [self.edits[0] if number == start else "" for number in range(count)]
        return [
            [edit if number == start + position else "" for position, edit in enumerate(self.edits)]
            for number in range(count)
        ]


@names_told
def jacfwd(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    edit: Any = None,
) -> Callable[..., Any]:
    """Make a function that says how each output would change if each part of an argument were edited by itself.

    Text has no unit vector, so a unit edit takes its place: by default, the part is left out (the words are in
    ``prompts/unit_edit.md``). ``jacfwd(program)(documents)`` then tells which document matters to which output, and
    how. The function itself is run once; the questions about edits (see `jvp`) go out together.

    Args:
        function: gives a Variable, or a tuple, list or dict of them.
        argnums: which positional arguments are edited: a number, or several.
        has_aux: the function returns ``(outputs, aux)``; aux is handed through.
        edit: how each part is edited, in words; or a container in the shape of the argument (of the tuple of
            arguments, for several argnums) with an edit for each part, for a batch a list.

    Returns:
        A function of the same arguments. Its result has the shape of the outputs; in the place of each stands the shape
        of the argument (a list where it is a batch), with the described change ("" for none) that the edit of that part
        makes to this output.

    Raises:
        AutogradError: (from the new function) the edits do not have the shape of the argument; and as `jvp`.

    Example:
        >>> from textgrad_engine import ops
        >>> changes = jacfwd(lambda parts: ops.join(parts, ", "), edit="is said twice")(["one", "two"])
        >>> [change.data for change in changes]
        ['In part 1 of 2: is said twice', 'In part 2 of 2: is said twice']
    """
    check(jacfwd, {"has_aux": has_aux})
    call = called("jacfwd", function)
    numbers = numbers_of(argnums, call)

    @quoting(function, call)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        check_numbers(numbers, args, call)
        asked = templates.load("unit_edit").render() if edit is None else edit
        chosen = tuple([args[number] for number in numbers])
        slots, spec = pytree.flatten(_slots(chosen, (asked,) if is_whole(argnums) else asked, call))
        starts, count = _starts_of(slots)
        if not count:
            raise AutogradError(f"{call}: the arguments that argnums names hold no text or Variable to edit")

        def at(*leaves: Any) -> Any:
            given = list(args)
            for number, value in zip(numbers, pytree.unflatten(spec, list(leaves))):
                given[number] = value
            return function(*given, **kwargs)

        primals = [slot.value if isinstance(slot, _Slot) else slot for slot in slots]

        def changes(*tangents: Any) -> tuple[Any, Any]:
            _, changed, *aux = jvp(at, primals, tangents, has_aux)
            return changed, aux[0] if aux else None

        columns = [
            slot.tangents(start, count) if isinstance(slot, _Slot) else None for slot, start in zip(slots, starts)
        ]
        in_dims = tuple([None if column is None else 0 for column in columns])
        changed, aux = vmap(changes, in_dims, out_dims=(0, None), randomness="same")(*columns)

        def by_argument(change: Any) -> Any:
            entries = unbound(change, count, call)
            placed = [_placed(slot, entries, start) for slot, start in zip(slots, starts)]
            tree = pytree.unflatten(spec, placed)
            return tree[0] if is_whole(argnums) else tree

        table = map_variables(by_argument, changed)
        return (table, aux) if has_aux else table

    return transformed


def _slots(value: Any, edit: Any, where: str) -> Any:
    """The argument with its leaves as slots; what is no text stays as it is."""
    if pytree.is_container(value):
        parts = [_slots(value[k], _part(edit, value, k, where), f"{where}[{k!r}]") for k in keys_of(value)]
        return made_of(value, parts)
    inner = lift(value)
    if not isinstance(inner, Variable):
        return value
    data = first_data(inner)
    if not isinstance(data, list):
        check_edit(data, edit, where)
        return _Slot(inner, [edit], False)
    edits = [edit] * len(data) if isinstance(edit, str | Variable) else edit
    check_edit(data, edits, where)
    return _Slot(inner, edits, True)


def _part(edit: Any, value: Any, key: Any, where: str) -> Any:
    """The edit of one part of a container."""
    if isinstance(edit, str | Variable):
        return edit
    if type(edit) is not type(value) or (key not in edit if isinstance(edit, dict) else len(edit) != len(value)):
        raise AutogradError(f"{where}: the edits have the shape {edit!r:.60}, and the argument is {value!r:.60}")
    return edit[key]


def _starts_of(slots: list[Any]) -> tuple[list[int], int]:
    """The number of the first question about each slot, and how many questions there are."""
    starts, count = [], 0
    for slot in slots:
        starts.append(count)
        count += len(slot.edits) if isinstance(slot, _Slot) else 0
    return starts, count


def _placed(slot: Any, entries: list[Variable], start: int) -> Any:
    if not isinstance(slot, _Slot):
        return None
    return entries[start : start + len(slot.edits)] if slot.batch else entries[start]


@names_told
def hessian(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, edit: Any = None, feedback: str | None = None
) -> Callable[..., Any]:
    """Make a function that says how the feedback on an argument would change if the argument were edited.

    It is ``jacfwd(jacrev(function))``, as in `torch.func`. A gradient says what to change now; this says what it would
    say after an edit: which complaints the edit settles, which it leaves, and, for several argnums, whether editing one
    prompt changes what is wanted of another. A loss that is satisfied says nothing, also not about edits. (Feedback on
    feedback, for tuning the critic, is another second derivative: `grad` of a loss on `grad`.)

    Args:
        function: as for `jacrev`.
        argnums: which positional arguments: a number, or several.
        edit: as for `jacfwd`.
        feedback: as for `jacrev`.

    Returns:
        A function of the same arguments. Its result has the shape of the outputs, in it the shape of the argument for
        the gradient, and in that the shape of the argument for the edit.

    Raises:
        AutogradError: as `jacrev` and `jacfwd`.

    Example:
        >>> from textgrad_engine import ops
        >>> def loss(draft):
        ...     return ops.exact_match_evaluator(draft, "hi")[0]
        >>> hessian(loss)("hi").data
        ''
    """
    check(hessian, locals())
    return waits("await func.ahessian(f)(...)")(
        jacfwd(jacrev(function, argnums, feedback=feedback), argnums, edit=edit)
    )
