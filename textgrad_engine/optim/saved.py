"""The state of an optimizer as plain data, and whose it is."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.cells import Evidence, Gone, Origin

_ORIGINS = TypeAdapter(list[Origin | None])


def plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is remembered of a parameter, as plain data.

    Example:
        >>> taken(plain({"origins": ("Sort.", [None]), "tried": ["Be brief."]}))
        {'origins': ('Sort.', [None]), 'tried': ['Be brief.']}
    """
    held = _copied(entry)
    if "origins" in held:
        text, origins = held["origins"]
        held["origins"] = [text, list(map(_as_plain, origins))]
    return held


def apart(state: Any) -> Any:
    """A state whose dicts, lists and sets are its own, so that it stays when those that it was made of change.

    Objects of a user's own, such as a proposer, stay the same ones.

    Example:
        >>> history = [["Be brief."]]
        >>> state = apart({"steps": 1, "history": history})
        >>> history[0].append("Be kind.")
        >>> state
        {'steps': 1, 'history': [['Be brief.']]}
    """
    if type(state) in (list, tuple):
        return type(state)(map(apart, state))
    if isinstance(state, dict):
        held = copy.copy(state)
        held.update({name: apart(value) for name, value in state.items()})
        return held
    if isinstance(state, deque):
        return deque(map(apart, state), state.maxlen)
    return set(state) if type(state) is set else state


def taken(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The other way round of `plain`."""
    held = _copied(entry)
    if "origins" in held:
        text, origins = held["origins"]
        held["origins"] = (text, _ORIGINS.validate_python(origins))
    return held


def _copied(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is remembered, copied; the origins are not, as nobody can change them, and they grow with each step."""
    copied = copy.deepcopy({name: value for name, value in entry.items() if name != "origins"})
    return {name: value if name == "origins" else copied[name] for name, value in entry.items()}


def _as_plain(value: Any) -> Any:
    """An origin as `dataclasses.asdict` gives it, which also copies each text in it."""
    if isinstance(value, Origin | Gone | Evidence):
        return {name: _as_plain(inside) for name, inside in vars(value).items()}
    return tuple(map(_as_plain, value)) if isinstance(value, tuple) else value


def state_of(
    groups: Sequence[Mapping[str, Any]], variables: Sequence[Variable], remembered: Mapping[Any, Any]
) -> dict[str, Any]:
    """Groups, and what is remembered of their parameters, as plain data; parameters are numbered in order.

    What is remembered under a name is of the whole optimizer, as in PyTorch, and stays under that.

    Raises:
        TypeError: it is remembered of something that is neither one of the parameters nor a name.
    """
    numbers = {id(variable): number for number, variable in enumerate(variables)}
    held: dict[int | str, Any] = {}
    for of, entry in remembered.items():
        if id(of) in numbers:
            held[numbers[id(of)]] = plain(entry)
        elif isinstance(of, str) and not of.isdecimal():  # JSON makes a text of a parameter's number
            held[of] = copy.deepcopy(entry)
        else:
            raise TypeError(
                f"the optimizer's state is kept by its parameters, and by names of what is about all of them; got "
                f"{type(of).__name__} {of!r:.60}"
            )
    return {
        "state": held,
        "param_groups": [{**group, "params": [numbers[id(each)] for each in group["params"]]} for group in groups],
    }


def remembered_in(state: Mapping[str, Any], variables: Sequence[Variable]) -> dict[Any, Any]:
    """What a state has remembered of parameters, and under names.

    Raises:
        ValueError: it is of more parameters than these.
    """
    known = dict(enumerate(variables))
    named = {name for name in state["state"] if isinstance(name, str) and not name.isdecimal()}
    if strange := [number for number in state["state"] if number not in named and int(number) not in known]:
        raise ValueError(f"the state is of parameter {strange[0]}, too; this optimizer has 0 to {len(known) - 1}")
    return {
        of if of in named else known[int(of)]: copy.deepcopy(entry) if of in named else taken(entry)
        for of, entry in state["state"].items()
    }


def check_sizes(state: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a state of other groups.

    Raises:
        ValueError: theirs are more, fewer, or of other sizes.
    """
    sizes, theirs = ([len(group["params"]) for group in each] for each in (groups, state["param_groups"]))
    if sizes != theirs:
        raise ValueError(f"the state is for groups of {theirs} parameters; this optimizer has groups of {sizes}")


def check_owner(state: Mapping[str, Any], kind: type, own: Callable[[], Mapping[str, Any]]) -> None:
    """Refuse what is not a state of this optimizer's.

    Args:
        state: what `load_state_dict` was given.
        kind: the class of the optimizer.
        own: gives its own state.

    Raises:
        TypeError: it is no state.
        ValueError: it is another optimizer's.
    """
    given: object = state
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict takes what state_dict gave, got {type(given).__name__} {given!r:.60}")
    name = given.get("optimizer")
    if name is None:  # it was saved before states had the name, so that only its shape can tell
        known = _shape(own())
        foreign = [part for part in _shape(given) if part not in known]
        if foreign:
            raise ValueError(
                f"the state is another optimizer's: it has {foreign[0]}, which that of {kind.__name__} has not"
            )
    elif name not in [each.__name__ for each in kind.__mro__]:
        raise ValueError(
            f"the state is that of {name}, and this optimizer is {kind.__name__}; load it into {name} with as many "
            "parameters"
        )


def _shape(state: Mapping[str, Any]) -> list[str]:
    """What a state is made of, in words: its keys, those of what a search remembers, and the settings of its groups."""
    settings = sorted({name for group in state.get("param_groups", ()) for name in group})
    return [
        *(repr(name) for name in state if name != "optimizer"),
        *(f"memory[{name!r}]" for name in state.get("memory") or ()),
        *(f"the setting {name!r}" for name in settings),
    ]
