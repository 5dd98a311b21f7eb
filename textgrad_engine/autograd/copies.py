"""Copies of Variables that `copy` and `pickle` make: new leaves, with what a subclass adds to them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd.value import label_of
from textgrad_engine.errors import AutogradError

if TYPE_CHECKING:
    from textgrad_engine.autograd.variable import Variable


def deep_copy(variable: Variable, memo: dict[int, Any]) -> Variable:
    """A copy with the same feedback, and copies of what a subclass adds."""
    other = copy.copy(variable)
    memo[id(variable)] = other
    for name, value in variable._added().items():
        object.__setattr__(other, name, copy.deepcopy(value, memo))
    if variable._grad:
        other._grad = list(variable._grad)
    return other


def reduced(variable: Variable) -> tuple[tuple[Any, ...], Any]:
    """What `copy` and `pickle` make a new leaf of: class, data, role and requires_grad; and what comes beside these.

    Raises:
        AutogradError: it is no leaf.
    """
    if variable._grad_fn is not None or variable._layer is not None:
        raise AutogradError(
            f"{label_of(variable)} is a result, and its graph is not copied: only leaves are copied or pickled. "
            "v.detach() is the value alone, v.clone() a copy that sends feedback back here."
        )
    made_of = (type(variable), variable.data, variable.role, variable._requires_grad)
    attributes, slots = added_state(variable)
    if variable.source is not None:
        slots["source"] = replace(variable.source, because=tuple(map(_last_step, variable.source.because)))
    return made_of, (attributes, slots) if slots else attributes


def added_state(variable: Variable) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """What a subclass adds to an instance: its attributes, None where it has none of its own, and its slots."""
    state: Any = object.__getstate__(variable)
    attributes, slots = state
    return attributes, {name: value for name, value in slots.items() if name not in variable._own_slots}


def _last_step(value: Variable) -> Variable:
    """Feedback that other feedback was made from, without what it was made from itself: a history may be very long."""
    source = value.source
    if value._grad_fn is None and value._layer is None and (source is None or not source.because):
        return value
    alone = value.detach()
    alone.source = None if source is None else replace(source, because=())
    return alone
