"""The state of a program: its texts by dotted name as plain data, and taken over from it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from textgrad_engine.autograd import Variable, enable_grad, no_grad
from textgrad_engine.autograd.value import as_flag
from textgrad_engine.nn.names import named_state
from textgrad_engine.nn.replaced import in_this_call

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module


class IncompatibleKeys(NamedTuple):
    """What `Module.load_state_dict` did not load.

    Attributes:
        missing_keys: names that the module has, and the state has not.
        unexpected_keys: names that the state has, and the module has not.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


def state_of(root: Module) -> dict[str, dict[str, Any]]:
    """The state of a module; see `Module.state_dict`."""
    values = {full: in_this_call(module, name, value) for full, module, name, value in named_state(root)}
    return {
        name: {"data": copy.deepcopy(value.data), "role": value.role, "requires_grad": _wants_feedback(value)}
        for name, value in values.items()
    }


def load_state(root: Module, state: Mapping[str, Mapping[str, Any] | str], strict: bool) -> IncompatibleKeys:
    """Take over a state; see `Module.load_state_dict`."""
    given: Any = state
    if not isinstance(given, Mapping):
        is_run = isinstance(getattr(given, "best", None), Mapping)  # or the result of one
        got = f"{type(given).__name__}{'; give its .best' if is_run else f' {given!r:.60}'}"
        raise TypeError(f"load_state_dict takes what state_dict gave, got {got}")
    strict = as_flag(strict, "load_state_dict: strict")
    own = {full: value for full, _, _, value in named_state(root)}
    held = {id(value) for name, value in own.items() if name in state}
    missing = [name for name, value in own.items() if id(value) not in held]  # one of its names is enough
    unexpected = [name for name in state if name not in own]
    if strict and (missing or unexpected):
        none = unexpected and len(unexpected) == len(state)
        fits = "None fits; rename them." if none else "Pass strict=False to load what fits."
        raise KeyError(
            f"load_state_dict of {type(root).__name__}: missing {missing or 'nothing'}, "
            f"unexpected {unexpected or 'nothing'}. {fits}"
        )
    checked: dict[int, tuple[str, tuple[Any, str, bool]]] = {}
    for name in [name for name in state if name in own]:
        entry = _entry(name, state[name], own[name])
        other, same = checked.setdefault(id(own[name]), (name, entry))
        if entry != same:
            raise KeyError(
                f"load_state_dict of {type(root).__name__}: {other!r} and {name!r} are one, and the state has "
                "different values for them. Load it into a program in which they are two, or make them equal."
            )
    for name, (data, role, requires_grad) in checked.values():
        if own[name].is_leaf:
            with no_grad():
                own[name].data = data
        else:
            with enable_grad():  # under no_grad it would keep its history, and feedback on the new value go there
                own[name].copy_(Variable(data))
        own[name].role = role
        own[name].requires_grad_(requires_grad)
    return IncompatibleKeys(missing, unexpected)


def _wants_feedback(value: Variable) -> bool:
    """Whether a value wants feedback by itself; a result does for what it was made of, which is not saved."""
    return value.requires_grad and value.is_leaf


def _entry(name: str, entry: Any, own: Variable) -> tuple[Any, str, bool]:
    """Data, role and requires_grad of an entry of a state; a text leaves the last two as the program has them."""
    if isinstance(entry, str):
        return entry, own.role, _wants_feedback(own)
    if not isinstance(entry, Mapping) or not {"data", "role", "requires_grad"} <= set(entry):
        raise TypeError(
            f"load_state_dict: {name!r} has the entry {entry!r:.60}; expected {{'data': ..., 'role': ..., "
            "'requires_grad': ...}, as state_dict gives it, or a text"
        )
    for key, kind in (("role", str), ("requires_grad", bool)):
        if not isinstance(entry[key], kind):
            raise TypeError(
                f"load_state_dict: {key!r} of {name!r} is {type(entry[key]).__name__} {entry[key]!r:.60}; expected "
                f"{kind.__name__}, as state_dict gives it"
            )
    return copy.deepcopy(Variable(entry["data"]).data), entry["role"], entry["requires_grad"]
