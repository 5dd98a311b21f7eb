"""`backward` and `grad`: where a pass begins, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from textgrad_engine.autograd.engine import run_backward
from textgrad_engine.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from textgrad_engine.autograd.gradient import entered
from textgrad_engine.autograd.graph import AccumulateGrad, FunctionNode, GradientEdge
from textgrad_engine.autograd.starts import first_data, starting_items
from textgrad_engine.autograd.value import label_of
from textgrad_engine.autograd.variable import BACKWARD, Variable
from textgrad_engine.autograd.walk import Roots
from textgrad_engine.checks import check, in_order
from textgrad_engine.dispatch import aside, waits
from textgrad_engine.errors import AutogradError
from textgrad_engine.keywords import names_told
from textgrad_engine.wording import told

_OFF = (
    "Grad is off here, as under no_grad() and in evaluation; a program that improves its own answer needs "
    "`with tg.enable_grad():` around the forward and the backward. "
)
"""What is said first where nothing is recorded, which a program that is evaluated does not see of its own code."""

Gradient: TypeAlias = str | Variable | list[Any] | None
Target: TypeAlias = Variable | GradientEdge


@waits("await variable.abackward(...)` or `await tg.abackward(variables, ...)")
@names_told
def backward(
    variables: Variable | Sequence[Variable],
    grad_variables: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Target | Sequence[Target] | None = None,
) -> None:
    """Carry feedback from `variables` to the leaves, and append it to their `.grad`.

    Each operation is visited once, when all feedback on its outputs has arrived; independent ones run concurrently.
    Losses (the evaluators) and numbers need no gradient to start from; a text needs one, in words. If anything fails,
    no leaf has changed.

    Args:
        variables: one result or several, for one pass.
        grad_variables: for each of them the feedback to start from: a text, a Variable, or None for a loss. For a batch
            also a list with a text for each entry. A list of Variables is several pieces of feedback.
        retain_graph: keep the graph, so that another backward can go through it; by default as `create_graph`.
        create_graph: record the feedback's own graph: feedback then has a `grad_fn`.
        inputs: leaves, or GradientEdges of leaves; only they get feedback, and what does not lead to them costs
            nothing.

    Raises:
        AutogradError: there is no variable, or one does not require grad; a text came without a gradient, or the
            gradient does not fit; the graph was freed; a variable was changed after its use; an input is no leaf.
        TypeError: something else than a Variable is among the variables, or a gradient is a number.

    Example:
        >>> draft = Variable("hello", role="draft", requires_grad=True)
        >>> backward(draft + "!", "shorter, please")
        >>> [item.data for item in draft.grad]
        ['shorter, please']
    """
    if type(create_graph) is not bool or retain_graph not in (None, True, False):  # a pass may be about one call alone
        check(backward, {"retain_graph": retain_graph, "create_graph": create_graph})
    roots = _roots(variables, grad_variables, create_graph)
    captures = None
    if inputs is not None:
        targets = _targets(inputs, "backward(inputs=…)")
        if not targets:
            raise AutogradError("backward(inputs=[]) asks for nothing; leave `inputs` out for all leaves")
        captures = [_leaf_edge(target) for target in targets]
    retain = create_graph if retain_graph is None else retain_graph
    run_backward(roots, retain_graph=retain, create_graph=create_graph, captures=captures, accumulate=True)


async def abackward(
    variables: Variable | Sequence[Variable],
    grad_variables: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Target | Sequence[Target] | None = None,
) -> None:
    """`backward` for code that has an event loop of its own; the loop is not blocked.

    When the wait for it is cancelled, so are its calls, and it leaves no feedback behind.

    Example:
        >>> import asyncio
        >>> draft = Variable("hello", role="draft", requires_grad=True)
        >>> asyncio.run(abackward([draft + "!", draft + "?"], ["shorter, please", "why?"]))
        >>> [item.data for item in draft.grad]
        ['shorter, please', 'why?']
    """
    await aside(lambda: backward(variables, grad_variables, retain_graph, create_graph, inputs))


@overload
def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Target | Sequence[Target],
    grad_outputs: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: Literal[False] = False,
) -> tuple[list[Variable], ...]: ...


@overload
def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Target | Sequence[Target],
    grad_outputs: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[list[Variable] | None, ...]: ...


@waits("await autograd.agrad(...)")
@names_told
def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Target | Sequence[Target],
    grad_outputs: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[list[Variable] | None, ...]:
    """The gradients of `outputs` at `inputs`; every `.grad` is left alone.

    Args:
        outputs: as `variables` of `backward`.
        inputs: Variables (leaves or results) or GradientEdges.
        grad_outputs: as `grad_variables` of `backward`.
        retain_graph: as in `backward`.
        create_graph: as in `backward`.
        allow_unused: give None for an input that the outputs do not depend on, instead of raising.

    Returns:
        For each input its gradient: the ordered list of feedback items, [] for a true zero.

    Raises:
        AutogradError: as `backward`; or an input was not used and `allow_unused` is False.

    Example:
        >>> draft = Variable("hello", role="draft", requires_grad=True)
        >>> (feedback,) = grad(draft + "!", draft, "shorter, please")
        >>> feedback[0].data, draft.grad
        ('shorter, please', [])
    """
    check(grad, {"retain_graph": retain_graph, "create_graph": create_graph, "allow_unused": allow_unused})
    targets = _targets(in_order(inputs, "grad: inputs: "), "grad")
    edges = [get_gradient_edge(target) if isinstance(target, Variable) else target for target in targets]
    roots = _roots(outputs, grad_outputs, create_graph)
    behind = _behind([GradientEdge(*root) for root in zip(roots.nodes, roots.outputs)])
    for position, (edge, target) in enumerate(zip(edges, targets)):
        if edge not in behind and not allow_unused:
            raise AutogradError(
                f"grad: input {position} ({_described(target)}) was not used to compute the outputs. "
                "Pass allow_unused=True to get None for it."
            )
    retain = create_graph if retain_graph is None else retain_graph
    found = run_backward(roots, retain_graph=retain, create_graph=create_graph, captures=edges, accumulate=False)
    with set_grad_enabled(create_graph):
        return tuple([[entered(item) for item in found[edge]] if edge in behind else None for edge in edges])


@overload
async def agrad(
    outputs: Variable | Sequence[Variable],
    inputs: Target | Sequence[Target],
    grad_outputs: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: Literal[False] = False,
) -> tuple[list[Variable], ...]: ...


@overload
async def agrad(
    outputs: Variable | Sequence[Variable],
    inputs: Target | Sequence[Target],
    grad_outputs: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[list[Variable] | None, ...]: ...


async def agrad(
    outputs: Variable | Sequence[Variable],
    inputs: Target | Sequence[Target],
    grad_outputs: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[list[Variable] | None, ...]:
    """`grad` for code that has an event loop of its own; the loop is not blocked.

    When the wait for it is cancelled, so are its calls.

    Example:
        >>> import asyncio
        >>> draft = Variable("hello", role="draft", requires_grad=True)
        >>> (feedback,) = asyncio.run(agrad(draft + "!", draft, "shorter, please"))
        >>> feedback[0].data
        'shorter, please'
    """
    return await aside(lambda: grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused))


def get_gradient_edge(variable: Variable) -> GradientEdge:
    """The edge along which feedback on a variable flows: its node and output number.

    Raises:
        AutogradError: the variable does not require grad.
        TypeError: it is no Variable.

    Example:
        >>> from textgrad_engine import Variable
        >>> node, output_nr = get_gradient_edge(Variable("a", requires_grad=True) + "b")
        >>> node.name(), output_nr
        ('AddBackward', 0)
    """
    if not isinstance(variable, Variable):
        raise TypeError(f"get_gradient_edge: variable must be a Variable, got {told(variable)}")
    if not variable.requires_grad:
        raise AutogradError(f"{label_of(variable)} does not require grad, so no gradient flows into it")
    return variable._gradient_edge()


def _roots(variables: Any, gradients: Any, create_graph: bool) -> Roots:
    single = isinstance(variables, Variable | GradientEdge)  # an edge is a pair, and no sequence of roots
    if not single and (isinstance(variables, str | Mapping) or not isinstance(variables, Iterable)):
        raise TypeError(
            f"backward begins at a Variable, or at a list of them, got {type(variables).__name__} {variables!r:.40}"
        )
    roots = [variables] if single else list(in_order(variables, "backward begins at a list of Variables; "))
    if not roots:
        raise AutogradError(
            "backward([]) has nothing to begin at: the list of losses is empty. Leave out a batch that has none."
        )
    if single or gradients is None:
        given = [gradients] * len(roots) if gradients is None else [_single(variables, gradients)]
    else:
        given = [gradients] if isinstance(gradients, str | Variable) else list(gradients)
    if len(given) != len(roots):
        raise AutogradError(
            f"got {len(given)} gradients for {len(roots)} variables: give one for each, None for a loss"
        )
    for position, root in enumerate(roots):
        if not isinstance(root, Variable):
            whose = "; give the Variable that it is the edge of" if isinstance(root, GradientEdge) else ""
            raise TypeError(f"backward begins at Variables, got {type(root).__name__} at position {position}{whose}")
        if isinstance(root._inner, list):
            raise AutogradError(
                f"{label_of(root)} is a value inside vmap, where no pass begins. Return it and call backward on the "
                "batch that vmap gives, or use func.grad inside."
            )
        if not root._requires_grad:
            raise AutogradError(
                f"{label_of(root)} does not require grad and has no grad_fn: nothing that led to it wants feedback. "
                f"{'' if is_grad_enabled() else _OFF}"
                "Make a prompt with requires_grad=True (an nn.Parameter has it), compute outside of no_grad(), and "
                "pass on the answer itself: .data, str() and .detach() cut the graph. Feedback goes to the prediction "
                "alone: is it loss(prediction, target), in that order? To improve an answer itself, make it a leaf: "
                "answer = nn.Parameter(answer)"
            )
    found = Roots([], [], [])
    with set_grad_enabled(create_graph):  # not before: a generator computes its losses where they are listed
        for root, gradient in zip(roots, given):
            found.add(root, starting_items(root, "the caller", gradient))
    return found


def _single(root: Any, gradients: Any) -> Any:
    """One root's gradient, also when it comes as a sequence of one; one text for a batch is that of its only entry."""
    if isinstance(gradients, list | tuple) and len(gradients) == 1:
        of_entry = isinstance(gradients[0], str) and isinstance(first_data(root), list)
        return gradients if of_entry else gradients[0]
    return gradients


