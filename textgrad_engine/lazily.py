"""Packages that load a module when something of it is first asked for.

`textgrad-engine show` needs a few modules of each package; to load all the others took most of its time.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection
from types import ModuleType
from typing import Any


class _LazyPackage(ModuleType):
    """A package with the names of its module ``public``, which is imported for the first of them."""

    _modules_too: Collection[str]

    def __getattr__(self, name: str) -> Any:
        if name == "__all__" or (name.isidentifier() and not name.startswith("_")):
            module = f"{self.__name__}.{name}"
            if name not in self._modules_too and importlib.util.find_spec(module) is not None:
                return importlib.import_module(module)
            public = importlib.import_module(f"{self.__name__}.public")
            if name == "__all__" or name in public.__all__:
                value = getattr(public, name)
                vars(self)[name] = value
                return value
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in self._modules_too and isinstance(value, ModuleType)):  # Python's own, when that is imported
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:  # what pickles functions by value knows modules by their exact type
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})


def lazily(package: str, *, modules_too: Collection[str] = ()) -> None:
    """Let a package have the names of its module ``public``, and import that for the first of them.

    Args:
        package: its name.
        modules_too: the names that a module of the package has, too, such as the function in ``llm/budget.py``.
    """
    found = sys.modules[package]
    vars(found)["_modules_too"] = modules_too
    found.__class__ = _LazyPackage
