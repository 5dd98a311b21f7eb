"""`Variable`: a value with a role, that may want feedback and may still be on its way."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Never

from textgrad_engine import pytree
from textgrad_engine.autograd.copies import added_state, deep_copy, reduced
from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.graph import (
    AccumulateGrad,
    FunctionNode,
    GradientEdge,
    Handle,
    Handles,
    Node,
    Source,
    accumulator_of,
    add_hook,
    hooks_at,
)
from textgrad_engine.autograd.inplace import become, refuse_in_place
from textgrad_engine.autograd.operators import Operators
from textgrad_engine.autograd.value import Scalar, Value, as_flag, as_role, checked, checked_entries, excerpt, label_of
from textgrad_engine.dispatch import Call, aside
from textgrad_engine.errors import AutogradError
from textgrad_engine.keywords import names_told, unknown_name

_LEFT_OUT: Any = object()
"""In the place of the data where it was given by another name, or not at all."""


class Variable(Operators):
    """A string, a number, or a list of either (a batch), with a role in words.

    Args:
        data: the value.
        role: what the value is for, in words; critics and optimizers are told it.
        requires_grad: whether feedback on it is wanted.

    Raises:
        TypeError: data is something else, the role is no text, or requires_grad neither True nor False.
        ValueError: the text holds a lone surrogate, which no endpoint accepts; the position is named.

    ``answer == "yes"`` compares the data with a text, a number or a list of them; ``<`` and its like always compare the
    data. Two Variables are equal only if they are the same object. Hash is by identity, so ``answer in {"yes"}`` (a
    set) is False, while ``answer in ("yes",)`` compares. Reading `data` (or ``str``, ``int``, ``float``, ``len``,
    ``bool``, ``==``, ``<``) of a value that is still being computed waits for it.

    Example:
        >>> prompt = Variable("Answer briefly.", role="system prompt", requires_grad=True)
        >>> prompt.grad
        []
        >>> str(prompt + " Thank you.")
        'Answer briefly. Thank you.'
    """

    __slots__ = (
        "_accumulator",
        "_grad",
        "_grad_fn",
        "_hooks",
        "_origin",
        "_post_hooks",
        "_requires_grad",
        "output_nr",
        "source",
    )

    _own_slots: ClassVar[frozenset[str]] = frozenset({*Value.__slots__, *__slots__})
    """All slots but those that a subclass adds."""

    _adds: ClassVar[bool] = False
    """Whether instances of a subclass have more than those of this class."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._adds = bool(cls.__dictoffset__) or cls.__basicsize__ > Variable.__basicsize__

    def __init__(self, data: Any, role: str = "", requires_grad: bool = False, **elsewhere: Never) -> None:
        if elsewhere or data is _LEFT_OUT:  # not by `names_told`, which would make each a fifth slower to make
            missing = "Variable.__init__() missing 1 required positional argument: 'data'"
            raise TypeError(unknown_name(Variable.__init__, (self,), elsewhere) or missing)
        self._data: Any = data if type(data) is str and data.isascii() else checked(data)
        self._role: str | None = role if type(role) is str else as_role(role)
        self._requires_grad = requires_grad if requires_grad is False else as_flag(requires_grad, "requires_grad")
        self._grad: list[Variable] | None = None
        self._grad_fn: FunctionNode | None = None
        self._call: Call | None = None
        self._index = 0
        self._version = 0
        self._hooks: dict[int, Any] | None = None
        self._post_hooks: dict[int, Any] | None = None
        self._accumulator: weakref.ref[AccumulateGrad] | None = None
        self._origin: Variable | None = None
        self._layer: Any = None  # the transform that this value belongs to, and what it stands for one level below
        self._inner: Any = None
        self.output_nr: int = 0
        self.source: Source | None = None

    @property
    def requires_grad(self) -> bool:
        """Whether feedback on it is wanted; for a result, whether any input wanted it."""
        if isinstance(self._inner, list):  # inside `vmap`, of any example
            return any(entry.requires_grad for entry in self._parts())
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Variable:
        """Change in place whether feedback is wanted, and return the variable.

        Raises:
            AutogradError: it is not a leaf; use `detach` to cut it off instead.
        """
        requires_grad = as_flag(requires_grad, "requires_grad")
        if not self.is_leaf and not requires_grad:
            raise AutogradError(
                f"{label_of(self)} is a result: requires_grad can be changed on leaves only. "
                "Use v.detach() to go on without it."
            )
        self._requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user (or under `no_grad`) and not by a recorded operation."""
        if isinstance(self._inner, list):
            return all(entry.is_leaf for entry in self._parts())
        return self._grad_fn is None

    @property
    def grad_fn(self) -> FunctionNode | None:
        """The node that computed it, None for a leaf."""
        return self._grad_fn

    @property
    def grad(self) -> list[Variable]:
        """The feedback collected so far, in order; [] when there is none. May be set to a Variable, a list or None."""
        if self._grad is None:
            self._grad = []
        return self._grad

    @grad.setter
    def grad(self, value: Variable | Iterable[Variable] | None) -> None:
        if value is None:
            self._grad = []
        elif isinstance(value, Variable):
            self._grad = [value]
        else:
            given: Any = value
            items = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
            for item in items:
                if not isinstance(item, Variable):
                    raise TypeError(
                        f"grad holds Variables, got {type(item).__name__}: {item!r:.60}; write Variable(text)"
                    )
            self._grad = items

    def retain_grad(self) -> None:
        """Keep the feedback on this result in its `.grad` too; does nothing on a leaf, which keeps it anyway.

        After a change in place it is the feedback on the new value.

        Raises:
            AutogradError: the variable does not require grad.
        """
        if not self.requires_grad:
            raise AutogradError(f"{label_of(self)} does not require grad, so there will be none to retain")
        self._refuse_of_each("retain_grad")
        if self._grad_fn is not None:
            self._grad_fn.retain(self)

    def register_hook(self, hook: Callable[[Variable], Any]) -> Handle:
        """Have `hook` called with the feedback on this variable in each backward pass; in `vmap`, for each example.

        Args:
            hook: gets one Variable (`data` the feedback joined in order, `grad` the items) and may return another, or a
                list of items, to replace it (for a batch, a list of texts is one item, with a text for each entry).
                None keeps the feedback, as the hook left it. The replacement keeps the source of what it replaces, so
                it is about the whole if this is a part of a longer text; give it a `Source` of its own otherwise.

        Returns:
            A handle whose `remove()` takes the hook away.

        Raises:
            AutogradError: the variable does not require grad.
        """
        if not self.requires_grad:
            raise AutogradError(f"{label_of(self)} does not require grad: no feedback will come by")
        if isinstance(self._inner, list):
            return Handles([entry.register_hook(hook) for entry in self._parts() if entry.requires_grad])
        return add_hook(hooks_at(self._gradient_edge()), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Variable], Any]) -> Handle:
        """Have ``hook(variable)`` called when a backward pass has appended feedback to this leaf's `.grad`.

        It is called when the pass is over: all leaves are written, the graph is freed. What it returns is ignored. When
        such hooks raise, the others run all the same, then the first error is raised; the feedback stays.

        Returns:
            A handle whose `remove()` takes the hook away.

        Raises:
            AutogradError: the variable does not require grad, or is no leaf.

        Example:
            >>> prompt = Variable("Be brief.", role="prompt", requires_grad=True)
            >>> handle = prompt.register_post_accumulate_grad_hook(lambda leaf: print(len(leaf.grad)))
            >>> (prompt + " Thanks.").backward("too short")
            1
        """
        if not self.requires_grad:
            raise AutogradError(f"{label_of(self)} does not require grad: no feedback will be written to it")
        self._refuse_of_each("register_post_accumulate_grad_hook")
        if self._grad_fn is not None:
            raise AutogradError(
                f"{label_of(self)} is a result, and feedback is written to leaves only. Use register_hook, which sees "
                "the feedback on a result as it comes by."
            )
        if self._post_hooks is None:
            self._post_hooks = {}
        return add_hook(self._post_hooks, hook)

    @names_told
    def backward(
        self,
        gradient: str | Variable | list[Any] | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Carry feedback from here to the leaves; see `textgrad_engine.backward`.

        Args:
            gradient: the feedback to begin with, in words; of a batch also a list with a text for each entry. A loss
                needs none.
            retain_graph: keep the graph for another backward; by default as `create_graph`.
            create_graph: record the feedback's own graph, so that it can be differentiated again.
            inputs: only these leaves (or GradientEdges) get feedback.
        """
        BACKWARD[0]((self,), (gradient,), retain_graph, create_graph, inputs)

    async def abackward(
        self,
        gradient: str | Variable | list[Any] | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """`backward` for code that has an event loop of its own; the loop is not blocked.

        When the wait for it is cancelled, so are its calls, and it leaves no feedback behind.
        """
        await aside(lambda: BACKWARD[0]((self,), (gradient,), retain_graph, create_graph, inputs))

    def detach(self) -> Variable:
        """The same value, detached from the graph and from all transforms: it gets neither feedback nor edits."""
        return self._detached(Variable)

    def _detached(self, kind: type[Variable] | None = None) -> Variable:
        """See `detach`; the kind as in `_alias`."""
        if isinstance(self._inner, tuple):  # a value of `jvp`, without its edit
            return self._primal()._detached(kind)
        other = self._alias(kind)
        if isinstance(self._inner, list):
            other._inner = [entry.detach() for entry in self._inner]
        elif self._inner is not None:
            other._inner = self._primal().detach()
        other._requires_grad = False
        other._grad_fn, other.output_nr = None, 0
        other._origin = None  # a value of its own from here on: editing either does not spoil the other
        return other

    def clone(self) -> Variable:
        """A copy that is recorded: feedback on it flows back here."""
        return Variable.copy_rule(self)

    def copy_(self, other: Variable | Scalar) -> Variable:
        """Take over another value in place.

        Raises:
            AutogradError: it is a leaf that requires grad, outside `no_grad`.
        """
        refuse_in_place(self, "copy_")
        source = other if isinstance(other, Variable) else Variable(other, role=self.role)
        become(self, source.clone() if GRAD_ENABLED.get() and source._requires_grad else source.detach())
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        return deep_copy(self, memo)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:  # what `copy` and `pickle` make a new leaf of
        return _new_leaf, *reduced(self)

    def __iadd__(self, other: Variable | Scalar) -> Variable:  # noqa: PYI034  it stays what it is
        refuse_in_place(self, "+=")
        become(self, Variable.add_rule(self._alias(), other))
        return self

    def __repr__(self) -> str:
        parts = [self._shown()]
        if self._role:
            parts.append(f"role={excerpt(self._role)}")
        if self._grad_fn is not None:
            parts.append(f"grad_fn={self._grad_fn!r}")
        elif self._requires_grad:
            parts.append("requires_grad=True")
        return f"{type(self).__name__}({', '.join(parts)})"

    # inner workings, shared with function.py, engine.py and the transforms

    @staticmethod
    def _of_call(call: Call, roles: Sequence[str]) -> tuple[Variable, ...]:
        """The values that a call will give, each with its role; nothing is recorded of them."""
        found = []
        for number, role in enumerate(roles):
            value = Variable("", role)
            value._call, value._index = call, number
            found.append(value)
        return tuple(found)

    def _alias(self, kind: type[Variable] | None = None) -> Variable:
        """The same value now, on the same place of the graph, in an object of its own: what a call takes "by value".

        Args:
            kind: `Variable` for one without what a subclass adds; by default one of the same class.
        """
        other = Variable.__new__(kind or type(self))
        call = self._call
        data = self._data
        other._data = checked_entries(data) if type(data) is list else data
        other._call = call
        other._index = self._index
        other._role = self._role
        other._requires_grad = self._requires_grad
        other._grad = None
        other._grad_fn = self._grad_fn
        other.output_nr = self.output_nr
        other._version = self._version
        other._hooks = other._post_hooks = other._accumulator = None
        other._origin = self if self._origin is None else self._origin
        other._layer, other._inner = self._layer, self._inner
        other.source = self.source
        if self._adds and kind is None:
            for name, value in self._added().items():
                object.__setattr__(other, name, value)
        return other

    def _added(self) -> dict[str, Any]:
        """What a subclass adds to an instance, as attributes or in slots of its own."""
        attributes, slots = added_state(self)
        return {**(attributes or {}), **slots}

    def _refuse_of_each(self, what: str) -> None:
        if isinstance(self._inner, list):
            raise AutogradError(
                f"{what} on {label_of(self)}, which inside vmap is a value for each example, with a place in the graph "
                "for each. Return it from the function that vmap runs, and do it with what vmap gives; "
                "register_hook works inside, too, and its hook is called for each example."
            )

    def _gradient_edge(self) -> GradientEdge:
        """Where feedback on this variable flows."""
        return GradientEdge(self._gradient_node(), 0 if self._grad_fn is None else self.output_nr)

    def _gradient_node(self) -> Node:
        """The node of `_gradient_edge`; a leaf does not hold its own."""
        if self._grad_fn is not None:
            return self._grad_fn
        if self._layer is not None:
            self._refuse_of_each("a hook or a gradient edge")
        leaf = self if self._origin is None else self._origin
        node = leaf._accumulator() if leaf._accumulator is not None else None
        return accumulator_of(leaf) if node is None else node

    def _flows_along(self, edge: GradientEdge) -> bool:
        """Whether an edge is the one along which feedback on this variable flows."""
        node = edge.node
        if self._grad_fn is not None:
            return self._grad_fn is node and self.output_nr == edge.output_nr
        leaf = self if self._origin is None else self._origin
        return leaf._accumulator is not None and leaf._accumulator() is node


# Python misses `data` before it looks at names, so who gives it by that of another library would not hear what it is
# called here. For type checkers, and for who looks at the signature, it has no default.
Variable.__init__.__signature__ = inspect.signature(Variable.__init__)  # type: ignore[attr-defined]
Variable.__init__.__defaults__ = (_LEFT_OUT, "", False)

pytree.add_leaf_type(Variable)


def _new_leaf(kind: type[Variable], data: Any, role: str, requires_grad: bool) -> Variable:
    leaf = kind.__new__(kind)  # pickles know this function by its name and place
    Variable.__init__(leaf, data, role, requires_grad)
    return leaf


BACKWARD: list[Callable[..., None]] = []
"""What `backward` does, registered by `api.py`, which sits above this file."""
