"""The stack of layers that a call of a Function passes through, top first.

Each transform is one layer. A layer's `process` sees the call, may change its arguments, and passes it on by calling
`function.apply` again: while a layer works, the stack holds only what is below it. When the stack is empty the bottom,
in `function.py`, runs the forward and records the graph. The shape is that of ``simple_functorch.py``
(albanD/subclass_zoo) and of JAX's autodidax.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Self

from textgrad_engine.autograd.grad_mode import GRAD_ENABLED

if TYPE_CHECKING:
    from textgrad_engine.autograd.function import Function
    from textgrad_engine.autograd.rules import Rule


class Layer:
    """One level of the stack; active inside its ``with`` block, for this task or thread and what it starts.

    A layer of one's own is a subclass with a `process`; ``examples/custom_layer.py`` is one that changes arguments.

    Example:
        >>> from textgrad_engine import ops
        >>> class Logger(Layer):
        ...     def process(self, function, args):
        ...         print(function.__name__)
        ...         return super().process(function, args)
        >>> with Logger():
        ...     str(ops.add("a", "b"))
        Add
        'ab'
    """

    _token: Token[tuple[Layer, ...]] | None = None

    def __enter__(self) -> Self:
        if self._token is not None:
            raise RuntimeError(f"this {type(self).__name__} is active already; make a second one to nest it")
        self._token = LAYERS.set((*LAYERS.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        if self._token is not None:
            LAYERS.reset(self._token)
            self._token = None

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Handle one call; this base passes it on unchanged."""
        return function.apply(*args)

    def run_rule(self, rule: Rule, below: Callable[[Rule], Any]) -> Any:
        """Run a Function's code beside its forward, such as its backward rule; this base leaves it to the layers below.

        What the rule computes comes by in `process`; only a layer whose values have no data to read, as those of
        `vmap`, has to do anything here. See NOTE [One example at a time] in ``rules.py``.
        """
        return below(rule)


LAYERS: ContextVar[tuple[Layer, ...]] = ContextVar("textgrad_engine_layers", default=())


def is_observed() -> bool:
    """Whether operations here may be recorded, or seen by a layer; else nobody can tell one from several."""
    return GRAD_ENABLED.get() or bool(LAYERS.get())
