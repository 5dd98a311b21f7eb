"""`grad`, `grad_and_value` and `vjp`: feedback as functions of functions, with a tape of their own at each level.

The shape is that of `torch.func`; gradients are Variables whose `data` is the feedback joined in order and whose
`grad` is the list of items.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextvars import Token
from typing import Any, Self

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, FunctionNode, GradientEdge, Layer, Variable
from textgrad_engine.autograd.arguments import layout_of, needs_by_argument
from textgrad_engine.autograd.engine import run_on_tape
from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.gradient import Items, combine, is_start
from textgrad_engine.autograd.rules import SetUp, run_rule
from textgrad_engine.autograd.starts import starting_items
from textgrad_engine.autograd.walk import Roots
from textgrad_engine.checks import check
from textgrad_engine.dispatch import joint, waits
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.columns import keys_of
from textgrad_engine.func.levels import (
    below,
    called,
    is_of,
    kind_of,
    lift,
    map_variables,
    quoting,
    separate_style,
    with_aux,
    wrapped,
)
from textgrad_engine.keywords import names_told
from textgrad_engine.plain_values import is_whole
from textgrad_engine.wording import a_class, told


class GradLayer(Layer):
    """One level of reverse mode: records what its own values go through, on nodes that only it knows.

    A `no_grad` inside the function that is differentiated holds for it; one around the transform holds for the levels
    below, as in `torch.func`: they do not record what the transform computes.
    """

    _outside: bool = True
    _mode: Token[bool] | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._outside = GRAD_ENABLED.get()
        self._mode = GRAD_ENABLED.set(True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._mode is not None:
            GRAD_ENABLED.reset(self._mode)
            self._mode = None
        super().__exit__(*exc)

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Run the call below, and record it when one of this level's values that wants feedback takes part."""
        if self._outside:
            return self._processed(function, args, recording=GRAD_ENABLED.get())
        recording = GRAD_ENABLED.get()
        token = GRAD_ENABLED.set(False)
        try:
            return self._processed(function, args, recording=recording)
        finally:
            GRAD_ENABLED.reset(token)

    def _processed(self, function: type[Function], args: tuple[Any, ...], *, recording: bool) -> Any:
        inputs, layout = layout_of(args)
        wanted = [self.records(value) for value in inputs]
        inner = map_variables(lambda value: below(self, value), args)
        outs = function.apply(*inner)
        if not any(wanted) or not recording:
            return outs
        separate_style(function, "grad")
        single = not isinstance(outs, tuple)
        values = (outs,) if single else outs
        # The rule sees the values of the level below, so that what it computes is recorded there, by an outer grad.
        ctx, constants = run_rule(SetUp(function, needs_by_argument(layout, wanted), inner, values, single))
        edges = tuple([value._gradient_edge() if want else None for value, want in zip(inputs, wanted)])
        node = FunctionNode(function, ctx, edges, layout, len(values))
        ctx._belongs_to(node)
        node.call = joint([call for value in values if isinstance(value, Variable) for call in value._pending(False)])
        recorded = tuple(
            [
                self._recorded(node, number, value)
                if isinstance(value, Variable) and number not in constants
                else value
                for number, value in enumerate(values)
            ]
        )
        return recorded[0] if single else recorded

    def _recorded(self, node: FunctionNode, number: int, value: Variable) -> Variable:
        outer = wrapped(self, value, value)
        outer._requires_grad, outer._grad_fn, outer.output_nr = True, node, number
        return outer

    def records(self, value: Any) -> bool:
        """Whether a value depends on this level's leaves."""
        return is_of(self, value) and bool(value.requires_grad)

    def start(self, root: Variable, call: str, gradient: Any = None) -> Items:
        """What a pass from a result begins with; nothing where it does not depend on this level's leaves."""
        return starting_items(root, call, gradient) if self.records(root) else []

    def leaf(self, value: Any) -> Any:
        """An argument as a leaf of this level."""
        inner = lift(value)
        if not isinstance(inner, Variable):
            return value
        outer = wrapped(self, inner, inner)
        outer._requires_grad = True
        return outer


