"""``show --examples``: what a prompt still gets wrong, and what it has made worse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


def test_what_a_run_made_worse_comes_first(cli: Any, trained: tuple[Path, Any]) -> None:
    """Of the validation examples: nobody is led to choose by test examples."""
    found = json.loads(cli("show", trained[0], "--examples", "3", "--json").stdout)
    assert (found["run"], found["split"], found["without_best"], found["worse"]) == (str(trained[0]), "val", 2, 1)
    assert [each["worse"] for each in found["examples"]] == [True, False]
    worst = found["examples"][0]
    rows = [json.loads(line) for line in (TICKETS / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    row = next(row for row in rows if row["id"] == worst["id"])
    assert (worst["after"], worst["before"], worst["worse"], worst["why"]) == (0.0, 1.0, True, None)
    assert worst["expected"] == worst["said_before"] == row["queue"] != worst["said"]
    said = " ".join(cli("show", trained[0], "--examples", "3").stdout.split())
    assert "validation examples 2 examples without the best score, 1 of them worse than with the seed prompt." in said
    assert f"{worst['id']} 0.000, with the seed prompt 1.000 worse ticket" in said
    assert f"expected {row['queue']} said {worst['said']} before {row['queue']}" in said
    for piece in row["ticket"].split()[:8]:
        assert piece in said


def test_one_question_at_a_time(cli: Any, trained: tuple[Path, Any]) -> None:
    """Exit code 2, and what can be asked."""
    for options in (("--by", "queue"), ("--line", "1"), ("--step", "1"), ("--front", "1")):
        done = cli("show", trained[0], "--examples", "3", *options)
        assert done.exit_code == 2
        assert "questions of their own: give one of them" in " ".join(done.stderr.split())
    done = cli("show", trained[0], "--examples", "3", "--val")
    assert (done.exit_code, "it needs --by COLUMN" in done.stderr) == (2, True)
    assert cli("show", trained[0], "--examples", "0").exit_code == 2


def test_what_cannot_be_told_says_why(cli: Any, run: Callable[[], Path]) -> None:
    """A run from Python has all of it in its result."""
    path = run()
    (path / "config.json").unlink()
    done = cli("show", path, "--examples", "3")
    assert done.exit_code == 2
    assert "result.best_test has ids, scores and predictions" in " ".join(done.stderr.split())


def test_a_picture_is_named_and_not_printed(cli: Any, tmp_path: Path) -> None:
    """Its bytes are of no use to anybody there."""
    lamps = Path(__file__).parents[2] / "examples" / "lamps"
    assert cli("train", lamps, "--run-dir", tmp_path / "run", "--budget-calls", "60").exit_code in (0, 3)
    said = cli("show", tmp_path / "run", "--examples", "2").stdout
    assert "base64" not in said
    assert 'panel {"type": "image_url"' in " ".join(said.split())
