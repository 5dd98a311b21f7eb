"""Reading a run folder: what was written comes back, and damage is named with its repair."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.errors import RunError
from textgrad_engine.store import read_run


def test_a_folder_that_is_not_there_names_its_neighbours(written: tuple[Path, Any]) -> None:
    """A mistyped name is answered with those that exist."""
    with pytest.raises(RunError, match=r"there is no such run folder; .* has run"):
        read_run(written[0].parent / "rum")
    (written[0].parent / "elsewhere/runs").mkdir(parents=True)
    written[0].rename(written[0].parent / "elsewhere/runs/tickets-1")
    with pytest.raises(RunError, match=r"there is no such run folder; .*runs has tickets-1$"):
        read_run(written[0].parent / "elsewhere/tickets-1")


def test_a_file_in_the_place_of_a_run_folder_is_said_to_be_there(tmp_path: Path) -> None:
    """A path that was completed too far leads into the folder; of any other file it is said what runs there are."""
    path, other = tmp_path / "run", tmp_path / "val.jsonl"
    (path / "best").mkdir(parents=True)
    inside = [path / "events.jsonl", path / "best" / "system.txt"]
    for each in (*inside, other):
        each.touch()
    what = "this is a file, and a run folder is wanted; "
    for each in inside:
        with pytest.raises(RunError, match=f"{what}name {re.escape(str(path))}$"):
            read_run(each)
    with pytest.raises(RunError, match=f"{what}.* has run$"):
        read_run(other)


def test_of_many_neighbours_the_likely_ones_come_first_and_the_others_are_counted(tmp_path: Path) -> None:
    """The first eight by the alphabet were named, as if there were no others."""
    for name in (*(f"alpha-{number}" for number in range(9)), "tickets-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.jsonl").touch()
    with pytest.raises(RunError, match=r"has tickets-1, alpha-0, .*, alpha-6 and 2 more$"):
        read_run(tmp_path / "ticket-1")


def test_some_other_folder_is_no_run(tmp_path: Path) -> None:
    """Pointing at the wrong folder is said as that."""
    with pytest.raises(RunError, match=r"no run folder, it has no events\.jsonl"):
        read_run(tmp_path)


def test_a_damaged_line_is_named(written: tuple[Path, Any]) -> None:
    """File and line, so that it can be repaired."""
    path = written[0] / "events.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[1][:9], *lines[2:]]) + "\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"events\.jsonl:2: .*damaged; restore it"):
        read_run(written[0])


def test_a_damaged_event_is_named(written: tuple[Path, Any]) -> None:
    """JSON that is no event of ours is damage as well."""
    path = written[0] / "events.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"val":', '"vax":', 1), encoding="utf-8")
    with pytest.raises(RunError, match=r"events\.jsonl:1: the event was damaged"):
        read_run(written[0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("result.json", "{", r"result\.json: this is no JSON"),
        ("result.json", "[]", r"result\.json: this is no JSON object"),
        ("result.json", "[" * 100_000, r"result\.json: this is no JSON"),
        ("events.jsonl", "[" * 100_000 + "\n", r"events\.jsonl:1: this line is no JSON object"),
        ("result.json", '{"format": 99}', r"result\.json: cannot be used: it has format 99.*; use the version that wr"),
        ("result.json", "{}", r"result\.json: cannot be used: it has format None.*; restore the file, or delete it"),
        ("result.json", '{"format": 1, "status": "lost"}', r"result\.json: cannot be used: status"),
        ("config.json", '{"format": 99}', r"config\.json: has format 99.*use the version that wrote it"),
        ("config.json", '{"format": 99, "version": "9.0"}', r"has format 99.*use the version that wrote it, 9\.0$"),
    ],
)
def test_a_damaged_file_is_named(written: tuple[Path, Any], name: str, content: str, message: str) -> None:
    """Each file is checked, and says what is wrong with it."""
    (written[0] / name).write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=message):
        read_run(written[0])


def test_missing_completions_are_named_when_they_are_wanted(written: tuple[Path, Any]) -> None:
    """The report does not need them; whoever does is told."""
    (written[0] / "completions.jsonl").unlink()
    run = read_run(written[0])
    with pytest.raises(RunError, match=r"completions\.jsonl: the file is missing"):
        list(run.completions())


def test_what_was_written_comes_back(written: tuple[Path, Any]) -> None:
    """A result that is read is the result that was written."""
    path, result = written
    run = read_run(path)
    assert run.result == result
    assert run.steps == result.steps
    assert run.best == result.best
    assert run.config == {"format": 1, "seed": 0}
    assert [each.evaluation for each in run.evaluations if each.step == 0] == [result.seed_val]
    assert len(list(run.completions())) == result.total.calls
    assert run.notes == ()


def test_every_prefix_of_the_journal_can_be_read(written: tuple[Path, Any], tmp_path: Path) -> None:
    """A run may be killed at any byte; what was whole is read, and a torn line is mentioned."""
    content = (written[0] / "events.jsonl").read_bytes()
    killed = tmp_path / "killed"
    shutil.copytree(written[0], killed)
    (killed / "result.json").unlink()
    for end in range(0, len(content), 61):
        (killed / "events.jsonl").write_bytes(content[:end])
        run = read_run(killed)
        whole = content[:end].count(b"\n")
        complete = content[:end].endswith(b"\n") or not end
        assert len(run.events) in (whole, whole + 1)
        assert run.result is None
        assert complete or run.notes or len(run.events) == whole + 1


def test_a_killed_run_tells_its_best_text(written: tuple[Path, Any]) -> None:
    """The steps that were kept say what the best text is, without a result."""
    path, result = written
    (path / "result.json").unlink()
    events = (path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    upto = next(n for n, line in enumerate(events) if json.loads(line)["event"] == "StepEnded")
    (path / "events.jsonl").write_text("\n".join(events[: upto + 1]) + '\n{"event": "Pha', encoding="utf-8")
    run = read_run(path)
    assert run.best == result.best
    assert run.notes == (f"events.jsonl:{upto + 2}: the last line is torn; the run was killed while it wrote",)
