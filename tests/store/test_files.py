"""Paths and files of run folders."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest

from textgrad_engine.errors import RunError
from textgrad_engine.store import read_run, typed


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is POSIX's")
@pytest.mark.parametrize("name", ["runs/a-1", "my runs/größe-1", "it's", "$HOME", "a;b", "~", "运行", "a\nb"])
def test_a_path_is_typed_so_that_the_shell_gives_it_back(name: str) -> None:
    """A command in a message is there to be copied."""
    said = typed(Path(name))
    assert shlex.split(said) == [name]
    assert (said == name) == (name in ("runs/a-1", "运行"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (r"runs\a-1", r"runs\a-1"),
        (r"C:\Users\Jörg Müller\runs\a-1", r'"C:\Users\Jörg Müller\runs\a-1"'),
        (r"a&b", '"a&b"'),
        (r"C:\Program Files (x86)\a", r'"C:\Program Files (x86)\a"'),
    ],
)
def test_on_windows_it_has_the_quotes_of_its_shells(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cmd knows no single ones."""
    path: Any = PureWindowsPath(name)
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        found = typed(path)
    assert found == said


def test_a_command_in_a_message_can_be_copied(tmp_path: Path) -> None:
    """Also below a folder with a space in its name."""
    run = tmp_path / "my runs" / "a-1"
    run.mkdir(parents=True)
    (run / "events.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(RunError) as told:
        read_run(run).shrunk()
    command = str(told.value).split("`")[1]
    assert shlex.split(command) == ["textgrad-engine", "shrink", str(run)]
