"""Examples that are in two splits: told by the command that trains, before and after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from textgrad_engine.report.tally import Tally, line_of
from textgrad_engine.train.events import RunStarted


def test_a_run_begins_with_what_overlaps() -> None:
    """A line for each pair of splits, in a terminal and in a log; nothing when there is none."""
    started = RunStarted({}, 9, 9, 9, steps=2, overlaps=("2 of 9 examples", "1 of 9 examples"))
    assert line_of(started, Tally()) == "warning: 2 of 9 examples\nwarning: 1 of 9 examples"
    assert line_of(RunStarted({}, 9, 9, 9, steps=2), Tally()) == ""


def test_near_duplicates_are_told_at_the_beginning_and_at_the_end(cli: Any, small: Any, tmp_path: Path) -> None:
    """Exact ones are refused; near ones may be meant, so the run goes on and says so, also when it is shown again."""
    folder = small(rows=8)
    train = [json.loads(line) for line in (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    longest = max(train, key=lambda row: len(row["ticket"]))
    copy = {**longest, "id": "copied", "ticket": longest["ticket"] + " Thanks."}
    with (folder / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(copy) + "\n")
    said = "1 of 9 test examples are in train, too (1 nearly): test example 'copied' is"
    result = cli("train", folder, "--run-dir", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert f"warning: {said}" in result.stderr
    assert said in " ".join(result.stdout.split())
    assert said in " ".join(cli("show", tmp_path / "run").stdout.split())
    assert json.loads(cli("show", tmp_path / "run", "--json").stdout)["overlaps"][0].startswith(said)
    quiet = cli("train", folder, "--run-dir", tmp_path / "quiet", "--quiet")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
