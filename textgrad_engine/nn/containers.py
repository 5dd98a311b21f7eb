"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, overload

from textgrad_engine.checks import check
from textgrad_engine.nn.container_methods import Held, Listed, Named
from textgrad_engine.nn.module import Module
from textgrad_engine.nn.names import check_name
from textgrad_engine.nn.parameter import Parameter


class _Container(Held[Module]):
    """Modules under names of their own, whose parameters belong to the module that holds it."""

    _store = "_modules"

    def _check(self, name: str, module: Any) -> None:
        check_name(self, name, "part")
        if not isinstance(module, Module):
            repair = "Make it an nn.Module whose forward does it."
            if isinstance(module, Parameter):
                repair = "Parameters stand in an nn.ParameterList or nn.ParameterDict."
            elif isinstance(module, type) and issubclass(module, Module):
                repair = f"Give an instance of it: {module.__name__}(...)."
            elif isinstance(module, list | tuple):
                repair = "Give the modules in it one by one, as in nn.Sequential(*modules)."
            raise TypeError(
                f"{type(self).__name__} takes modules, and {name!r} is {type(module).__name__} {module!r:.40}. {repair}"
            )

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Nothing: what is held is called.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"{type(self).__name__} holds modules and is not called itself; call them, or take nn.Sequential, which "
            "calls one after the other"
        )


class _Numbered(_Container, Listed[Module]):
    """Modules with the shape of a list."""

    @overload
    def __getitem__(self, index: int) -> Module: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Module | Self:
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return list(self._modules.values())[index]

    def _part(self, named: list[tuple[str, Module]]) -> Self:
        """Some of the modules, as a container of the same class, whatever its `__init__` takes; without hooks."""
        part = type(self).__new__(type(self))
        vars(part).update(vars(self))
        Module.__init__(part)
        part._parameters.update(self._parameters)
        part._buffers.update(self._buffers)
        part.training = self.training
        for name, module in named:
            part._hold(name, module)
        return part


class Sequential(_Numbered):
    """Modules one after the other, each fed with the result of the one before.

    Call it like its first module: with values by name, if that takes them.

    A slice is a Sequential of the same modules under the same names.

    Args:
        modules: the modules, which are named "0", "1", …; or one dict of them by name.

    Raises:
        TypeError: one is no module.

    Example:
        >>> len(Sequential(Module(), Module()))
        2
        >>> [name for name, _ in Sequential({"draft": Module(), "check": Module()})[1:].named_children()]
        ['check']
    """

    @overload
    def __init__(self, modules: Mapping[str, Module], /) -> None: ...

    @overload
    def __init__(self, *modules: Module) -> None: ...

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self._hold(name, module)
        else:
            self.extend(modules)

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the first module, and pass its result through the others; without modules, a value stays as it is.

        Raises:
            TypeError: there is no module, and not one value alone.
        """
        modules = iter(self._modules.values())
        first = next(modules, None)
        if first is None:
            if len(args) != 1 or kwargs:
                raise TypeError(f"{type(self).__name__} holds no modules, and is then called with one value")
            return args[0]
        value = first(*args, **kwargs)
        for module in modules:
            value = module(value)
        return value


class ModuleList(_Numbered):
    """A list of modules whose parameters belong to the module that holds it; a slice is one, too, and counts anew.

    Args:
        modules: the modules, which are named "0", "1", …

    Raises:
        TypeError: one is no module.

    Example:
        >>> from textgrad_engine.nn import ChatCompletion, Parameter
        >>> steps = ModuleList(ChatCompletion("{text}", system=Parameter(text)) for text in ("Shorten.", "Translate."))
        >>> [name for name, _ in steps.named_parameters()]
        ['0.system', '1.system']
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        given: object = modules
        if not isinstance(given, Iterable):  # what is in it is looked at one by one
            check(ModuleList.__init__, {"modules": given})
        self.extend(modules)

    def _part(self, named: list[tuple[str, Module]]) -> Self:
        return super()._part([(str(number), module) for number, (_, module) in enumerate(named)])


class ModuleDict(_Container, Named[Module]):
    """Modules by name, whose parameters belong to the module that holds it.

    Args:
        modules: the modules by name.

    Raises:
        KeyError: a name is empty, has a dot in it, or is no text.
        TypeError: one is no module.

    Example:
        >>> from textgrad_engine.nn import ChatCompletion, Parameter
        >>> desks = ModuleDict({"billing": ChatCompletion("{mail}", system=Parameter("Answer about bills."))})
        >>> [name for name, _ in desks.named_parameters()]
        ['billing.system']
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        check(ModuleDict.__init__, locals())
        self.update(modules or {})
