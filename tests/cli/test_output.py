"""What the commands write, whatever the terminal and its encoding."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rich.console

from textgrad_engine.cli import output

TEXT = "把工单分到一个队列 → é 😀"


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def written(self) -> bytes:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "cp1252", "cp437", "ascii"])
def test_json_loses_nothing_to_an_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is redirected on Windows is in the code page of the system, and a reader of JSON takes it for UTF-8."""
    stream = Terminal(encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    output.write_json({"prompt": TEXT})
    assert json.loads(stream.written.decode("utf-8")) == {"prompt": TEXT}
    assert (TEXT.encode("utf-8") in stream.written) == encoding.lower().startswith("utf")


def test_json_keeps_half_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may answer with one; it is what the run holds."""
    stream = Terminal("utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    output.write_json(["\ud83d"])
    assert json.loads(stream.written) == ["\ud83d"]


def test_json_holds_nothing_that_a_terminal_would_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON leaves as they are what begins a command in eight bits and what turns the writing round."""
    text = "a\x9b31m\u202e\u2028\x7f\U000e0001 b\u200dc é\ud83d"
    stream = Terminal("utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    output.write_json([text])
    assert json.loads(stream.written) == [text]
    assert stream.written.decode() == ('[\n  "a\\u009b31m\\u202e\\u2028\\u007f\\udb40\\udc01 b\u200dc é\\ud83d"\n]\n')


ALL_THREE = """
import contextlib, sys
from textgrad_engine.cli.main import main

_, run = sys.argv
for mark, *command in (("[", "show", run), (",", "show", run, "--line", "1"), (",", "diff", run)):
    print(mark, flush=True)
    sys.argv = ["textgrad-engine", *command, "--json"]
    with contextlib.suppress(SystemExit):
        main()
print("]")
"""


def test_every_command_writes_its_json_so(trained: Any, tmp_path: Path) -> None:
    """The text of the run is the same in every encoding of stdout."""
    run = tmp_path / "run"
    run.mkdir()
    for file in ("events.jsonl", "completions.jsonl", "result.json", "config.json"):
        text = (trained[0] / file).read_text(encoding="utf-8")
        (run / file).write_text(text.replace("You sort the support mail", TEXT), encoding="utf-8")
    said = []
    for encoding in ("utf-8", "cp1252"):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": encoding}
        words = [sys.executable, "-c", ALL_THREE, str(run)]
        said.append(json.loads(subprocess.run(words, capture_output=True, env=env, check=True).stdout))
    assert said[0] == said[1]
    assert [TEXT in json.dumps(each, ensure_ascii=False) for each in said[0]] == [True] * 3


def test_a_cell_of_a_notebook_has_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no cursor that bars could move."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal("utf-8"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-color")
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setenv("JPY_PARENT_PID", "42")
    assert output.colors()


def test_a_console_that_shows_escape_codes_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of Windows does where nobody has told it otherwise."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal("cp437"))
    for name in ("NO_COLOR", "FORCE_COLOR", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.colors()
    monkeypatch.setattr(rich.console, "detect_legacy_windows", lambda: True)
    assert not output.colors()


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": ""}, False), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colors_in_a_pipe(
    cli: Any, trained: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], wanted: bool
) -> None:
    """For `show RUN | less -R`; a patch has none, as `patch` could not read it."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in cli("show", trained[0]).stdout) == wanted
    assert "\x1b[" not in cli("diff", trained[0]).stdout


@pytest.mark.parametrize("command", ["train", "show", "resume"])
def test_a_folder_that_is_closed_to_this_user_is_said_to_be_and_not_to_be_missing(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Python 3.14 says of what is in such a folder that it is not there, and those before raise where they look."""
    looks = Path.stat

    def stat(path: Path, **kwargs: Any) -> Any:
        if "closed" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return looks(path, **kwargs)

    monkeypatch.setattr(Path, "stat", stat)
    place = tmp_path / "closed" / "run"
    result = cli(command, place)
    assert result.exit_code == 2
    assert f"error: {place}: permission denied; let this user read it, or name another place" in result.stderr


def test_names_hold_nothing_that_a_terminal_would_obey(cli: Any, run: Any, small: Any, tmp_path: Path) -> None:
    """A run folder that somebody sends, a table, and names in a config: their names are printed, and stay names."""
    hostile = "\x1b[2J\u202e"
    path = run().rename(tmp_path / f"run{hostile}")
    table = tmp_path / f"table{hostile}.csv"
    table.write_text("q,kind\n" + "".join(f"what is {n},{'ab'[n % 2]}\n" for n in range(120)), encoding="utf-8")
    printed = [
        cli(*command).stdout
        for command in (
            ("show", path),
            ("resume", path, "--quiet"),
            ("shrink", path, "--quiet"),
            ("init", tmp_path / f"new{hostile}", "--data", table, "--target", "kind"),
            ("estimate", small(), "--model", f"m{hostile}", "--base-url", "http://127.0.0.1:9/v1"),
        )
    ]
    assert all(printed)
    assert [text for text in printed if "\x1b" in text or "\u202e" in text] == []
