"""Parts, parameters and buffers that a test puts something in the place of, or takes out, come back where they were.

Tests patch attributes and put them back: pytest's `monkeypatch` assigns what was there; `unittest.mock` deletes its own
first, and assigns what was there where there is nothing then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

_HELD = "_covered"


class _Held(NamedTuple):
    """One of them.

    Attributes:
        store: the name of the module's dict that held it.
        value: the part or buffer, where a plain value was put over it; None where it was deleted.
        behind: the names that came behind its own there.
        deleted: whether it was.
    """

    store: str
    value: Any
    behind: tuple[str, ...]
    deleted: bool


class _All:
    """Those of a module by name; no dict, in which the module would be said to have parts that nobody trains."""

    def __init__(self) -> None:
        self.by_name: dict[str, _Held] = {}


def cover(module: Module, name: str, plain: Any) -> None:
    """A plain value comes in the place of what a module has under a name; None takes that out for good."""
    if plain is None:
        if (held := vars(module).get(_HELD)) is not None:
            held.by_name.pop(name, None)
        return
    for each in ("_buffers", "_modules"):
        if name in vars(module)[each]:
            _hold(module, each, name, deleted=False)


def uncover(module: Module, name: str) -> None:
    """A plain value was deleted; a part or a buffer that it was put over is there again, where it was."""
    held = vars(module).get(_HELD)
    if held is not None and (found := held.by_name.get(name)) is not None and not found.deleted:
        put(module, vars(module)[found.store], name, found.value)


def take_out(module: Module, name: str) -> bool:
    """Delete what a module has under a name; False where that is nothing but a plain value."""
    for each in ("_parameters", "_buffers", "_modules"):
        if name in vars(module).get(each, ()):  # there are none yet before super().__init__()
            _hold(module, each, name, deleted=True)
            return True
    return False


def was_buffer(module: Module, name: str) -> bool:
    """Whether what a module had under a name, before it was deleted, was a buffer."""
    held = vars(module).get(_HELD)
    return held is not None and (found := held.by_name.get(name)) is not None and found.store == "_buffers"


def put(module: Module, store: dict[str, Any], name: str, value: Any) -> None:
    """Keep a value in a store of the module; where something is held under its name, in the place of that."""
    held = vars(module).get(_HELD)
    found = None if held is None else held.by_name.pop(name, None)
    store[name] = value
    if found is not None and vars(module)[found.store] is store:
        for each in found.behind:
            if each in store:
                store[each] = store.pop(each)


def _hold(module: Module, store: str, name: str, *, deleted: bool) -> None:
    found: dict[str, Any] = vars(module)[store]
    names = list(found)
    behind, value = tuple(names[names.index(name) + 1 :]), found.pop(name)
    held = vars(module).setdefault(_HELD, _All())
    held.by_name[name] = _Held(store, None if deleted else value, behind, deleted)
