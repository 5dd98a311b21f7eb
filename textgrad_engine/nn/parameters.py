"""Modules that hold parameters."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from textgrad_engine.checks import check
from textgrad_engine.nn.module import Module
from textgrad_engine.nn.names import check_name, next_number, numbered_anew
from textgrad_engine.nn.parameter import Parameter


class _Parameters(Module):
    """Parameters under names of their own, that belong to the module that holds it."""

    def _hold(self, name: str, parameter: Parameter) -> None:
        """Keep a parameter under a name; an attribute of that name stays what it is."""
        self._check(name, parameter)
        self._parameters[name] = parameter

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

    def __len__(self) -> int:
        return len(self._parameters)


class ParameterList(_Parameters):
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

    def append(self, parameter: Parameter) -> Self:
        """Put a parameter at the end."""
        self._hold(next_number(self._parameters, len(self)), parameter)
        return self

    def extend(self, parameters: Iterable[Parameter]) -> Self:
        """Put several parameters at the end."""
        if isinstance(parameters, Parameter):  # which can be iterated over where it is a batch
            raise TypeError(f"{type(self).__name__} takes a sequence of parameters, got one; write [parameter]")
        for parameter in list(parameters):  # which may be this list
            self.append(parameter)
        return self

    def __iadd__(self, parameters: Iterable[Parameter]) -> Self:
        return self.extend(parameters)

    def insert(self, index: int, parameter: Parameter) -> Self:
        """Put a parameter before the one at a place; the numbers of those behind it go up."""
        self._check(str(index), parameter)
        named = list(self._parameters.items())
        named.insert(operator.index(index), ("0", parameter))
        self._count_anew(named)
        return self

    def pop(self, index: int = -1) -> Parameter:
        """Take a parameter out and give it; the numbers of those behind it go down.

        Raises:
            IndexError: there is none at that place.
        """
        parameter = list(self)[operator.index(index)]
        del self[index]
        return parameter

    def __delitem__(self, index: int | slice) -> None:
        named = list(self._parameters.items())
        del named[index]
        self._count_anew(named)

    def _count_anew(self, named: list[tuple[str, Parameter | None]]) -> None:
        self._parameters.clear()
        self._parameters.update(numbered_anew(named))

    @overload
    def __getitem__(self, index: int) -> Parameter: ...

    @overload
    def __getitem__(self, index: slice) -> list[Parameter]: ...

    def __getitem__(self, index: int | slice) -> Parameter | list[Parameter]:
        return list(self)[index]  # no ParameterList: in that, nothing would stand for them in `func.functional_call`

    def __setitem__(self, index: int, parameter: Parameter) -> None:
        self._hold(list(self._parameters)[operator.index(index)], parameter)

    def __iter__(self) -> Iterator[Parameter]:
        return map(self._held, list(self._parameters))


class ParameterDict(_Parameters):
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
        for name, parameter in (parameters or {}).items():
            self[name] = parameter

    def __setitem__(self, name: str, parameter: Parameter) -> None:
        self._hold(name, parameter)

    def __getitem__(self, name: str) -> Parameter:
        if name not in self._parameters:
            raise KeyError(name)
        return self._held(name)

    def __delitem__(self, name: str) -> None:
        del self._parameters[name]

    def __contains__(self, name: str) -> bool:
        return name in self._parameters

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._parameters)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> list[Parameter]:
        """The parameters."""
        return list(map(self._held, self._parameters))

    def items(self) -> list[tuple[str, Parameter]]:
        """Each name with its parameter."""
        return [(name, self._held(name)) for name in self._parameters]

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter of that name, or `default` where there is none."""
        return self._held(name) if name in self._parameters else default

    def update(self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]]) -> None:
        """Put parameters under their names, in the place of those that have them."""
        for name, parameter in dict(parameters).items():
            self[name] = parameter

    def pop(self, name: str) -> Parameter:
        """Take a parameter out and give it.

        Raises:
            KeyError: there is none of that name.
        """
        parameter = self[name]
        del self[name]
        return parameter

    def clear(self) -> None:
        """Take all parameters out."""
        self._parameters.clear()
