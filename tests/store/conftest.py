from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.llm import replace_file
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


@pytest.fixture
def windows_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files as Windows has them: what this process holds open can be neither replaced nor removed."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("nothing says which files are open here")

    def check(*paths: Any) -> None:
        open_now = set()
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                open_now.add(os.readlink(link))
        for path in paths:
            if os.path.realpath(path) in open_now:
                error = PermissionError(13, "The file is being used by another process", str(path))
                error.winerror = 32  # type: ignore[attr-defined]
                raise error

    def replace(file: Any, place: Any) -> None:
        check(file, place)
        really_replace(file, place)

    def unlink(path: Any, **where: Any) -> None:
        if not where:
            check(path)
        really_unlink(path, **where)

    really_replace, really_unlink = os.replace, os.unlink
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "unlink", unlink)
    monkeypatch.setattr(replace_file, "_PATIENCE", 0.0)


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
