"""``textgrad-engine report``: one page about a run, and no other file is ever touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def run(trained: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(trained[0], tmp_path / "run"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_a_folder_that_is_no_run(cli: Any, tmp_path: Path) -> None:
    """Exit code 2, and nothing is written."""
    result = cli("report", tmp_path)
    assert result.exit_code == 2
    assert "this is no run folder" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["result.json", "best_prompt.txt", "events.jsonl"])
def test_no_file_of_the_run_is_replaced(cli: Any, run: Path, file: str) -> None:
    """Nor any other file that is no report: what was paid for is not lost by a slip."""
    before = contents(run)
    result = cli("report", run, "--out", run / file)
    assert result.exit_code == 2
    assert f"{run / file}: this is there already and no report, so it is left as it is" in result.stderr
    assert contents(run) == before


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("", "this is a folder; name a file in it"),
        ("no/page.html", "there is no folder"),
        ("/dev/null", "and no report"),
    ],
)
def test_places_where_no_page_can_be(cli: Any, run: Path, tmp_path: Path, out: str, said: str) -> None:
    """Exit code 2; a device is left where it is."""
    result = cli("report", run, "--out", tmp_path / out)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (run / "report.html").exists()


def test_a_page_that_cannot_be_written(cli: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why, and the repair; a name that no file can have is wrong usage."""
    result = cli("report", run, "--out", tmp_path / ("x" * 300))
    assert result.exit_code == 2
    assert "the report cannot be written: file name too long; name another place with --out" in result.stderr

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("textgrad_engine.cli.report.write_atomically", full)
    result = cli("report", run)
    assert result.exit_code == 1
    assert "the report cannot be written: no space left on device; name another place with --out" in result.stderr


def test_it_is_written_into_the_run_and_nothing_else_is_changed(cli: Any, run: Path) -> None:
    """Twice: the second replaces the first, with the same bytes."""
    before = contents(run)
    result = cli("report", run)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"The report is in {run / 'report.html'}\n"
    page = (run / "report.html").read_bytes()
    assert {name: text for name, text in contents(run).items() if name != "report.html"} == before
    assert cli("report", run).exit_code == 0
    assert (run / "report.html").read_bytes() == page
    assert len(page) < 300_000
    assert b'http-equiv="Content-Security-Policy" content="default-src' in page


def test_a_link_is_followed(cli: Any, run: Path, tmp_path: Path) -> None:
    """What it leads to is the page; the link stays one."""
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    assert cli("report", run, "--out", tmp_path / "link.html").exit_code == 0
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").is_file()


def test_standard_output_gets_the_same_page(run: Path, cli: Any, tmp_path: Path) -> None:
    """As UTF-8, whatever the locale; nothing is written then."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "textgrad_engine", "report", "run", "--out", "-"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (run / "report.html").exists()
    cli("report", run)
    assert (run / "report.html").read_bytes() == done.stdout


def test_a_killed_run_has_a_page(cli: Any, run: Path) -> None:
    """As far as it came; what is torn is named."""
    (run / "result.json").unlink()
    events = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    (run / "events.jsonl").write_bytes(b"".join(events[:-3]) + b'{"event": "Ste')
    result = cli("report", run)
    assert result.exit_code == 0
    assert "the last line is torn" in result.stderr
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "It was killed after 12 steps" in page
    assert "the last line is torn" in page


def test_a_control_says_that_it_is_one(cli: Any, small: Any, tmp_path: Path) -> None:
    """And how to run it again: as one, with the version and the seed."""
    cli("train", small(rows=6), "--no-feedback", "--seed", "5", "--run-dir", tmp_path / "run", "-q")
    cli("report", tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "a control: the optimizer got no feedback" in page
    assert "textgrad-engine train config.toml --no-feedback" in page
    assert "seed 5" in page


def test_the_settings_in_it_train_again(cli: Any, small: Any, tmp_path: Path) -> None:
    """Saved beside the data as the page says, they lead to the same best prompt."""
    run = tmp_path / "first"
    assert cli("train", small(), "--run-dir", run, "-q").exit_code == 0
    assert (run / "best_prompt.txt").read_bytes() != (run / "seed" / "system.txt").read_bytes()
    cli("report", run)
    page = (run / "report.html").read_text(encoding="utf-8")
    settings = page.split("The settings</summary><pre><bdi>")[1].split("</bdi>")[0]
    folder = tmp_path / "again"
    shutil.copytree(tmp_path / "small", folder)
    (folder / "config.toml").write_text(unescape(settings), encoding="utf-8")
    result = cli("train", folder, "--run-dir", tmp_path / "second", "-q")
    assert result.exit_code == 0
    assert (tmp_path / "second" / "best_prompt.txt").read_bytes() == (run / "best_prompt.txt").read_bytes()


def test_a_run_of_an_older_version(cli: Any, run: Path) -> None:
    """What it did not keep is not shown; another format is refused in words."""
    body = json.loads((run / "result.json").read_text(encoding="utf-8"))
    for name in ("openings", "overlaps", "controls", "front", "shortage", "untested", "idle"):
        del body[name]
    (run / "result.json").write_text(json.dumps(body), encoding="utf-8")
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    for name in ("version", "rows", "digests"):
        del config[name]
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert cli("report", run).exit_code == 0
    assert cli("diff", run, run).exit_code == 0
    (run / "result.json").write_text(json.dumps({**body, "format": 99}), encoding="utf-8")
    result = cli("report", run)
    assert result.exit_code == 2
    assert "it has format 99, and this version of textgrad_engine reads 1" in result.stderr


def test_a_link_that_a_folder_came_with_leads_the_page_nowhere(cli: Any, run: Path, tmp_path: Path) -> None:
    """A page for a folder that somebody sent is written into that folder, unless the user names another place."""
    elsewhere = tmp_path / "elsewhere.html"
    (run / "report.html").symlink_to(elsewhere)
    assert cli("report", run).exit_code == 0
    assert not elsewhere.exists()
    assert (run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
