"""The program as a whole: what it says of itself, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine


def python(cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, env=env, cwd=cwd, check=False)


def test_alone_it_prints_its_help(cli: Any) -> None:
    """Whoever types the name only is told what there is."""
    result = cli()
    for word in ("train", "eval", "show", "--version"):
        assert word in result.output


@pytest.mark.parametrize("command", [(), ("train",), ("resume",), ("eval",), ("compare",), ("shrink",)])
def test_every_help_names_the_exit_codes(cli: Any, command: tuple[str, ...]) -> None:
    """Scripts rely on them."""
    result = cli(*command, "--help")
    assert result.exit_code == 0
    said = " ".join(result.output.split())
    assert "Exit codes: 0 all went well; 1 an error while running; 2 wrong usage, config or data" in said
    assert "3 the budget was spent" in said
    assert "130 interrupted" in said
    below = "; 4 the score of eval is below" if command == () else "; 4 the score is below"
    assert (f"{below} --at-least, or worse where --not-worse was asked" in said) == (command in {(), ("eval",)})
    assert ("; 4 --not-worse was asked, and another one is worse than the first" in said) == (command == ("compare",))


@pytest.mark.parametrize("command", ["estimate", "show", "calls", "diff", "report"])
def test_a_command_that_asks_no_model_names_no_budget(cli: Any, command: str) -> None:
    """There is no exit code for what cannot be, nor a result so far."""
    said = " ".join(cli(command, "--help").output.split())
    assert "Exit codes: 0 all went well; 1 an error while running" in said
    assert "130 interrupted; 143 the same, by SIGTERM." in said
    assert "budget was spent" not in said
    assert "so far" not in said.partition("Exit codes:")[2]


@pytest.mark.parametrize(
    "command", ["train", "resume", "eval", "compare", "estimate", "show", "calls", "diff", "report", "shrink"]
)
def test_no_help_is_cut_off_at_80_columns(cli: Any, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address to copy is there as a whole."""
    monkeypatch.setenv("COLUMNS", "80")
    assert "…" not in cli(command, "--help").output


def test_in_a_narrow_terminal_help_has_no_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would cut words off, and names of options."""
    monkeypatch.setenv("COLUMNS", "40")
    done = python(tmp_path, "-m", "textgrad_engine", "show", "--help")
    assert done.returncode == 0
    assert max(map(len, done.stdout.split("\n"))) <= 40
    assert "--parameter NAME" in done.stdout
    assert "…" not in done.stdout


def test_version(cli: Any) -> None:
    """The version of the package."""
    assert cli("--version").output == f"textgrad-engine {textgrad_engine.__version__}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train CONFIG --cache FOLDER", "another run folder is named by --run-dir, a prompt by --prompt"),
        ("train CONFIG --cache FOLDER", "--cache takes no folder, TEXTGRAD_CACHE_DIR in the environment names one"),
        ("eval RUN new.jsonl", "examples are named by --data FILE, a prompt by --prompt FILE"),
        ("compare before after", "another config is named by --config, a prompt or run by --prompt"),
        ("compare CONFIG --prompt a.txt b.txt", "a model by --model; once for each"),
        ("report RUN page.html", "the page is named by --out FILE"),
    ],
)
def test_what_stands_behind_a_command_without_an_option_is_told_its_option(cli: Any, line: str, said: str) -> None:
    """A second path is the first thing that people try."""
    done = cli(*line.split())
    assert done.exit_code == 2
    words = " ".join(done.stderr.replace("│", " ").split())
    assert f"Got unexpected extra argument(s) ({line.split()[-1]}); " in words
    assert said in words
    assert cli("show", "a", "b").exit_code == 2


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    """``python -m textgrad_engine`` is the same program, for where scripts are not on the path."""
    done = python(tmp_path, "-m", "textgrad_engine", "show", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: nothing: there is no such run folder; `textgrad-engine train CONFIG` makes one\n"


def test_what_is_imported_is_not_looked_through_again(tmp_path: Path) -> None:
    """The collector is off while packages are imported, leaves them alone then, and collects what comes after."""
    script = """
import gc, sys
from textgrad_engine.__main__ import main

seen = []
sys.meta_path.insert(0, type("Looks", (), {"find_spec": lambda *_: seen.append(gc.isenabled())}))
sys.argv = ["textgrad-engine", "show", "nothing"]
try:
    main()
finally:
    print(set(seen), gc.get_freeze_count() > 10_000, gc.isenabled())
"""
    assert python(tmp_path, "-c", script).stdout.splitlines()[-1] == "{False} True True"


def test_help_builds_no_checks_of_a_config(tmp_path: Path) -> None:
    """They take long, and only who reads a config needs them."""
    script = """
import contextlib, sys
from textgrad_engine.__main__ import main

for command in ([], ["show"], ["train"]):
    sys.argv = ["textgrad-engine", *command, "--help"]
    with contextlib.suppress(SystemExit):
        main()
from textgrad_engine.cli.config import Config
print(Config.__pydantic_complete__)
"""
    said = python(tmp_path, "-c", script).stdout
    assert said.splitlines()[-1] == "False"
    assert said.count("Usage: ") == 3


_INTERRUPTED_AT = """
import os, runpy, signal, sys

