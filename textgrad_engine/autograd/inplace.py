"""A Variable that is changed in place: it takes over another value, and where that comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.value import Value, label_of
from textgrad_engine.errors import AutogradError

if TYPE_CHECKING:
    from textgrad_engine.autograd.variable import Variable


def refuse_in_place(variable: Variable, what: str) -> None:
    """Refuse to change a leaf that requires grad while operations are recorded.

    Raises:
        AutogradError: it is one.
    """
    if variable._grad_fn is None and variable._requires_grad and GRAD_ENABLED.get():
        raise AutogradError(
            f"{what} on {label_of(variable)}: a leaf that requires grad cannot be changed in place while operations "
            "are recorded. Do it inside `with tg.no_grad():`, or make a new variable from it."
        )


def become(variable: Variable, other: Variable) -> None:
    """Take over the value of a fresh result, and its history unless nothing is recorded."""
    variable._data, variable._call, variable._index = other._data, other._call, other._index
    variable._version += 1
    if GRAD_ENABLED.get():
        retained = variable._grad_fn is not None and variable._grad_fn.stop_retaining(variable)
        variable._grad_fn, variable.output_nr = other._grad_fn, other.output_nr
        variable._requires_grad = other._requires_grad
        if retained and variable._grad_fn is not None:
            variable._grad_fn.retain(variable)
    elif isinstance(variable._inner, Value) and other._layer is not variable._layer:
        variable._inner = other  # a value of `grad` keeps its place there
        return
    variable._layer, variable._inner = other._layer, other._inner
