"""``textgrad-engine shrink RUN``: a shorter prompt beside the run's best one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def run(trained: tuple[Path, Any], tmp_path: Path) -> Callable[[], Path]:
    """A copy of a run beside its config's folder, so that the data is found."""

    def make() -> Path:
        path = trained[0].parent / tmp_path.name
        shutil.copytree(trained[0], path)
        return path

    return make


def test_a_killed_run(cli: Any, run: Any) -> None:
    """It has no best prompt to speak of; exit code 2."""
    path = run()
    (path / "result.json").unlink()
    result = cli("shrink", path)
    assert result.exit_code == 2
    assert "only finished runs can be shrunk" in result.stderr


def test_other_validation_examples_than_the_run_had(cli: Any, run: Any) -> None:
    """What chose the prompt must be what shortens it."""
    path = run()
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["digests"]["val"] = "0" * 16
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    result = cli("shrink", path)
    assert result.exit_code == 2
    assert "not the validation examples" in " ".join(result.stderr.split())


def test_the_short_prompt_is_written_beside_the_best_one(cli: Any, run: Any) -> None:
    """The best prompt stays; the short one has fewer tokens, and shrink.json says what it was chosen from."""
    path = run()
    best = (path / "best_prompt.txt").read_text(encoding="utf-8")
    result = cli("shrink", path, "--max-tries", "6", "--allowance", "30", "--lanes", "2")
    assert result.exit_code == 0
    assert (path / "best_prompt.txt").read_text(encoding="utf-8") == best
    short = (path / "shrunk_prompt.txt").read_text(encoding="utf-8")
    about = json.loads((path / "shrink.json").read_text(encoding="utf-8"))
    assert about["after"] == {"system": short}
    assert about["tokens"]["after"] <= about["tokens"]["before"]
    assert (about["ended"], about["tried"]) == ("tries", 6)
    assert set(short.split("\n")) <= set(best.split("\n"))
    assert "Score against length, of all that was raced" in result.stdout
    assert max(map(len, result.stdout.splitlines()[2:])) <= 80
    assert cli("show", path).exit_code == 0


def test_a_spent_budget(cli: Any, run: Any) -> None:
    """Exit code 3, and what was found is written."""
    path = run()
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config["config"]["budget"] = {"calls": 120}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    result = cli("shrink", path, "--quiet")
    assert result.exit_code == 3
    assert (path / "shrunk_prompt.txt").is_file()


def test_json(cli: Any, run: Any) -> None:
    """One document on stdout."""
    path = run()
    result = cli("shrink", path, "--max-tries", "2", "--allowance", "20", "--json")
    document = json.loads(result.stdout)
    assert document["file"] == str(path / "shrunk_prompt.txt")
    assert document["val"]["before"]["examples"] == 87
    assert document["front"][0]["tokens"] >= document["front"][-1]["tokens"]