class Interrupts:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

{before}
sys.meta_path.insert(0, Interrupts)
sys.argv = ["textgrad-engine", "show", "--help"]
{run}
"""


@pytest.mark.skipif(os.name == "nt", reason="a process there cannot send itself Ctrl-C")
@pytest.mark.parametrize(
    ("run", "module"),
    [
        ("runpy.run_module('textgrad_engine', run_name='__main__', alter_sys=True)", "typer"),
        ("from textgrad_engine.__main__ import main; main()", "pydantic"),
        ("from textgrad_engine.__main__ import main; main()", "textgrad_engine.cli.show"),
    ],
)
def test_ctrl_c_while_packages_are_imported_is_one_line(tmp_path: Path, module: str, run: str) -> None:
    """It is most of the first half second, in which nothing has been begun."""
    done = python(tmp_path, "-c", _INTERRUPTED_AT.format(module=module, before="", run=run))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="a process there cannot send itself Ctrl-C")
def test_who_has_ctrl_c_ignored_is_not_interrupted(tmp_path: Path) -> None:
    """As a shell does with what stands behind "nohup" or before "&"."""
    code = _INTERRUPTED_AT.format(
        module="typer",
        before="signal.signal(signal.SIGINT, signal.SIG_IGN)",
        run="from textgrad_engine.__main__ import main; main()",
    )
    done = python(tmp_path, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_console_script_is_what_hears_ctrl_c() -> None:
    """The one that imports nothing before."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"textgrad-engine": "textgrad_engine.__main__:main"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_result_that_cannot_be_printed_is_not_lost(small: Any, tmp_path: Path) -> None:
    """The disk that stdout goes to is full: the run was paid for, and the message says where its result is."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "textgrad_engine", "train", str(small(rows=3)), "--run-dir", "run", "-q"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path, check=False
        )
    assert done.returncode != 0
    assert done.stderr.startswith(
        "error: the result cannot be printed: no space left on device\n"
        "  all of the run is in run, and `textgrad-engine show run` prints the result\n"
    )
    assert "Traceback" not in done.stderr
    assert (tmp_path / "run" / "result.json").is_file()


def _without(tmp_path: Path, redirection: str, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "textgrad_engine", *args]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, check=False)


@pytest.mark.skipif(os.name == "nt", reason="the shell is POSIX's")
def test_without_stderr_a_run_is_done_and_its_files_are_its_own(tmp_path: Path, small: Any) -> None:
    """The next file that is opened gets the number of a closed stream, and what is written to that."""
    folder = small(('name = "exact_match"', 'function = "loud:score"\npurpose = "sameness"'), rows=6)
    loud = "import os\ndef score(prediction, target):\n    os.write(2, b'no JSON')\n    return prediction == target\n"
    (folder / "loud.py").write_text(loud)
    done = _without(tmp_path, "2>&-", "train", str(folder), "--run-dir", "run")
    assert done.returncode == 0
    assert done.stdout
    for file in ("events.jsonl", "completions.jsonl"):
        for line in (tmp_path / "run" / file).read_text(encoding="utf-8").splitlines():
            json.loads(line)


@pytest.mark.skipif(os.name == "nt", reason="the shell is POSIX's")
def test_a_closed_stdout_is_said(tmp_path: Path, small: Any) -> None:
    """The result is in the folder."""
    done = _without(tmp_path, ">&-", "train", str(small(rows=6)), "--run-dir", "run")
    assert done.returncode == 1
    assert "the result cannot be printed: stdout is closed" in done.stderr
    assert (tmp_path / "run" / "result.json").is_file()


@pytest.mark.skipif(os.name == "nt", reason="the shell is POSIX's")
@pytest.mark.parametrize("command", [("show", 1), ("diff", 1), ("diff", 2)])
def test_a_closed_stdout_is_said_by_those_that_print(
    trained: tuple[Path, Any], tmp_path: Path, command: tuple[str, int]
) -> None:
    """Whatever they ask the terminal first."""
    name, runs = command
    done = _without(tmp_path, ">&-", name, *[str(trained[0])] * runs)
    assert done.returncode == 1
    assert done.stderr == "error: the result cannot be printed: stdout is closed\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_progress_that_cannot_be_written_does_not_end_a_run(tmp_path: Path, small: Any) -> None:
    """Who reads the log may go while calls are paid for."""
    done = _without(tmp_path, "2>/dev/full", "train", str(small(rows=6)), "--run-dir", "run")
    assert done.returncode == 0
    assert done.stdout
    assert (tmp_path / "run" / "result.json").is_file()


def test_the_library_needs_neither_typer_nor_rich(tmp_path: Path) -> None:
    """They are for people at a terminal; a program that reads run folders pays nothing for them."""
    code = (
        "import sys, textgrad_engine, textgrad_engine.store, textgrad_engine.report, textgrad_engine.train; "
        "print(sorted({'typer', 'rich', 'openai', 'tiktoken'} & set(sys.modules)))"
    )
    done = python(tmp_path, "-c", code)
    assert done.stdout == "[]\n", done.stderr


def test_whatever_is_unexpected_keeps_its_traceback(cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug is not dressed up as an error of the user's."""

    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("textgrad_engine.cli.build.make_program", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        cli("train", small())
