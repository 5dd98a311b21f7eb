"""Parts and buffers that a plain value was put over, as by a test with a mock, come back when that is taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

_HELD = "_covered"


class _Covered(NamedTuple):
    """One of them.

    Attributes:
        store: the name of the module's dict that held it.
        value: the part or buffer.
        behind: the names that came behind its own there.
    """

    store: str
    value: Any
    behind: tuple[str, ...]


class _All:
    """Those of a module by name; no dict, in which the module would be said to have parts that nobody trains."""

    def __init__(self) -> None:
        self.by_name: dict[str, _Covered] = {}


def cover(module: Module, name: str, plain: Any) -> None:
    """A plain value comes in the place of what a module has under a name; None takes that out for good."""
    if plain is None:
        if (held := vars(module).get(_HELD)) is not None:
            held.by_name.pop(name, None)
        return
    for each in ("_buffers", "_modules"):
        store: dict[str, Any] = vars(module)[each]
        if name in store:
            names = list(store)
            behind = tuple(names[names.index(name) + 1 :])
            vars(module).setdefault(_HELD, _All()).by_name[name] = _Covered(each, store.pop(name), behind)


def uncover(module: Module, name: str) -> None:
    """A plain value was deleted; a part or a buffer that it was put over is there again, where it was."""
    held = vars(module).get(_HELD)
    if held is not None and (found := held.by_name.get(name)) is not None:
        put(module, vars(module)[found.store], name, found.value)


def put(module: Module, store: dict[str, Any], name: str, value: Any) -> None:
    """Keep a value in a store of the module; where something is covered there under its name, in the place of that."""
    held = vars(module).get(_HELD)
    found = None if held is None else held.by_name.pop(name, None)
    store[name] = value
    if found is not None and vars(module)[found.store] is store:
        for each in found.behind:
            if each in store:
                store[each] = store.pop(each)
