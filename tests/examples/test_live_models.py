"""The flags of the examples that name a live model."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.rglob("*.py") if '"--model"' in path.read_text(encoding="utf-8"))
FLAGS = [(path, "--model") for path in SCRIPTS] + [(EXAMPLES / "delegate.py", "--outside")]


@pytest.mark.parametrize(("script", "flag"), FLAGS, ids=[f"{path.stem}{flag}" for path, flag in FLAGS])
def test_a_model_that_nothing_answers_to_is_named(script: Path, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag for a live model is used, not ignored."""
    monkeypatch.setattr(sys, "argv", [str(script), flag, "nobody/nothing"])
    with pytest.raises(SystemExit, match=r"^error: .*nobody/nothing"):
        runpy.run_path(str(script), run_name="__main__")
