"""`once_differentiable`: for a backward rule whose result cannot itself be differentiated."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from textgrad_engine import pytree
from textgrad_engine.autograd.function import Function
from textgrad_engine.autograd.grad_mode import is_grad_enabled, no_grad
from textgrad_engine.autograd.gradient import as_items, is_start
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.wording import told

Rule = TypeVar("Rule", bound=Callable[..., Any])


def once_differentiable(backward: Rule) -> Rule:
    """Mark a backward rule, plain or ``async def``, as one that must not be differentiated.

    A rule that computes with plain strings leaves no graph: with ``create_graph=True`` its feedback would look as if
    it depended on nothing, and a second derivative would silently be a zero. Under this decorator nothing in the rule
    is recorded, and its feedback is marked instead: differentiating it raises, and the message names the Function.
    Without ``create_graph`` (and outside of nested `func.grad`) it has no effect.

    Raises:
        AutogradError: from a later backward pass that goes through the feedback.
        TypeError: what is marked is no function.

    Example:
        >>> class Shout(Function):
        ...     @staticmethod
        ...     def forward(text):
        ...         return Variable(text.data.upper(), role=text.role)
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         ctx.save_for_backward(*inputs)
        ...     @staticmethod
        ...     @once_differentiable
        ...     def backward(ctx, grad_out):
        ...         return f"(shouted) {grad_out.data}"
        >>> word = Variable("hello", requires_grad=True)
        >>> Shout.apply(word).backward("too loud", create_graph=True)
        >>> word.grad[0].requires_grad
        True
    """
    given: object = backward
    if not callable(given) and not isinstance(given, staticmethod):
        raise TypeError(f"once_differentiable: backward must be a function, got {told(given)}")
    rule = backward.__func__ if isinstance(backward, staticmethod) else backward
    owner = getattr(rule, "__qualname__", "a Function").rpartition(".")[0].rpartition(".")[2] or "a Function"

    if inspect.iscoroutinefunction(rule):

        @functools.wraps(rule)
        async def asynchronous(ctx: Any, *grad_outputs: Any) -> Any:
            with no_grad():
                returned = await rule(ctx, *grad_outputs)
            return _marked(ctx, grad_outputs, returned, owner)

        return asynchronous  # type: ignore[return-value]

    @functools.wraps(rule)
    def plain(ctx: Any, *grad_outputs: Any) -> Any:
        with no_grad():
            returned = rule(ctx, *grad_outputs)
        return _marked(ctx, grad_outputs, returned, owner)

    return plain  # type: ignore[return-value]


def _marked(ctx: Any, grad_outputs: tuple[Any, ...], returned: Any, owner: str) -> Any:
    """What the rule returned, each piece of feedback behind a node that refuses to be differentiated."""
    if not is_grad_enabled():
        return returned
    node = None if ctx._node is None else ctx._node()
    name = owner if node is None else node.function.__name__
    # Feedback may depend on all that the rule was shown.
    shown = [value for value in (*grad_outputs, *ctx.saved_variables) if isinstance(value, Variable)]

    def mark(leaf: Any) -> Any:
        if not isinstance(leaf, Variable | str):
            return leaf
        items = [item if is_start(item) else _Refuse.apply(name, item, shown) for item in as_items(leaf, name)]
        return items[0] if len(items) == 1 else items

    return pytree.map_leaves(mark, returned)


class _Refuse(Function):
    """`_Refuse.apply(name, feedback, shown)`: the feedback, which seems to depend on `shown`."""

    deferrable = True

    @staticmethod
    def forward(name: str, feedback: Variable, shown: list[Variable]) -> Variable:
        """Hand the feedback on, with where it came from."""
        return feedback

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember who made it."""
        ctx.name = inputs[0]

    @staticmethod
    def output_role(name: str, feedback: Variable, shown: list[Variable]) -> str:
        """The role of the feedback."""
        return feedback.role

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """Refuse.

        Raises:
            AutogradError: always.
        """
        raise _refusal(ctx.name)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Refuse, as `backward` does.

        Raises:
            AutogradError: always.
        """
        raise _refusal(ctx.name)


def _refusal(name: str) -> AutogradError:
    return AutogradError(
        f"the feedback of {name}.backward cannot be differentiated: the rule is marked @once_differentiable. "
        "Write a rule that computes with Variables and operations (ops.*, a Function), and take the decorator off."
    )