def _targets(inputs: Any, call: str) -> list[Target]:
    """What gradients are asked for, one or several.

    Raises:
        TypeError: something else than a Variable or GradientEdge is among it.
    """
    several = isinstance(inputs, Iterable) and not isinstance(inputs, str | Variable | GradientEdge)
    targets = list(inputs) if several else [inputs]
    for position, target in enumerate(targets):
        if not isinstance(target, Variable | GradientEdge):
            raise TypeError(
                f"{call} takes Variables and GradientEdges, got {type(target).__name__} {target!r:.40} at position "
                f"{position}"
            )
    return targets


def _leaf_edge(target: Target) -> GradientEdge:
    edge = get_gradient_edge(target) if isinstance(target, Variable) else target
    if not isinstance(edge.node, AccumulateGrad):
        raise AutogradError(
            f"backward(inputs=…) takes leaves, and {_described(target)} is a result. "
            "Use autograd.grad for the gradient of a result, or retain_grad() on it."
        )
    return edge


def _behind(edges: Sequence[GradientEdge]) -> set[GradientEdge]:
    """All edges that a pass from these could go along."""
    found: set[GradientEdge] = set(edges)
    stack = [edge.node for edge in edges]
    visited = set(stack)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                found.add(edge)
                if edge.node not in visited:
                    visited.add(edge.node)
                    stack.append(edge.node)
    return found


def _described(target: Target) -> str:
    if isinstance(target, Variable):
        return label_of(target)
    node = target.node
    return f"output {target.output_nr} of {node.name()}" if isinstance(node, FunctionNode) else repr(node)


BACKWARD.append(backward)
