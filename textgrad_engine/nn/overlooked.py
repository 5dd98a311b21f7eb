"""Parameters of a program that nobody finds, as they stand in plain lists and dicts."""

from __future__ import annotations

from textgrad_engine.nn.module import Module
from textgrad_engine.nn.names import dotted
from textgrad_engine.nn.parameter import Parameter


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
    found = {id(parameter) for parameter in root.parameters()}
    names: list[str] = []
    for path, module in root.named_modules():
        stores = [id(store) for store in module._stores()]
        for name, held in vars(module).items():
            if id(held) in stores or not isinstance(held, list | tuple | dict):
                continue
            for key, part in held.items() if isinstance(held, dict) else enumerate(held):
                inside = part.named_parameters() if isinstance(part, Module) else [("", part)]
                names += [
                    f"{dotted(path, name)}[{key!r}]{inner and f'.{inner}'}"
                    for inner, each in inside
                    if isinstance(each, Parameter) and each.requires_grad and id(each) not in found
                ]
    return names
