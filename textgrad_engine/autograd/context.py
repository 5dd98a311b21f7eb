"""What a Function's forward leaves for its backward: the `ctx` of both."""

from __future__ import annotations

import copy
import weakref
from typing import Any

from textgrad_engine.autograd.graph import FunctionNode
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.errors import AutogradError

__all__ = ["Context"]

_PLAIN = (str, int, float, bool, type(None))


class Context:
    """Carries values from forward to backward; free attributes may be set for anything that is no Variable.

    Attributes:
        needs_input_grad: for each argument of forward, whether a gradient for it is wanted.
        primals: in a `jvp` rule, the arguments of forward.
    """

    needs_input_grad: tuple[bool, ...] = ()
    primals: tuple[Any, ...] = ()
    _saved: tuple[Any, ...] = ()
    _constants: tuple[Variable, ...] = ()
    _materialize = True
    _freed = False
    _node: weakref.ref[FunctionNode] | None = None

    def save_for_backward(self, *values: Variable | str | float | None) -> None:
        """Keep Variables (inputs or outputs), strings, numbers and None for backward.

        Raises:
            TypeError: a value is something that could change in between, such as a list.
        """
        saved: list[Any] = []
        for value in values:
            if isinstance(value, Variable):
                saved.append(_Saved(value))
            elif isinstance(value, _PLAIN):
                saved.append(value)
            else:
                raise TypeError(
                    f"save_for_backward takes Variables, strings, numbers and None, got {type(value).__name__}: "
                    "set it as an attribute of ctx instead, if it never changes"
                )
        self._saved = tuple(saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """What was saved, in order. The Variables are stand-ins: assigning to their `.grad` changes no leaf.

        Raises:
            AutogradError: the graph was freed, or a saved variable was changed after its use.
        """
        if self._freed:
            raise AutogradError(FREED)
        return tuple([value.unpack(self._node) if isinstance(value, _Saved) else value for value in self._saved])

    def mark_non_differentiable(self, *outputs: Variable) -> None:
        """Say that feedback on these outputs leads nowhere; they do not require grad."""
        self._constants = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets an empty Variable (the default) or None for an output without feedback."""
        self._materialize = value

    def _is_constant(self, out: Variable, raw: Any) -> bool:
        return any(constant is out or constant is raw for constant in self._constants)

    def _seal(self, node: FunctionNode | None, raws: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """Outputs among what was saved are kept without their history, so that node and output form no cycle."""
        if node is not None:
            self._node = weakref.ref(node)
        for value in self._saved:
            if isinstance(value, _Saved):
                for number, (raw, out) in enumerate(zip(raws, outs)):
                    if value.variable is raw or value.variable is out:
                        value.make_output(number)
                        break

    def _with_needs(self, needs: tuple[bool, ...]) -> Context:
        """The same context for a pass that wants fewer gradients."""
        other = copy.copy(self)
        other.needs_input_grad = needs
        return other


FREED = (
    "this graph was freed by an earlier backward. Call the first one with retain_graph=True to go through it a second "
    "time."
)


class _Saved:
    """A saved variable: unpacked as a fresh stand-in on the same place of the graph."""

    __slots__ = ("output", "variable", "version")

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.version = variable._version
        self.output: int | None = None

    def make_output(self, number: int) -> None:
        if self.output is None:
            self.output = number
            held = self.variable._alias()
            held._grad_fn, held._edge, held._requires_grad, held._origin = None, None, False, None
            self.variable = held

    def unpack(self, node: weakref.ref[FunctionNode] | None) -> Variable:
        variable = self.variable
        origin = variable if variable._origin is None else variable._origin
        if origin._version != self.version:
            raise AutogradError(
                f"{origin._name()} was changed after it was used (version {origin._version}, used at version "
                f"{self.version}): feedback on the old value does not fit the new one. Call backward before the change."
            )
        stand_in = variable._alias()
        if self.output is not None and node is not None and (made_by := node()) is not None:
            stand_in._grad_fn, stand_in.output_nr, stand_in._requires_grad = made_by, self.output, True
        return stand_in
