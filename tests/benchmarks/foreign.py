"""The simulated task as other systems ask it, with the readers of their requests, which lie beside their programs."""

from __future__ import annotations

import asyncio
import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from textgrad_engine.llm import Message, Request
from textgrad_engine.testing import simulated_task


def benchmark_module(name: str) -> Any:
    """A module of the folder ``benchmarks``; nothing of it is left among the loaded ones."""
    folder = Path(__file__).parents[2] / "benchmarks"
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[0]
        for each in [each for each, loaded in sys.modules.items() if _lies_in(folder, loaded)]:
            del sys.modules[each]


def _lies_in(folder: Path, module: Any) -> bool:
    file, places = getattr(module, "__file__", None), getattr(module, "__path__", ())
    return any(Path(each).is_relative_to(folder) for each in ([file] if file else places))


TASK = simulated_task(6, seed=1, critic=1.0, sloppiness=0.0, noise=0.0)
MODEL = replace(TASK.model, readers=benchmark_module("proving.foreign").READERS)


def ask(user: str, system: str = "") -> tuple[str, str]:
    """What the model takes a request for, and its answer."""
    head = (Message(role="system", content=system),) if system else ()
    request = Request(messages=(*head, Message(role="user", content=user)))
    return MODEL.purpose_of(request), asyncio.run(MODEL.complete(request)).text
