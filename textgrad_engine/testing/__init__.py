"""What tests of programs written with this library need: models that follow a script, a server on this machine,
pictures that a model of a test can see, and simulated tasks with a known optimum.

The names are loaded when they are first used, because every pytest run loads the plugin in this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from textgrad_engine.lazily import lacking

if TYPE_CHECKING:
    from textgrad_engine.testing.models import Answer, FunctionModel, ScriptedModel, feedback_for
    from textgrad_engine.testing.pictures import pixels_of, png
    from textgrad_engine.testing.server import Fault, LoopbackServer
    from textgrad_engine.testing.simulated import SimulatedTask, simulated_task

__all__ = [
    "Answer",
    "Fault",
    "FunctionModel",
    "LoopbackServer",
    "ScriptedModel",
    "SimulatedTask",
    "feedback_for",
    "pixels_of",
    "png",
    "simulated_task",
]

_HOMES = {
    "models": ("Answer", "FunctionModel", "ScriptedModel", "feedback_for"),
    "pictures": ("pixels_of", "png"),
    "simulated": ("SimulatedTask", "simulated_task"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise lacking(__name__, name)
    home = next((home for home, names in _HOMES.items() if name in names), "server")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
