"""Modules that hold parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Self, overload

from textgrad_engine.checks import check
from textgrad_engine.nn.container_methods import Held, Listed, Named
from textgrad_engine.nn.module import Module
from textgrad_engine.nn.names import check_name
from textgrad_engine.nn.parameter import Parameter


class _Parameters(Held[Parameter]):
    """Parameters under names of their own, that belong to the module that holds it."""

    _store = "_parameters"

    def _check(self, name: str, parameter: Parameter) -> None:
        check_name(self, name, "parameter")
        if not isinstance(parameter, Parameter):
            raise TypeError(
                f"{type(self).__name__} takes parameters, and {name!r} is {type(parameter).__name__} "
                f"{parameter!r:.40}. Give nn.Parameter(text, role=...)."
            )

    def _held(self, name: str) -> Parameter:
        """What stands under a name, or what `func.functional_call` has put in its place."""
        found: Parameter = Module.__getattr__(self, name)
        return found


class ParameterList(_Parameters, Listed[Parameter]):
    """A list of parameters that belong to the module that holds it; in a plain list nobody would find them.

    A slice is a plain list of some of them.

    Args:
        parameters: the parameters, which are named "0", "1", …

    Raises:
        TypeError: one is no parameter.

    Example:
        >>> class Shown(Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.examples = ParameterList([Parameter("2 + 2 = 4", role="an example")])
        >>> [name for name, _ in Shown().named_parameters()]
        ['examples.0']
    """

    def __init__(self, parameters: Iterable[Parameter] = ()) -> None:
        super().__init__()
        given: object = parameters
        if not isinstance(given, Iterable):  # what is in it is looked at one by one
            check(ParameterList.__init__, {"parameters": given})
        self.extend(parameters)

    def extend(self, entries: Iterable[Parameter]) -> Self:
        """Put several parameters at the end."""
        if isinstance(entries, Parameter):  # which can be iterated over where it is a batch
            raise TypeError(f"{type(self).__name__} takes a sequence of parameters, got one; write [parameter]")
        return super().extend(entries)

    @overload
    def __getitem__(self, index: int) -> Parameter: ...

    @overload
    def __getitem__(self, index: slice) -> list[Parameter]: ...

    def __getitem__(self, index: int | slice) -> Parameter | list[Parameter]:
        return list(self)[index]  # no ParameterList: in that, nothing would stand for them in `func.functional_call`

    def __iter__(self) -> Iterator[Parameter]:
        return map(self._held, list(self._parameters))


class ParameterDict(_Parameters, Named[Parameter]):
    """Parameters by name, that belong to the module that holds it.

    Args:
        parameters: the parameters by name.

    Raises:
        KeyError: a name is empty, has a dot in it, or is no text.
        TypeError: one is no parameter.

    Example:
        >>> queues = ParameterDict({"billing": Parameter("About money.", role="what the queue is for")})
        >>> queues["billing"].data
        'About money.'
    """

    def __init__(self, parameters: Mapping[str, Parameter] | None = None) -> None:
        super().__init__()
        check(ParameterDict.__init__, locals())
        self.update(parameters or {})

    def __getitem__(self, name: str) -> Parameter:
        if name not in self._parameters:
            raise KeyError(name)
        return self._held(name)
