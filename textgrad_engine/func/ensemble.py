"""`stack_module_state`: the values of several modules of one kind as batches, for `vmap` over the modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import check, in_order
from textgrad_engine.errors import AutogradError
from textgrad_engine.wording import a_class


class Module(Protocol):
    """What is wanted of a module; `nn` stands beside this package, so it is not imported."""

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Its parameters."""

    def named_buffers(self) -> Iterator[tuple[str, Variable]]:
        """Its buffers."""


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, list[Variable]], dict[str, list[Variable]]]:
    """The parameters and the buffers of several modules, for each name a list with the value of each module.

    A list is a batch to `vmap`: ``vmap(call, in_dims=(0, 0, None))(parameters, buffers, text)`` runs all the modules,
    as in `torch.func`. The values are the modules' own, so feedback goes to the parameters of each.

    Args:
        models: modules of one class, with the same names in them; at least one.

    Returns:
        The parameters and the buffers, by name.

    Raises:
        TypeError: something is no nn.Module.
        AutogradError: there is none, or they differ in class or names.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.func import functional_call, vmap
        >>> class Greeter(nn.Module):
        ...     def __init__(self, words):
        ...         super().__init__()
        ...         self.greeting = nn.Parameter(words, role="greeting")
        ...     def forward(self, name):
        ...         return self.greeting + ", " + name
        >>> greeters = [Greeter("Hello"), Greeter("Hi")]
        >>> parameters, buffers = stack_module_state(greeters)
        >>> def call(parameters, buffers, name):
        ...     return functional_call(greeters[0], (parameters, buffers), name)
        >>> vmap(call, in_dims=(0, None, None))(parameters, buffers, "Ann").data
        ['Hello, Ann', 'Hi, Ann']
    """
    check(stack_module_state, {"models": models})
    given = list(in_order(models, "stack_module_state: "))
    if not given:
        raise AutogradError("stack_module_state: there is no module; give a list of those that vmap is to run")
    for number, model in enumerate(given):
        if type(model) is not type(given[0]):
            raise AutogradError(
                f"stack_module_state: module {number} is {a_class(type(model))}, and the first "
                f"{a_class(type(given[0]))}; one forward runs them all, so they must be of one class"
            )
    parameters = _stacked("parameters", [dict(model.named_parameters()) for model in given])
    return parameters, _stacked("buffers", [dict(model.named_buffers()) for model in given])


def _stacked(what: str, values: Sequence[Mapping[str, Any]]) -> dict[str, list[Variable]]:
    for number, own in enumerate(values):
        if set(own) != set(values[0]):
            raise AutogradError(
                f"stack_module_state: module {number} has the {what} {sorted(own)}, and the first {sorted(values[0])}"
            )
    return {name: [own[name] for own in values] for name in values[0]}
