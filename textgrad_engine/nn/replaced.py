"""Other values in the place of a program's parameters and buffers, for `func.functional_call`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd import Variable
from textgrad_engine.nn.names import named_state
from textgrad_engine.nn.trained import watched
from textgrad_engine.ops.pass_on import Compute
from textgrad_engine.scoped import setting

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

REPLACED: ContextVar[Mapping[tuple[int, str], tuple[Module, Variable]]] = ContextVar(
    "textgrad_engine_replaced", default=MappingProxyType({})
)
"""What stands for a parameter, by its module's id and its name there; with the module, so that the id stays its own."""


def in_this_call(module: Module, name: str, own: Variable) -> Variable:
    """What stands for a parameter or buffer of a module where `functional_call` replaces it, else itself."""
    replaced = REPLACED.get().get((id(module), name))
    return own if replaced is None else replaced[1]


@contextlib.contextmanager
def replacing(root: Module, overrides: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block, for this task or thread and what it starts, other values stand for some of the state.

    Args:
        root: the program.
        overrides: the values by dotted name: Variables, values inside a transform, or texts.

    Raises:
        KeyError: there is no parameter or buffer of that name, or two names of one are given different values.
        TypeError: a value is neither a Variable nor a text.
    """
    places = _places(root)
    if unknown := [name for name in overrides if name not in places]:
        raise KeyError(
            f"{type(root).__name__} has no parameter or buffer {unknown[0]!r}; it has {', '.join(places) or 'none'}"
        )
    replaced = dict(REPLACED.get())
    given: dict[int, tuple[str, Any]] = {}
    for name, value in overrides.items():
        own, spots = places[name]
        if id(own) in given:
            other, same = given[id(own)]
            if value is not same and not (isinstance(value, str) and value == same):
                raise KeyError(f"{other!r} and {name!r} are one parameter: give a value for one of them")
            continue
        given[id(own)] = name, value
        stand_in = _stand_in(value, own, name)
        replaced.update({(id(module), key): (module, stand_in) for module, key in spots})
    with setting(REPLACED, replaced), watched(root, "functional_call"):
        yield


def _places(root: Module) -> dict[str, tuple[Variable, list[tuple[Module, str]]]]:
    """Each parameter and buffer by dotted name, with all places where modules below `root` have it."""
    named: dict[str, Variable] = {}
    spots: dict[int, list[tuple[Module, str]]] = {}
    for full, module, name, value in named_state(root):
        named[full] = value
        spots.setdefault(id(value), []).append((module, name))
    return {name: (value, spots[id(value)]) for name, value in named.items()}


def _stand_in(value: Any, own: Variable, name: str) -> Variable:
    """A value in the place of a parameter, with its role where it has none of its own."""
    if isinstance(value, str):
        return Variable(value, role=own.role)
    if isinstance(value, Mapping) and "data" in value:
        raise TypeError(
            f"{name!r} is replaced by a Variable or a text, got an entry of a state_dict(); give "
            "dict(module.named_parameters()), or of a state that was kept {name: entry['data'] for name, entry in "
            "state.items()}"
        )
    if not isinstance(value, Variable):
        raise TypeError(f"{name!r} is replaced by a Variable or a text, got {type(value).__name__} {value!r:.40}")
    if value._role != "" or not own.role:
        return value
    named: Variable = Compute.apply(_same, value, own.role)  # recorded: values of every transform keep the role
    return named


def _same(data: Any) -> Any:
    return data
