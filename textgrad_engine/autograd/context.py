"""What a Function's forward leaves for its backward: the `ctx` of both."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from textgrad_engine.autograd.arguments import one_of
from textgrad_engine.autograd.graph import FunctionNode, GradientEdge
from textgrad_engine.autograd.other_libraries import NotHere
from textgrad_engine.autograd.value import label_of, shape_of
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.dispatch import Call
from textgrad_engine.errors import AutogradError

if TYPE_CHECKING:
    from textgrad_engine.autograd.late import LateInput
    from textgrad_engine.autograd.layers import Layer

_PLAIN = (str, int, float, bool, type(None))

_VERSIONS: dict[tuple[int | None, ...], tuple[int | None, ...]] = {}


class Context:
    """Carries values from forward to backward; free attributes may be set for anything that is no Variable.

    Attributes:
        needs_input_grad: for each argument of forward, whether it needs a gradient.
        primals: in a `jvp` rule, the arguments of forward.
        example: the name of the example that the call belongs to, "" when it has none.
        late: what forward came upon (NOTE [Late inputs] in ``late.py``); rules read it as `late_inputs`.
    """

    saved_tensors = NotHere(".saved_variables")
    mark_dirty = NotHere("`return Variable(...)`, as a forward changes none of its inputs")

    needs_input_grad: tuple[bool, ...] = ()
    primals: tuple[Any, ...] = ()
    example: str = ""
    late: tuple[LateInput, ...] = ()
    _saved: tuple[Any, ...] = ()
    _versions: tuple[int | None, ...] = ()
    _constants: tuple[Variable, ...] = ()
    _materialize = True
    _freed = False
    _node: weakref.ref[FunctionNode] | None = None
    _marked: frozenset[int] = frozenset()
    """Inside a transform, the numbers of the outputs that were marked as not differentiable."""
    _shapes: dict[int, Any] | None = None
    """The shapes of the outputs that are batches, by number."""
    _plain: tuple[int, ...] = ()
    """The numbers of the outputs that are no Variables, on which there is no feedback."""
    _parts: tuple[Context, ...] = ()
    """Of a call that is made for all examples of a batch, what its Function saved for each."""

    if TYPE_CHECKING:  # for type checkers it has any attribute, of any kind

        def __setattr__(self, name: str, value: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

    def save_for_backward(self, *values: object) -> None:
        """Keep Variables (inputs or outputs), strings, numbers and None for backward.

        So is what says of its class that it never changes and holds no Variables (``no_variables_inside``).

        Raises:
            TypeError: a value is something that could change in between, such as a list.
        """
        versions: list[int | None] = []
        for value in values:
            if isinstance(value, Variable):
                versions.append(value._version)
            elif isinstance(value, _PLAIN) or getattr(value, "no_variables_inside", False):
                versions.append(None)
            else:
                raise TypeError(
                    f"save_for_backward takes Variables, strings, numbers and None, got {type(value).__name__}: "
                    "set it as an attribute of ctx instead, if it never changes"
                )
        self._saved, self._versions = values, one_of(_VERSIONS, tuple(versions))

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """What was saved, in order. The Variables are stand-ins: assigning to their `.grad` changes no leaf.

        Raises:
            AutogradError: the graph was freed, or a saved variable was changed after its use.
        """
        if self._freed:
            raise AutogradError(FREED)
        found = []
        for value, version in zip(self._saved, self._versions):
            if version is None:
                found.append(value)
            elif type(value) is _SavedOutput:
                found.append(value.unpack(self._node))
            else:
                _refuse_edit(value, version)
                found.append(value._alias())
        return tuple(found)

    def saved_for_reading(self) -> list[Any]:
        """As `saved_variables`, for rules that only read, where nothing is recorded: without stand-ins.

        The Variables are those that were saved; of an output there is its data where that is known.
        """
        found = []
        for value, version in zip(self._saved, self._versions):
            if type(value) is _SavedOutput:
                found.append(value.for_reading(self._node))
                continue
            if version is not None:
                origin = value if value._origin is None else value._origin
                if origin._version != version or type(value._data) is list:
                    _refuse_edit(value, version)
            found.append(value)
        return found

    def saved_data(self, number: int) -> Any:
        """The data of one of the values that were saved, by its place; raises as `saved_variables`."""
        if self._freed:
            raise AutogradError(FREED)
        value, version = self._saved[number], self._versions[number]
        if version is None:
            return value
        if type(value) is _SavedOutput:
            found = value.for_reading(self._node)
            return found.data if isinstance(found, Variable) else found
        _refuse_edit(value, version)
        return value.data

    @property
    def late_inputs(self) -> tuple[tuple[Variable, Any], ...]:
        """What forward came upon, in order, each with the note that it gave.

        Raises:
            AutogradError: one was changed after its use.
        """
        for variable, _, version in self.late:
            _refuse_edit(variable, version)
        return tuple([(each.variable, each.note) for each in self.late])

    def leaf_ids(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """What tells apart the leaves among some of the values that were saved, by their places."""
        kept: list[Variable] = []
        for number in numbers:
            value = self._saved[number]
            variable = value.variable if type(value) is _SavedOutput else value
            if isinstance(variable, Variable):
                kept.append(variable)
        return tuple([id(v if v._origin is None else v._origin) for v in kept if v._grad_fn is None])

    def edge(self, argument: int) -> GradientEdge | None:
        """Where feedback on an argument that is a Variable flows; None where there is none, or none is wanted.

        Args:
            argument: its number among those of forward; from the end where it is negative.
        """
        node = None if self._node is None else self._node()
        place = None if node is None else node.layout[argument]
        return node.edges[place] if node is not None and type(place) is int else None

    def mark_non_differentiable(self, *outputs: Variable) -> None:
        """Say that feedback on these outputs leads nowhere; they do not require grad.

        Raises:
            TypeError: one is no Variable.
        """
        for output in outputs:
            if not isinstance(output, Variable):
                raise TypeError(f"mark_non_differentiable takes Variables, got {type(output).__name__} {output!r:.40}")
        self._constants = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets an empty Variable (the default) or None for an output without feedback."""
        self._materialize = value

    def _is_constant(self, out: Variable, raw: Any) -> bool:
        for constant in self._constants:  # noqa: SIM110  any() would cost a frame for each call
            if constant is out or constant is raw:
                return True
        return False

    def _belongs_to(self, node: FunctionNode) -> None:
        """The node is there that holds the context."""
        self._node = weakref.ref(node)
        for part in self._parts:
            part._belongs_to(node)

    def _note_batch(self, output: int, data: Any) -> None:
        """An output is a batch: feedback on it is a list with a text for each entry."""
        if any(self.needs_input_grad):  # else there will be none, and the context may be that of all such calls
            self._shapes = {**(self._shapes or {}), output: shape_of(data)}

    def _seal(self, node: FunctionNode | None, raws: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """Outputs among what was saved are kept without their history, so that node and output form no cycle."""
        if node is not None:
            self._node = weakref.ref(node)
        for part in self._parts:
            part._seal(node, raws, outs)
        saved: list[Any] | None = None
        for place, version in enumerate(self._versions):
            value = self._saved[place]
            if version is None or type(value) is _SavedOutput:
                continue
            for number, (raw, out) in enumerate(zip(raws, outs)):
                if value is raw or value is out:
                    # One that was dispatched may have been changed since, while its forward ran.
                    kept = _SavedOutput(value, version, number, out, 0 if node is None else out._version)
                    saved = saved or list(self._saved)
                    saved[place] = kept
                    break
            else:
                # Of what is, or may turn out to be, a batch a copy, as a list can be edited.
                if value._origin is None and (type(value._data) is list or value._call is not None):
                    saved = saved or list(self._saved)
                    saved[place] = value._alias()
        if saved is not None:
            self._saved = tuple(saved)

    def _computed(self, values: Sequence[Any]) -> None:
        """The data and role of each output are there: what was saved of them needs the call no longer."""
        for value in self._saved:
            if type(value) is _SavedOutput and value.call is not None:
                value.settle(values[2 * value.output], values[2 * value.output + 1])

    def _with(self, **changed: Any) -> Context:
        """The same context with some attributes changed, for one use of it."""
        other = copy.copy(self)
        vars(other).update(changed)
        return other


FREED = (
    "this graph was freed by an earlier backward. A value that each pass needs is made anew in each: in forward, not "
    "once in __init__. To go through one graph a second time, call the first backward with retain_graph=True."
)


class ExampleContexts(Context):
    """The contexts of a call inside `vmap`: its `setup_context` ran once for each example.

    Attributes:
        layer: the level of batching.
        parts: the context of each example.
    """

    def __init__(self, layer: Layer, parts: list[Context]) -> None:
        self.layer, self.parts = layer, parts

    def _belongs_to(self, node: FunctionNode) -> None:
        """Of each example, too."""
        super()._belongs_to(node)
        for part in self.parts:
            part._belongs_to(node)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Refuse.

        Raises:
            AutogradError: always: nobody asks for it but a rule that is run when the `vmap` is over.
        """
        raise AutogradError(
            "this call was made inside vmap, and its feedback is asked for after vmap ended. Return the gradient from "
            "the function that vmap runs, not what computes it."
        )

    def saved_for_reading(self) -> list[Any]:
        """Refuse, as `saved_variables`."""
        return list(self.saved_variables)


def any_context(ctx: Context) -> Context:
    """The context of a call, or of one of its examples."""
    while isinstance(ctx, ExampleContexts):
        ctx = ctx.parts[0]
    return ctx


class _SavedOutput(weakref.ref[Variable]):
    """A saved output: unpacked as a fresh stand-in on the same place of the graph.

    The value alone is kept, and the variables that the user may still change are only watched: what the node holds
    must not hold the node. So it is itself the weak reference to the output, one object less of each call. A saved
    input is kept as it is, with the version that it had.
    """

    __slots__ = ("call", "fresh", "output", "role", "value", "variable", "version", "watched")

    def __new__(cls, given: Variable, version: int, number: int, out: Variable, fresh: int) -> Self:
        return super().__new__(cls, out)

    def __init__(self, given: Variable, version: int, number: int, out: Variable, fresh: int) -> None:
        self.version, self.output, self.fresh = version, number, fresh
        origin = given if given._origin is None else given._origin
        self.watched = None if origin is out else weakref.ref(origin)  # a forward may hand back what it was given
        self.variable: Variable | None = None
        self.call: Call | None = None  # of an output that was dispatched, until its value is there
        self.value: Any = None
        self.role: str | None = None
        if given is out and out._call is not None and out._layer is None:
            self.call, self.role = out._call, out._role  # all that there is of it so far
            return
        held = given._alias(Variable)
        held._grad_fn, held._requires_grad, held._origin = None, False, None
        self.variable = held

    def settle(self, value: Any, role: str) -> None:
        self.value = value
        if self.role is None:
            self.role = role
        self.call = None  # last: other threads may be reading

    def _check(self) -> None:
        given = None if self.watched is None else self.watched()
        for variable, version in ((given, self.version), (self(), self.fresh)):
            if variable is not None:
                _refuse_change(variable, version)
                if type(variable._data) is list and variable._call is None:
                    _refuse_other_entries(variable, self._entries())

    def _entries(self) -> Any:
        """Those of a batch, as they were computed."""
        if self.variable is not None:
            return self.variable.data
        call = self.call
        return self.value if call is None else call.result()[2 * self.output]

    def for_reading(self, node: weakref.ref[FunctionNode] | None) -> Any:
        """The data where it is there, else as `unpack`."""
        now = self()
        if self.variable is not None or self.call is not None or self.watched is not None:
            return self.unpack(node)
        if now is not None and (now._version != self.fresh or type(now._data) is list):
            self._check()
        return self.value

    def unpack(self, node: weakref.ref[FunctionNode] | None) -> Variable:
        self._check()
        if self.variable is not None:
            stand_in = self.variable._alias()
        else:
            stand_in, call = Variable(""), self.call
            if call is None:
                stand_in._data = self.value
            else:
                stand_in._call, stand_in._index = call, self.output
            stand_in._role = self.role
            if call is not None and call.done and call._error is None:
                stand_in._settle()
        if node is not None and (made_by := node()) is not None:
            stand_in._grad_fn, stand_in.output_nr, stand_in._requires_grad = made_by, self.output, True
        return stand_in


def _refuse_edit(saved: Variable, version: int) -> None:
    """Refuse a saved input that was changed since: by a new value, or, of a batch, in its list."""
    origin = saved if saved._origin is None else saved._origin
    _refuse_change(origin, version)
    if origin is not saved and type(origin._data) is list and origin._call is None:  # so that `saved` has its own, too
        _refuse_other_entries(origin, saved.data)


def _refuse_change(variable: Variable, version: int) -> None:
    if variable._version != version:
        raise AutogradError(
            f"{label_of(variable)} was changed after it was used (version {variable._version}, used at version "
            f"{version}): feedback on the old value does not fit the new one. Call backward before the change."
        )


def _refuse_other_entries(batch: Variable, entries: list[Any]) -> None:
    if batch._data != entries:
        raise AutogradError(
            f"the list of {label_of(batch)} was edited after it was used: feedback on the old entries does not fit the "
            "new ones. Assign a new list, v.data = [...], after backward."
        )
