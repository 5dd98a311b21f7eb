"""Packages that load a module when something of it is first asked for, and errors that say where a name is.

`textgrad-engine show` needs a few modules of each package; to load all the others took most of its time.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """A package that says of a name which it lacks what that is called here, or where it is."""

    def __getattr__(self, name: str) -> Any:
        raise lacking(self.__name__, name)

    def __reduce__(self) -> tuple[Any, ...]:  # what pickles functions by value knows modules by their exact type
        return importlib.import_module, (self.__name__,)


class _LazyPackage(_Package):
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
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in self._modules_too and isinstance(value, ModuleType)):  # Python's own, when that is imported
            super().__setattr__(name, value)

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


def telling(package: str) -> None:
    """Let a package that has its names already say of others where they are, as `lazily` does."""
    sys.modules[package].__class__ = _Package


def lacking(package: str, name: str) -> Exception:
    """The error of a package's ``__getattr__``, which calls this itself: see `missing.missing`.

    Tools look for names with a leading "_" in all there is, and Python for modules that are not loaded yet: nothing is
    loaded for these.

    Args:
        package: its full name.
        name: that it does not have.
    """
    if name.startswith("_") or not name.isidentifier():
        return AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
    if hasattr(sys.modules[package], "__path__") and importlib.util.find_spec(f"{package}.{name}") is not None:
        by_itself = f"it is a module, and loaded by `from {package} import {name}`"
        return AttributeError(f"module {package!r} has no attribute {name!r}; {by_itself}", name=name)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_name == "__getattr__":
        frame = frame.f_back
    imported = frame.f_globals.get("__name__") == "importlib._bootstrap"
    module = importlib.import_module("textgrad_engine.missing")
    error: Exception = module.missing(package, name, sys.modules[package].__all__, imported=imported)
    return error
