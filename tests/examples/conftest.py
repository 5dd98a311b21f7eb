"""The script of a test module, its ``SCRIPT``: what it defines, and what it prints."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def example(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the script defines."""
    return runpy.run_path(str(request.module.SCRIPT))


@pytest.fixture
def run(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], str]:
    """Runs the script as a user runs it; gives what it prints."""

    def run() -> str:
        script = str(request.module.SCRIPT)
        monkeypatch.setattr(sys, "argv", [script])
        runpy.run_path(script, run_name="__main__")
        return capsys.readouterr().out

    return run
