"""Parameters of a program that nobody finds, as they stand in plain lists and dicts."""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING

from textgrad_engine.nn.names import dotted
from textgrad_engine.nn.parameter import Parameter

if TYPE_CHECKING:
    from textgrad_engine.nn.module import Module

_log = logging.getLogger("textgrad_engine.nn.overlooked")

_MOST = 10
"""So many are named at most."""

_told: weakref.WeakValueDictionary[int, Module] = weakref.WeakValueDictionary()
"""The modules of which was told, by id: one that is a dataclass, or has an ``__eq__``, has no hash."""


def overlooked(root: Module) -> list[str]:
    """Where parameters stand that `parameters()` does not find: in plain lists, tuples and dicts of a module.

    Those that are frozen are left out, and those that are found under another name.

    Example:
        >>> from textgrad_engine import nn
        >>> program = nn.Sequential(nn.ChatCompletion("{text}", system=nn.Parameter("Answer.")))
        >>> program.checks = [nn.ChatCompletion("{text}", system=nn.Parameter("Check."))]
        >>> overlooked(program)
        ['checks[0].system']
    """
    found = {id(parameter) for _, parameter in root.named_parameters()}
    names: list[str] = []
    for path, module in root.named_modules():
        stores = [id(store) for store in module._stores()]
        for name, held in vars(module).items():
            if id(held) in stores or not isinstance(held, list | tuple | dict):
                continue
            for key, part in held.items() if isinstance(held, dict) else enumerate(held):
                is_module = isinstance(getattr(part, "_parameters", None), dict)  # classes and mocks have none
                inside = part.named_parameters() if is_module else [("", part)]
                names += [
                    f"{dotted(path, name)}[{key!r}]{inner and f'.{inner}'}"
                    for inner, each in inside
                    if isinstance(each, Parameter) and each.requires_grad and id(each) not in found
                ]
    return names


def tell_of_overlooked(root: Module) -> None:
    """Say in the log, once of each module, which of its parameters nobody finds."""
    lost = [] if id(root) in _told else overlooked(root)
    if lost:
        _told[id(root)] = root
        _log.warning(
            "the program has texts in plain lists or dicts, where nobody finds them (%s): they are not trained. "
            "Put modules into an nn.ModuleList or nn.ModuleDict, parameters into an nn.ParameterList or "
            "nn.ParameterDict; or freeze them by requires_grad_(False), if that is what was meant",
            ", ".join(lost[:_MOST]) + (f" and {len(lost) - _MOST} more" if len(lost) > _MOST else ""),
        )