def at_level(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: tuple[int, ...], call: str
) -> tuple[GradLayer, list[Any], Any]:
    """Run a function at a level of its own, with some of its arguments as leaves."""
    check_numbers(argnums, args, call)
    layer = GradLayer()
    chosen = {number % len(args) for number in argnums}
    given = [
        pytree.map_leaves(layer.leaf, value) if position in chosen else value for position, value in enumerate(args)
    ]
    for number in argnums:
        if not any(is_of(layer, leaf) for leaf in pytree.leaves(given[number])):
            raise AutogradError(f"{call}: argument {number} holds no text or Variable to give feedback on")
    with layer:
        outputs = function(*given, **kwargs)
    return layer, [given[number] for number in argnums], outputs


def gradients_at(layer: GradLayer, roots: list[tuple[Variable, Items]], targets: list[Any]) -> list[Any]:
    """The gradient of each leaf, in the shape of the arguments."""
    leaves = [leaf for target in targets for leaf in pytree.leaves(target) if is_of(layer, leaf)]
    edges = [leaf._gradient_edge() for leaf in leaves]
    tracked = Roots([], [], [])
    for root, items in roots:
        if layer.records(root):
            tracked.add(root, list(items))
    found: dict[GradientEdge, Items] = run_on_tape(tracked, edges) if tracked.nodes else {}
    by_leaf = {
        id(leaf): combine([item for item in found.get(edge, []) if not is_start(item)])
        for leaf, edge in zip(leaves, edges)
    }
    return [pytree.map_leaves(lambda leaf: by_leaf.get(id(leaf)), target) for target in targets]


def numbers_of(argnums: Any, call: str) -> tuple[int, ...]:
    """The positions that argnums names.

    Raises:
        TypeError: it is neither a number nor several.
    """
    numbers = (argnums,) if isinstance(argnums, str) or not isinstance(argnums, Sequence) else argnums
    if not numbers or not all(map(is_whole, numbers)):
        raise TypeError(
            f"{call}: argnums is the position of an argument, such as 0, or a tuple of positions, got "
            f"{type(argnums).__name__} {argnums!r:.40}"
        )
    return tuple(map(operator.index, numbers))


def check_numbers(argnums: tuple[int, ...], args: tuple[Any, ...], call: str) -> None:
    """Check that a call has the arguments that argnums names.

    Raises:
        AutogradError: it lacks one.
    """
    for number in argnums:
        if not -len(args) <= number < len(args):
            raise AutogradError(f"{call}: argnums names argument {number}, and the call has {len(args)}")


