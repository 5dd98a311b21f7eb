"""The graph that a backward pass walks: nodes, the edges between them, and the leaves where feedback collects."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.value import label_of
from textgrad_engine.errors import AutogradError
from textgrad_engine.kinds import is_coroutine_function
from textgrad_engine.wording import told

if TYPE_CHECKING:
    from textgrad_engine.autograd.context import Context
    from textgrad_engine.autograd.function import Function
    from textgrad_engine.autograd.variable import Variable
    from textgrad_engine.dispatch import Call


@dataclass(frozen=True, slots=True)
class Source:
    """Where a piece of feedback came from.

    Attributes:
        example: the name of the example ("" when none was set).
        node: the name of the node whose backward made it.
        output: the node's output that the feedback is about ("" when it is not text).
        score: the score that an evaluator gave, None elsewhere; handed on to the feedback made from it.
        because: the feedback that it was made from, in order; none if it was passed on unchanged.
        places: where the feedback is about a larger text: the place of this one in it, from the outside in; none if it
            is about this text itself. Of many levels only the outer ones.
        direct: whether an evaluator said it about this text itself, a leaf that is no model's answer.
        shares: of scores that are parts of one score, the name of each that it was said for, and for how much of the
            one score that counts (0 to 1); handed on to the feedback made from it. None where the score is one.
        case: whether it is a call of a model as it was, with its answer and what was said of that, as no critic was
            asked.

    Example:
        >>> from textgrad_engine import Variable, nn
        >>> answer = Variable("Rom", role="answer", requires_grad=True)
        >>> nn.ExactMatch()(answer, "Rome").backward()
        >>> answer.grad[0].source.score, answer.grad[0].source.direct
        (0.0, True)
    """

    example: str = ""
    node: str = ""
    output: str = ""
    score: float | None = None
    because: tuple[Variable, ...] = field(default=(), repr=False)
    places: tuple[str, ...] = ()
    direct: bool = False
    shares: tuple[tuple[str, float], ...] = ()
    case: bool = False

    @classmethod
    def joined(cls, sources: Sequence[Source], node: str, because: Sequence[Variable]) -> Source:
        """That of one piece of feedback which stands for several, whose sources these are."""
        example = ", ".join(dict.fromkeys([source.example for source in sources if source.example]))
        score = next((source.score for source in sources if source.score is not None), None)
        shares = tuple(dict.fromkeys([share for source in sources for share in source.shares]))
        return cls(example, node, score=score, because=tuple(because), shares=shares)


class GradientEdge(NamedTuple):
    """One output of one node: what a gradient flows into."""

    node: Node
    output_nr: int


class Handle:
    """What registering a hook returns; `remove` takes the hook away, once or more often."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        """Take the hook away."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Handles(Handle):
    """Several registrations that are removed together."""

    def __init__(self, handles: list[Handle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take all of them away."""
        for handle in self._handles:
            handle.remove()


_handle_keys = iter(range(2**63))

PRE, POST = -1, -2
"""Where the hooks of a node itself stand among those of its outputs, which are numbered from 0."""


def add_hook(hooks: dict[int, Any], hook: Callable[..., Any], kept: Any = None) -> Handle:
    """Put a hook at the end of `hooks`.

    Args:
        hooks: those that there are.
        hook: what was given.
        kept: what stands there instead of it; by default itself.

    Raises:
        TypeError: it is no function, or an `async def`.
    """
    if not callable(hook) or is_coroutine_function(hook):
        repair = "; nobody awaits it: write `def`" if callable(hook) else ""
        raise TypeError(f"a hook is a function, got {told(hook)}{repair}")
    key = next(_handle_keys)
    hooks[key] = hook if kept is None else kept
    return Handle(hooks, key)


class Node:
    """One recorded operation, or the leaf end of the graph."""

    __slots__ = ("__weakref__",)
    edges: tuple[GradientEdge | None, ...]
    num_outputs: int
    call: Call | None

    def name(self) -> str:
        """The name of the operation, with ``Backward`` behind it as in PyTorch."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each variable among the inputs, the node it came from and its output number; None where no grad flows."""
        return tuple((None, 0) if edge is None else (edge.node, edge.output_nr) for edge in self.edges)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Have ``hook(grad_outputs)`` called when the node is about to run its rule.

        Args:
            hook: gets a tuple with for each output one Variable (`data` the feedback joined in order, `grad` the
                items), or None where nothing is said; may return a tuple of as many gradients to go on with instead.

        Returns:
            A handle whose `remove()` takes the hook away.
        """
        raise NotImplementedError

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Have ``hook(grad_inputs, grad_outputs)`` called when the node has run its rule.

        Args:
            hook: gets a tuple with for each entry of `next_functions` one Variable, or None where nothing flows, and
                the tuple that the rule was given; may return a tuple that goes on instead of `grad_inputs`.

        Returns:
            A handle whose `remove()` takes the hook away.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class LeafNodeHook:
    """A hook on the node of a leaf, among the leaf's hooks that run when feedback was written."""

    __slots__ = ("hook",)

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook


class AccumulateGrad(Node):
    """The node of a leaf: feedback that reaches it is appended to the leaf's `.grad`.

    Attributes:
        variable: the leaf.
    """

    __slots__ = ("variable",)
    edges = ()
    num_outputs = 1
    call = None

    def __init__(self, variable: Variable) -> None:
        self.variable = variable

    def name(self) -> str:
        """``AccumulateGrad``."""
        return "AccumulateGrad"

    # Kept by the leaf, which outlives this node.

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Have ``hook((gradient,))`` called when the feedback on the leaf is complete; it may return another."""
        name = label_of(self.variable)  # the leaf holds what is made here, which must not hold the leaf

        def adapted(gradient: Variable) -> Any:
            changed = hook((gradient,))
            if not isinstance(changed, tuple):
                return changed
            if len(changed) != 1:
                raise AutogradError(
                    f"a prehook of the AccumulateGrad of {name} must return None or a tuple of 1 "
                    f"gradient, got {len(changed)}"
                )
            return "" if changed[0] is None else changed[0]

        if self.variable._hooks is None:
            self.variable._hooks = {}
        return add_hook(self.variable._hooks, hook, adapted)

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Have ``hook((), (gradient,))`` called when feedback was appended to the leaf's `.grad`."""
        if self.variable._post_hooks is None:
            self.variable._post_hooks = {}
        return add_hook(self.variable._post_hooks, hook, LeafNodeHook(hook))


def accumulator_of(leaf: Variable) -> AccumulateGrad:
    """The node of a leaf, made where it has none; threads that use one leaf find one node."""
    with _making:
        node = leaf._accumulator() if leaf._accumulator is not None else None
        if node is None:
            node = AccumulateGrad(leaf)
            leaf._accumulator = weakref.ref(node)
    return node


_making = threading.Lock()
"""Guards the moment between "this leaf has no node" and "this is its node"; held for a few instructions only."""


def _forget() -> None:
    global _making  # noqa: PLW0603  in a forked child whoever held it is not there
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)


class FunctionNode(Node):
    """The node that `Function.apply` records.

    Attributes:
        function: the Function.
        ctx: what its forward saved; None after the graph was freed.
        layout: for each argument, where the variables in it stand among the edges.
        call: the dispatched call that computes its outputs, or None when they were there at once.
        example: the example that it belongs to.
    """

    __slots__ = ("call", "ctx", "edges", "example", "function", "hooks", "layout", "num_outputs", "retained")

    def __init__(
        self,
        function: type[Function],
        ctx: Context,
        edges: tuple[GradientEdge | None, ...],
        layout: tuple[Any, ...],
        num_outputs: int,
    ) -> None:
        self.function = function
        self.ctx: Context | None = ctx
        self.edges = edges
        self.layout = layout
        self.num_outputs = num_outputs
        self.call = None
        self.example = EXAMPLE.get()
        self.retained: dict[int, weakref.ref[Variable]] | None = None
        self.hooks: dict[int, dict[int, Any]] | None = None

    def output_hooks(self, output_nr: int) -> dict[int, Any]:
        """The hooks on the gradient of one output."""
        if self.hooks is None:
            self.hooks = {}
        return self.hooks.setdefault(output_nr, {})

    def retain(self, output: Variable) -> None:
        """Have the feedback on one of its outputs written to that, too."""
        if self.retained is None:
            self.retained = {}
        self.retained[output.output_nr] = weakref.ref(output)  # weak: the output holds the node already

    def stop_retaining(self, output: Variable) -> bool:
        """Undo `retain`; returns whether there was anything to undo."""
        kept = None if self.retained is None else self.retained.get(output.output_nr)
        if self.retained is None or kept is None or kept() is not output:
            return False
        del self.retained[output.output_nr]
        return True

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """See `Node.register_prehook`."""
        return add_hook(self.output_hooks(PRE), hook)

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """See `Node.register_hook`."""
        return add_hook(self.output_hooks(POST), hook)

    def name(self) -> str:
        """The Function's name and ``Backward``; who sees it does not care that a class is its module's own."""
        return f"{self.function.__name__.lstrip('_')}Backward"


def hooks_at(edge: GradientEdge) -> dict[int, Any]:
    """The hooks on the gradient that flows into an edge, in the order of their registration."""
    node = edge.node
    if isinstance(node, FunctionNode):
        return node.output_hooks(edge.output_nr)
    variable = node.variable  # type: ignore[attr-defined]  # the only other kind is AccumulateGrad
    if variable._hooks is None:
        variable._hooks = {}
    hooks: dict[int, Any] = variable._hooks
    return hooks
