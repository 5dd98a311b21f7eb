"""The names of what a program is made of, and the walk over it that finds them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from textgrad_engine.autograd import Variable
from textgrad_engine.scoped import setting

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

T = TypeVar("T")

_SHOWN: ContextVar[tuple[set[int], set[int]] | None] = ContextVar("textgrad_engine_shown", default=None)
"""Of the repr that is under way: the modules that it shows once, and those of them that it has shown; by id."""


def dotted(path: str, name: str) -> str:
    """The name of what a part has, from the part's own name; "" is that of the root.

    Example:
        >>> dotted("chat", "system"), dotted("", "system")
        ('chat.system', 'system')
    """
    return f"{path}.{name}" if path else name


def next_number(names: Container[str], count: int) -> str:
    """The name of what comes to the end of a numbered container, which may have any of its numbers left.

    Example:
        >>> next_number({"0": "a", "1": "b"}, 2), next_number({"1": "b", "2": "c"}, 2)
        ('2', '3')
    """
    while str(count) in names:
        count += 1
    return str(count)


def numbered_anew(named: Iterable[tuple[str, T]]) -> dict[str, T]:
    """What a numbered container holds, after one came or went: numbers are counted anew, and other names stay.

    Example:
        >>> numbered_anew([("1", "b"), ("check", "c"), ("0", "a")])
        {'0': 'b', 'check': 'c', '2': 'a'}
    """
    return {str(place) if name.isdecimal() else name: value for place, (name, value) in enumerate(named)}


def check_name(module: Module, name: object, what: str) -> None:
    """Check that a dotted path can hold the name of a parameter, buffer or part.

    Raises:
        KeyError: it is no text, empty, or has a dot in it.
    """
    if not isinstance(name, str) or not name or "." in name:
        raise KeyError(
            f"{type(module).__name__}: the name of a {what} must be a text, non-empty and without dots, got {name!r}"
        )


def check_seen(module: Module, name: str) -> None:
    """Check that nothing of the class hides what a module is to keep under a name, as Python looks there first.

    Raises:
        KeyError: a method, a property or a value of the class has the name. (A slot that is empty hides nothing.)
    """
    for cls in type(module).__mro__:
        if name in vars(cls) and not inspect.ismemberdescriptor(vars(cls)[name]):
            raise KeyError(
                f"{type(module).__name__}.{name} is what the class {cls.__name__} has under that name, which would "
                "hide a parameter, buffer or part; give this one another name"
            )


def check_free(module: Module, name: str, what: str) -> None:
    """Check that nothing else of the module's has a name that is registered, as it would be gone without a word.

    Args:
        module: it.
        name: the name.
        what: the kind of what is registered; one may come in the place of another of its kind.

    Raises:
        KeyError: something else has it.
    """
    for kind, held in (("parameter", module._parameters), ("buffer", module._buffers), ("part", module._modules)):
        if kind != what and name in held:
            raise KeyError(
                f"{type(module).__name__}.{name} is a {kind} already, and would be gone; give the {what} another name, "
                f"or write `del module.{name}` first"
            )


def named_state(root: Module) -> Iterator[tuple[str, Module, str, Variable]]:
    """Every parameter and buffer under every dotted name: that, the module that has it, its name there, and itself.

    Names that hold None are left out.
    """
    for path, module in root.named_modules(remove_duplicate=False):
        for name, value in (*module._parameters.items(), *module._buffers.items()):
            if value is not None:
                yield dotted(path, name), module, name, value


def walk(root: Module, prefix: str, remove_duplicate: bool) -> Iterator[tuple[str, Module]]:
    """A module and all below it with dotted names; see `Module.named_modules`."""
    seen: set[int] = set()
    endless: set[int] = set() if remove_duplicate or not root._modules else _endless(root)
    stack: list[tuple[str, Module, tuple[int, ...]]] = [(prefix, root, ())]
    while stack:
        name, module, around = stack.pop()
        if id(module) in (seen if remove_duplicate else around):
            continue
        yield name, module
        if id(module) in seen and id(module) in endless:
            continue
        seen.add(id(module))
        inside = (*around, id(module))
        stack.extend((dotted(name, key), child, inside) for key, child in reversed(module._modules.items()))


def _endless(root: Module) -> set[int]:
    """The modules that are a part of themselves, as agents that know each other are, or hold such a one; by id."""
    parts_left: dict[int, int] = {}
    holders: dict[int, list[int]] = {}
    for module in root.modules():
        parts_left[id(module)] = len(module._modules)
        for part in module._modules.values():
            holders.setdefault(id(part), []).append(id(module))
    ended = [module for module, count in parts_left.items() if not count]
    for done in ended:  # which grows meanwhile
        del parts_left[done]
        for holder in holders.get(done, []):
            parts_left[holder] -= 1
            if not parts_left[holder]:
                ended.append(holder)
    return set(parts_left)


def each_once(show: Callable[[Module], str]) -> Callable[[Module], str]:
    """Decorate a ``__repr__``: what is, or holds, a part of itself is shown once, and after that by its class alone."""

    @functools.wraps(show)
    def shown(module: Module) -> str:
        under_way = _SHOWN.get()
        if under_way is None:
            with setting(_SHOWN, (_endless(module), set())):
                return shown(module)
        once, before = under_way
        if id(module) in before:
            return f"{type(module).__name__}(…)"
        before.update({id(module)} & once)
        return show(module)

    return shown
