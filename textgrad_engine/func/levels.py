"""What all transforms share: values of one level wrapped around values of the level below, and messages.

A transform makes a layer, wraps the arguments it transforms as values of that layer, and runs the user's function with
the layer on the stack. `Layer.process` then sees every call: it takes its own values off, passes the call on to the
layers below, and wraps what comes back. So transforms nest in any order without knowing of each other, as in functorch.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, Layer, Variable
from textgrad_engine.errors import AutogradError

F = TypeVar("F", bound=Callable[..., Any])

_QUOTED = "_textgrad_engine_quoted"
"""The attribute of what a transform made that has the call it was made by."""


def wrapped(layer: Layer, inner: Any, shown: Variable) -> Variable:
    """A value of `layer` that stands for `inner` one level below; data and role are those of `shown`."""
    outer = shown._alias(Variable)
    outer._layer, outer._inner = layer, inner
    outer._requires_grad, outer._grad_fn, outer._origin = False, None, None
    return outer


def is_of(layer: Layer, value: object) -> bool:
    """Whether a value belongs to a layer."""
    return isinstance(value, Variable) and value._layer is layer


def below(layer: Layer, value: Any) -> Any:
    """A value of the layer as the level below knows it; anything else as it is."""
    return value._primal() if is_of(layer, value) else value


def lift(value: Any) -> Any:
    """A plain text or number as a Variable; anything else as it is."""
    return Variable(value) if isinstance(value, str | int | float) else value


def separate_style(function: type[Function], transform: str) -> None:
    """Check that a Function can be transformed.

    Raises:
        AutogradError: its forward takes a ctx.
    """
    if function._style.takes_ctx:
        raise AutogradError(
            f"func.{transform} met {function.__name__}, which has no setup_context, so its forward takes a ctx. "
            "Transforms need forward(*args) and a separate static method setup_context(ctx, inputs, output): move what "
            "forward does with ctx there; it may do nothing."
        )


def called(transform: str, function: Callable[..., Any], options: Sequence[str] = ()) -> str:
    """The user's own call, for messages: ``vmap(f, in_dims=0)(<inputs>)``.

    Raises:
        TypeError: the function is none.
    """
    check_function(transform, function)
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    quoted = getattr(target, _QUOTED, None)  # which a stand-in may have, too
    name = quoted if isinstance(quoted, str) else getattr(target, "__name__", None) or type(target).__name__
    return f"{transform}({', '.join([name, *options])}){_INPUTS}"


_INPUTS = "(<inputs>)"


def quoting(function: Callable[..., Any], call: str) -> Callable[[F], F]:
    """Decorate what a transform makes: its name, documentation and arguments are those of the user's function.

    Args:
        function: the user's.
        call: as `called` has it; messages of a transform around this one quote both.
    """

    def decorate(made: F) -> F:
        functools.update_wrapper(made, function, updated=())  # a module has parameters among its attributes
        setattr(made, _QUOTED, call.removesuffix(_INPUTS))
        return made

    return decorate


def check_function(transform: str, function: object) -> None:
    """Check that a transform is given something to call.

    Raises:
        TypeError: it is something else, such as what the function gave.
    """
    if not callable(function):
        hint = f"; write func.{transform}(f)(x), not func.{transform}(f(x))" if isinstance(function, Variable) else ""
        raise TypeError(f"func.{transform} takes a function, got {kind_of(function)}{hint}")


def kind_of(value: object) -> str:
    """What a function gave instead of Variables, for messages."""
    if inspect.iscoroutine(value):
        value.close()
        return (
            "a coroutine. Transforms and their twins take a plain def, as func.avmap(func.grad(f)): what it asks a "
            "model is pending by itself, and many calls are under way at once; what waits belongs into the `async def "
            "forward` of a Function"
        )
    return f"{type(value).__name__} {value!r:.40}"


def with_aux(outputs: Any, has_aux: bool, call: str) -> tuple[Any, Any]:
    """What a function gave, and what it gave beside it; None where nothing was to come beside it.

    Raises:
        AutogradError: something was to come, and it is no pair.
    """
    if not has_aux:
        return outputs, None
    if not isinstance(outputs, tuple | list) or len(outputs) != 2:
        got = f"{len(outputs)} values" if isinstance(outputs, tuple | list) else kind_of(outputs)
        raise AutogradError(f"{call}: with has_aux=True the function returns a pair (output, aux), got {got}")
    return outputs[0], outputs[1]


def map_variables(change: Callable[[Variable], Any], tree: Any) -> Any:
    """The tree with each Variable in it changed."""
    return pytree.map_leaves(lambda leaf: change(leaf) if isinstance(leaf, Variable) else leaf, tree)
