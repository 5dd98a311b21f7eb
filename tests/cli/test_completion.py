"""What a shell completes: run folders and configs, not every file, and nothing that a line cannot name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def completed(cwd: Path, line: str, **env: str) -> list[str]:
    """What bash is offered behind a command line that ends where the cursor is."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TEXTGRAD_ENGINE_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-m", "textgrad_engine"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **asked, **env},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for run in ("runs/tickets-1", "runs/tickets-2", "old"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "events.jsonl").touch()
    (tmp_path / "tickets").mkdir()
    for file in ("tickets/config.toml", "tickets/train.jsonl", "other.toml", "pyproject.toml", "notes.txt"):
        (tmp_path / file).touch()
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "a\nb" / "events.jsonl").touch()
    return tmp_path


def test_a_folder_that_cannot_be_read_offers_nothing(place: Path) -> None:
    """There is nobody to tell it to."""
    assert completed(place, "textgrad-engine show nowhere/x") == []


def test_commands_that_take_a_run_offer_runs(place: Path) -> None:
    """Also those in a folder of runs, and none that a line cannot name."""
    assert completed(place, "textgrad-engine show ") == ["old", "runs/tickets-1", "runs/tickets-2"]
    assert completed(place, "textgrad-engine diff old runs/") == ["runs/tickets-1", "runs/tickets-2"]
    assert completed(place, "textgrad-engine eval runs/tickets-2") == ["runs/tickets-2"]


def test_commands_that_take_a_config_offer_configs(place: Path) -> None:
    """A folder that holds one, or a file that is called otherwise."""
    assert completed(place, "textgrad-engine train ") == ["other.toml", "tickets"]
    assert completed(place, "textgrad-engine estimate t") == ["tickets"]


def test_optimizers_are_offered_by_name(place: Path) -> None:
    """They are long to type."""
    assert completed(place, "textgrad-engine train tickets --optimizer Pa") == ["PatchSearch", "ParetoSearch"]


def test_the_texts_of_a_run_are_offered_by_name(trained: tuple[Path, Any], tmp_path: Path) -> None:
    """What `show --parameter` takes; of what is no run there are none."""
    assert completed(tmp_path, f"textgrad-engine show {trained[0]} --line 1 --parameter ") == ["system"]
    assert completed(tmp_path, "textgrad-engine show nothing --line 1 --parameter ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_is_to_load_is_for_the_program_by_its_name(tmp_path: Path, shell: str) -> None:
    """Also where it was asked as a module, which no shell completes."""
    done = subprocess.run(
        [sys.executable, "-m", "textgrad_engine", "--show-completion", shell],
        # Else the shell that runs the tests is asked for, and there may be none.
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "_TEXTGRAD_ENGINE_COMPLETE" in done.stdout
    assert "python" not in done.stdout
