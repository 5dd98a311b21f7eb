"""Parameters of a program that nobody finds, as they stand in plain lists and dicts, or in its class."""

from __future__ import annotations

import itertools
import logging
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd import Variable
from textgrad_engine.nn.names import dotted

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

_log = logging.getLogger("textgrad_engine.nn.overlooked")

_OURS = __name__.partition(".")[0]

_MOST = 10
"""So many are named at most."""

_told: weakref.WeakValueDictionary[int, Module] = weakref.WeakValueDictionary()
"""The modules of which was told, by id: one that is a dataclass, or has an ``__eq__``, has no hash."""


def overlooked(root: Module) -> list[str]:
    """Where texts stand that want feedback and that `parameters()` does not find.

    That is in plain lists, tuples and dicts, in a class, or as a Variable that is no Parameter. Those that are frozen
    are left out, and those that are found under another name.

    Example:
        >>> from textgrad_engine import nn
        >>> program = nn.Sequential(nn.ChatCompletion("{text}", system=nn.Parameter("Answer.")))
        >>> program.checks = [nn.ChatCompletion("{text}", system=nn.Parameter("Check."))]
        >>> overlooked(program)
        ['checks[0].system']
    """
    found = {id(each) for _, each in (*root.named_parameters(), *root.named_buffers())}
    return [
        f"{dotted(path, name)}{inner}"
        for path, module in root.named_modules()
        for name, held in _beside_the_stores(module)
        for inner, each in _within(held)
        if _wants_feedback(each) and id(each) not in found
    ]


def _beside_the_stores(module: Module) -> Iterator[tuple[str, Any]]:
    """What a module has that is registered nowhere: of its own, or in a class of the user's."""
    stores = module._stores()
    hidden = {*vars(module), *itertools.chain(*stores)}
    for name, held in vars(module).items():
        if isinstance(held, list | tuple | dict | Variable) and not any(held is store for store in stores):
            yield name, held
    for cls in type(module).__mro__:
        if cls.__module__.partition(".")[0] == _OURS:
            continue
        for name, held in vars(cls).items():
            if name not in hidden and not name.startswith("__"):
                hidden.add(name)
                yield name, held


def _within(held: Any) -> Iterator[tuple[str, Any]]:
    """The texts in a plain container, in a module, or the one that it is, each with its path from there."""
    if isinstance(held, list | tuple | dict):
        for key, part in held.items() if isinstance(held, dict) else enumerate(held):
            for inner, each in _of_part(part):
                yield f"[{key!r}]{inner and f'.{inner}'}", each
    else:
        for inner, each in _of_part(held):
            yield inner and f".{inner}", each


def _wants_feedback(value: Any) -> bool:
    """Whether it is a text that would be trained if it were found, and no result or value of a transform."""
    return isinstance(value, Variable) and value._layer is None and value.is_leaf and value.requires_grad


def _of_part(part: Any) -> Iterator[tuple[str, Any]]:
    is_module = isinstance(getattr(part, "_parameters", None), dict)  # classes and mocks have none
    return part.named_parameters() if is_module else iter([("", part)])


def tell_of_overlooked(root: Module) -> None:
    """Say in the log, once of each module, which of its parameters nobody finds."""
    lost = [] if id(root) in _told else overlooked(root)
    if lost:
        _told[id(root)] = root
        _log.warning(
            "the program has texts in plain lists or dicts, in its class, or in Variables other than nn.Parameters "
            "(%s): they are not trained. Put modules into an nn.ModuleList or nn.ModuleDict, parameters into an "
            "nn.ParameterList or nn.ParameterDict, and texts of the class into __init__: self.text = "
            "nn.Parameter(...); make a Variable that is to be trained an nn.Parameter. Or freeze them by "
            "requires_grad_(False), if that is what was meant",
            ", ".join(lost[:_MOST]) + (f" and {len(lost) - _MOST} more" if len(lost) > _MOST else ""),
        )
