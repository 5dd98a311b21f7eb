"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from textgrad_engine.nn.module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Numbered(Module):
    """Modules under the names "0", "1", … with the shape of a list."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self._modules[str(len(self._modules))] = module

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, index: int) -> Module:
        return list(self._modules.values())[index]

    def __iter__(self) -> Iterator[Module]:
        return self.children()


class Sequential(_Numbered):
    """Modules one after the other, each fed with the result of the one before.

    Example:
        >>> len(Sequential(Module(), Module()))
        2
    """

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, value: Any) -> Any:
        """Pass a value through all modules."""
        for module in self.children():
            value = module(value)
        return value


class ModuleList(_Numbered):
    """A list of modules whose parameters belong to the module that holds it."""

    def append(self, module: Module) -> ModuleList:
        """Put a module at the end."""
        self._modules[str(len(self._modules))] = module
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Put several modules at the end."""
        for module in modules:
            self.append(module)
        return self


class ModuleDict(Module):
    """Modules by name, whose parameters belong to the module that holds it."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        self._modules[name] = module

    def __getitem__(self, name: str) -> Module:
        module: Module = self._modules[name]
        return module

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names with the modules."""
        return self._modules.items()
