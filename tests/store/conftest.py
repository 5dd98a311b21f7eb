from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.store import RunFolder
from textgrad_engine.testing import FunctionModel

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
ROWS = [{"id": word, "word": word, "target": word.upper()} for word in WORDS]


def answer(request: Any) -> Any:
    """A model that shouts when its prompt says so, and whose critic asks it to."""
    if request.purpose == "backward":
        return {"case_1": {"system": "Say to shout: grüß {x}."}}
    if request.purpose == "optimizer":
        edit = {"op": "add", "line": 1, "text": "Shout.", "reason": "asked for", "feedback": [1]}
        return {"edits": [edit]}
    text = request.messages[-1].text
    return text.upper() if "Shout" in request.messages[0].text else text


@pytest.fixture(scope="session")
def fit() -> Callable[..., Any]:
    """Trains a toy program; returns its result."""

    def run(
        folder: RunFolder | None,
        model: Any = answer,
        callbacks: Any = (),
        prompt: str = "Repeat.",
        kind: Callable[[Any], optim.Optimizer] = optim.TGD,
        **settings: Any,
    ) -> Any:
        program = nn.ChatCompletion("{word}", system=nn.Parameter(prompt, role="system prompt"))
        optimizer = kind(program.parameters())
        optimizer.to_the_end = True  # so that `max_steps` says how far it goes
        given = {"max_steps": 1, "batch_size": 2, "callbacks": (*([folder] if folder else []), *callbacks), **settings}
        with tg.use_models(forward=model if hasattr(model, "complete") else FunctionModel(model)):
            return tg.Trainer(**given).fit(program, nn.ExactMatch(), optimizer, ROWS[:3], ROWS[3:5], ROWS[5:])

    return run


@pytest.fixture
def written(fit: Callable[..., Any], tmp_path: Path) -> tuple[Path, Any]:
    """The folder of a finished run, and its result."""
    folder = RunFolder(tmp_path / "run", config={"seed": 0})
    return folder.path, fit(folder)
