"""What tests of programs written with this library need: models that follow a script, and a server on this machine.

The names are loaded when they are first used, because every pytest run loads the plugin in this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textgrad_engine.testing.models import FunctionModel, ScriptedModel
    from textgrad_engine.testing.server import Fault, LoopbackServer

__all__ = ["Fault", "FunctionModel", "LoopbackServer", "ScriptedModel"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{'models' if name.endswith('Model') else 'server'}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
