"""Where a run's folder is, and its texts in a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.runs import claim, load_texts
from textgrad_engine.errors import RunError
from textgrad_engine.nn import ChatCompletion, Parameter

from .conftest import TICKETS


def test_a_place_where_no_folder_can_be_made_is_named(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the option that names another one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("no folder", encoding="utf-8")
    with pytest.raises(RunError, match=r"runs: no run folder can be made: .*; name a place with --run-dir"):
        claim(load_config(small() / "config.toml"), None)


def test_a_run_that_begins_at_the_same_moment_takes_the_next_number(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commands in two terminals; what one has made after the other had looked is not taken over."""
    monkeypatch.chdir(tmp_path)
    config = load_config(small() / "config.toml")
    assert claim(config, None) == Path("runs/small-1")
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    assert claim(config, None) == Path("runs/small-2")


def test_a_program_that_was_changed_since_the_run_says_what_it_lacks() -> None:
    """The prompts of the run cannot be put into it."""
    program = ChatCompletion("{ticket}", system=Parameter("Sort."))
    with pytest.raises(RunError, match=r"runs/a: the run trained 'sorter\.system', and the program .* now has system;"):
        load_texts(program, {"sorter.system": "Sort them."}, Path("runs/a"))
    assert program.system.data == "Sort."


def test_to_look_at_a_run_runs_none_of_the_code_that_it_names(cli: Any, run: Any) -> None:
    """A folder that somebody sends may name anything; `eval` runs what it names, as `train` would."""
    path = run()
    (path / "trap.py").write_text("import pathlib\npathlib.Path(__file__).with_name('sprung').touch()\nmodel = None\n")
    kept = json.loads((path / "config.json").read_text(encoding="utf-8"))
    kept["folder"] = "."
    kept["config"]["models"]["forward"] = "trap:model"
    kept["config"]["prompts"] = "trap"
    kept["config"]["metric"] = {"function": "trap:model"}
    (path / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    for command in (
        ["show"],
        ["show", "--line", "12"],
        ["show", "--step", "1"],
        ["diff"],
        ["report"],
        ["show", "--json"],
    ):
        assert cli(command[0], path, *command[1:]).exit_code == 0
    assert cli("diff", path, path).exit_code == 0
    assert not (path / "sprung").exists()
    cli("eval", path, "--data", TICKETS / "val.jsonl")
    assert (path / "sprung").exists()
