"""``textgrad-engine show RUN --line N``: where a line of the best prompt comes from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any


def added(cli: Any, path: Path) -> int:
    """The number of a line that the run wrote."""
    document = json.loads(cli("show", path, "--json").stdout)
    lines = [line for line in document["parameters"]["system"]["diff"] if line["op"] != "removed"]
    return next(number for number, line in enumerate(lines, 1) if line["op"] == "added")


def test_a_line_that_is_not_there(cli: Any, trained: tuple[Path, Any]) -> None:
    """Exit code 2, and the range."""
    result = cli("show", trained[0], "--line", "999")
    assert result.exit_code == 2
    assert "system has lines 1 to " in result.stderr
    assert cli("show", trained[0], "--line", "0").exit_code == 2


def test_a_parameter_needs_a_line_and_must_be_there(cli: Any, trained: tuple[Path, Any]) -> None:
    """An option that would mean nothing is refused."""
    result = cli("show", trained[0], "--parameter", "system")
    assert result.exit_code == 2
    assert "needs --line N" in result.stderr
    result = cli("show", trained[0], "--line", "1", "--parameter", "user")
    assert result.exit_code == 2
    assert "it trained system" in result.stderr


def test_a_killed_run_explains_the_lines_of_its_best_text_so_far(
    cli: Any, trained: tuple[Path, Any], tmp_path: Path
) -> None:
    """As the whole run does, and says that it has no result."""
    number = str(added(cli, trained[0]))
    path = tmp_path / "killed"
    shutil.copytree(trained[0], path)
    (path / "result.json").unlink()
    result = cli("show", path, "--line", number)
    assert result.exit_code == 0
    assert result.stdout == cli("show", trained[0], "--line", number).stdout
    assert f"note: {path} has no result, as the run was killed, so this is" in result.stderr
    result = cli("show", path, "--line", "999")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: system has lines 1 to ")


def test_a_run_that_was_killed_at_its_beginning_has_no_lines(
    cli: Any, trained: tuple[Path, Any], tmp_path: Path
) -> None:
    """It says so, in a line."""
    path = tmp_path / "killed"
    shutil.copytree(trained[0], path)
    (path / "result.json").unlink()
    (path / "events.jsonl").write_text("")
    result = cli("show", path, "--line", "1")
    assert result.exit_code == 2
    assert "has no lines and no steps, as the run was killed before" in " ".join(result.stderr.split())


def test_a_line_is_explained(cli: Any, trained: tuple[Path, Any]) -> None:
    """Edit, feedback with examples, and the step with its race, in eighty columns."""
    number = added(cli, trained[0])
    result = cli("show", trained[0], "--line", str(number))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"system, line {number}: ")
    assert "Feedback that asked for it" in result.stdout
    assert "Accepted in step " in result.stdout
    assert "better with probability " in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_has_the_same(cli: Any, trained: tuple[Path, Any]) -> None:
    """One document, with the race's scores."""
    number = added(cli, trained[0])
    document = json.loads(cli("show", trained[0], "--line", str(number), "--parameter", "system", "--json").stdout)
    assert document["number"] == number
    assert document["evidence"][0]["examples"]
    race = document["accepted"]["race"]
    assert document["accepted"]["kept"]
    assert race["gained"]
    assert len(race["examples"]) == len(race["before"]) == len(race["after"])