@names_told
def grad_and_value(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Like `grad`, but the new function returns ``(gradient, value)``; with `has_aux`, value is ``(value, aux)``.

    Raises:
        AutogradError: as `grad`.

    Example:
        >>> from textgrad_engine import ops
        >>> gradient, score = grad_and_value(lambda text: ops.exact_match_evaluator(text, "yes")[0])("no")
        >>> score.data, len(gradient.grad)
        (0, 1)
    """
    check(grad_and_value, {"has_aux": has_aux})
    call = called("grad_and_value", function)
    both = _both(function, argnums, has_aux, call)
    return quoting(function, call)(waits("await func.agrad_and_value(f)(...)")(both))


def _both(
    function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, call: str
) -> Callable[..., tuple[Any, Any]]:
    """What `grad_and_value` makes, with the call that its messages quote."""
    numbers = numbers_of(argnums, call)

    def transformed(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        layer, targets, outputs = at_level(function, args, kwargs, numbers, call)
        value, aux = with_aux(outputs, has_aux, call)
        if not isinstance(value, Variable):
            raise AutogradError(f"{call}: expected the function to return one Variable, got {kind_of(value)}")
        gradients = gradients_at(layer, [(value, layer.start(value, call))], targets)
        gradient = gradients[0] if is_whole(argnums) else tuple(gradients)
        plain = below(layer, value)
        return gradient, ((plain, map_variables(lambda v: below(layer, v), aux)) if has_aux else plain)

    return transformed


@names_told
def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Make a function that computes the feedback on an argument.

    Args:
        function: returns one Variable from which backward can start: a loss (`nn.ExactMatch`, `nn.Judge`, …).
        argnums: which positional arguments feedback is wanted on: a number, or several.
        has_aux: the function returns ``(loss, aux)``; aux is passed through.

    Returns:
        A function of the same arguments. It gives for each argument one Variable: `data` is the feedback joined in
        order ("" for a true zero, also where the loss does not depend on the argument), `grad` the items. Several
        argnums give a tuple, containers give containers; with `has_aux` the result is ``(gradient, aux)``.

    Raises:
        AutogradError: (from the new function) the result is text or no Variable, or a Function with a forward that
            takes a ctx is met.

    Example:
        >>> from textgrad_engine import ops
        >>> def loss(draft):
        ...     return ops.exact_match_evaluator(draft + "!", "hello!")[0]
        >>> grad(loss)("hello").data
        ''
        >>> "hallo!" in grad(loss)("hallo").data
        True
    """
    check(grad, {"has_aux": has_aux})
    call = called("grad", function)
    both = _both(function, argnums, has_aux, call)

    @quoting(function, call)
    @waits("await func.agrad(f)(...)")
    def transformed(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return transformed


@waits("await func.avjp(f, ...)")
def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function, and a function from feedback on the value to feedback on the arguments.

    Args:
        function: returns a Variable, or a tuple, list or dict of them, which may be nested.
        primals: its arguments.
        has_aux: the function returns ``(outputs, aux)``.

    Returns:
        ``(outputs, vjp_fn)``, or with `has_aux` ``(outputs, vjp_fn, aux)``. `vjp_fn` takes the feedback on the outputs
        in their shape, as in PyTorch, or that on the parts of a tuple one by one: a text or a Variable for each output,
        None for a loss. It may be called several times, and returns a tuple with one gradient for each argument.

    Raises:
        AutogradError: an output is no Variable, or a Function with a forward that takes a ctx is met; (from `vjp_fn`)
            the feedback has another shape than the outputs, or an output that is text gets None.

    Example:
        >>> out, feedback = vjp(lambda draft: draft + "!", "hello")
        >>> out.data, [gradient.data for gradient in feedback("too loud")]
        ('hello!', ['too loud'])
    """
    check(vjp, {"has_aux": has_aux})
    call = called("vjp", function)
    layer, targets, outputs = at_level(function, primals, {}, tuple(range(len(primals))), call)
    results, aux = with_aux(outputs, has_aux, call)
    single = not isinstance(results, tuple)
    values = (results,) if single else results
    for value in pytree.leaves(values):
        if not isinstance(value, Variable):
            raise AutogradError(
                f"{call}: expected Variables (or tuples, lists, dicts of them) from the function, got {kind_of(value)}"
            )

    @waits("await vjp_fn(...), with the one that func.avjp gives")
    def vjp_fn(*cotangents: Any) -> tuple[Any, ...]:
        if not single and len(cotangents) == 1 and isinstance(cotangents[0], tuple):
            cotangents = cotangents[0]
        if len(cotangents) != len(values):
            raise AutogradError(f"{call}: the function has {len(values)} outputs, got feedback on {len(cotangents)}")
        roots = []
        for number, (value, said) in enumerate(zip(values, cotangents)):
            name = "the output" if single else f"output {number}"
            roots += [(leaf, layer.start(leaf, call, given)) for leaf, given in _on_outputs(value, said, call, name)]
        return tuple(gradients_at(layer, roots, targets))

    plain = map_variables(lambda value: below(layer, value), results)
    return (plain, vjp_fn, map_variables(lambda v: below(layer, v), aux)) if has_aux else (plain, vjp_fn)


def _on_outputs(outputs: Any, given: Any, call: str, name: str) -> Iterator[tuple[Variable, Any]]:
    """Each Variable among outputs, with the feedback that stands in its place.

    Args:
        outputs: a Variable, or a container of them.
        given: the feedback, in the same shape.
        call: who asks, for messages.
        name: what the outputs are called there.

    Raises:
        AutogradError: the feedback has another shape.
    """
    if not pytree.is_container(outputs):
        yield outputs, given
        return
    keys = keys_of(outputs)
    same = isinstance(given, dict) if isinstance(outputs, dict) else isinstance(given, list | tuple)
    if not same or (set(keys_of(given)) != set(keys)):
        what = f" with {', '.join(map(repr, keys)):.60}" if isinstance(outputs, dict) else f" of {len(keys)}"
        raise AutogradError(
            f"{call}: {name} is {a_class(type(outputs))}{what}, so the feedback on it is one too (None for a loss); "
            f"got {told(given)}"
        )
    for key in keys:
        yield from _on_outputs(outputs[key], given[key], call, f"{name}[{key!r}]")
