"""What a shell completes: run folders and configs, not every file, and nothing that a line cannot name."""

from __future__ import annotations

import ntpath
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import completion

from ..runner import invoke


def completed(cwd: Path, line: str) -> list[str]:
    """What bash is offered behind a command line that ends where the cursor is."""
    words = re.findall(r"(?:^| )((?:\\.|\"[^\"]*\"?|'[^']*'?|[^ ])*)", line)
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    return offered(cwd, "bash", **asked).strip("\n").splitlines()


def offered(cwd: Path, shell: str, **env: str) -> str:
    """What the program prints to the script of a shell."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        for name, value in {"_TEXTGRAD_ENGINE_COMPLETE": f"complete_{shell}", **env}.items():
            patch.setenv(name, value)
        done = invoke()
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def spaced(tmp_path: Path) -> Path:
    """A folder whose runs have names that shells take apart."""
    for run in ("my runs/first run", "my runs/first rung", "it's $5"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "events.jsonl").touch()
    return tmp_path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for run in ("runs/tickets-1", "runs/tickets-2", "old"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "events.jsonl").touch()
    (tmp_path / "tickets").mkdir()
    for file in ("tickets/config.toml", "tickets/train.jsonl", "other.toml", "pyproject.toml", "notes.txt"):
        (tmp_path / file).touch()
    if os.name != "nt":  # no name has a line break there
        (tmp_path / "a\nb").mkdir()
        (tmp_path / "a\nb" / "events.jsonl").touch()
    return tmp_path


def test_a_folder_that_cannot_be_read_offers_nothing(place: Path) -> None:
    """There is nobody to tell it to."""
    assert completed(place, "textgrad-engine show nowhere/x") == []


def test_commands_that_take_a_run_offer_runs(place: Path) -> None:
    """Also those in a folder of runs, and none that a line cannot name."""
    assert completed(place, "textgrad-engine show ") == ["old", "runs/tickets-1", "runs/tickets-2"]
    assert completed(place, "textgrad-engine diff old runs/") == ["runs/tickets-1", "runs/tickets-2"]
    assert completed(place, "textgrad-engine eval runs/tickets-2") == ["runs/tickets-2"]


@pytest.mark.parametrize(
    ("shell", "typed", "offered"),
    [
        ("pwsh", "runs/t", ["runs/tickets-1", "runs/tickets-2"]),
        ("pwsh", "runs\\t", ["runs\\tickets-1", "runs\\tickets-2"]),
        ("pwsh", "run", ["runs\\tickets-1", "runs\\tickets-2"]),
        ("bash", "run", ["runs/tickets-1", "runs/tickets-2"]),
    ],
)
def test_on_windows_a_path_goes_on_as_it_was_begun(
    place: Path, monkeypatch: pytest.MonkeyPatch, shell: str, typed: str, offered: list[str]
) -> None:
    """Typer keeps what begins with the unfinished word, whichever of the two separators stands in it."""
    runs = [place / "runs" / each for each in ("tickets-1", "tickets-2")]
    monkeypatch.chdir(place)
    monkeypatch.setenv("_TEXTGRAD_ENGINE_COMPLETE", f"complete_{shell}")
    monkeypatch.setattr(
        completion, "_listed", lambda folder: iter(runs if str(folder)[:4] == "runs" else [Path("runs")])
    )
    with monkeypatch.context() as windows:
        windows.setattr(os, "path", ntpath)
        windows.setattr(os, "sep", "\\")
        found = completion.run_folders(typed)
    assert found == offered


@pytest.mark.parametrize("typed", ["my", "my\\ runs/first\\ r"])
def test_bash_is_offered_paths_as_it_reads_them(spaced: Path, typed: str) -> None:
    """It puts them into the line as they are, also behind what it has put there before."""
    assert completed(spaced, f"textgrad-engine show {typed}") == [
        "my\\ runs/first\\ run",
        "my\\ runs/first\\ rung",
    ]
    assert completed(spaced, "textgrad-engine show it") == ["it\\'s\\ \\$5"]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_within_quotes_bash_is_offered_paths_as_they_are(spaced: Path, quote: str) -> None:
    """A backslash would be part of the name there."""
    assert completed(spaced, f"textgrad-engine show {quote}my runs/first run") == [
        "my runs/first run",
        "my runs/first rung",
    ]


def test_bash_completes_a_word_before_one_in_quotes(spaced: Path) -> None:
    """The cursor need not be at the end of the line."""
    words = {"COMP_WORDS": "textgrad-engine\ndiff\nit\n'my runs/first run'", "COMP_CWORD": "2"}
    assert offered(spaced, "bash", **words) == "it\\'s\\ \\$5\n"


def test_bash_completes_a_path_with_spaces(spaced: Path) -> None:
    """By the script that is installed, up to the word that the program would be given."""
    if (bash := shutil.which("bash")) is None:
        pytest.skip("there is no bash")
    (spaced / "textgrad-engine").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m textgrad_engine "$@"\n')
    (spaced / "textgrad-engine").chmod(0o755)
    script = """
        eval "$(textgrad-engine --show-completion bash)"
        COMP_WORDS=(textgrad-engine show 'my\\ runs/first\\ rung') COMP_CWORD=2
        _textgrad_engine_completion textgrad-engine
        eval "set -- $COMPREPLY"
        printf '%s|' "${#COMPREPLY[@]}" "$@"
    """
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PATH": os.pathsep.join([str(spaced), os.environ["PATH"]]),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        },
        cwd=spaced,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("1|my runs/first rung|", "")


def test_zsh_is_not_offered_what_its_script_loses_quotes_of(spaced: Path) -> None:
    """It would name a run that there is not; offered nothing, zsh completes paths by itself."""
    assert offered(spaced, "zsh", _TYPER_COMPLETE_ARGS="textgrad-engine show it") == "_files\n"
    assert '"my runs/first run"' in offered(spaced, "zsh", _TYPER_COMPLETE_ARGS="textgrad-engine show my")


def installed(home: Path, stdout: int = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[str]:
    """How installing it for bash into a home ends."""
    return subprocess.run(
        [sys.executable, "-m", "textgrad_engine", "--install-completion", "bash"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HOME": str(home),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
            **env,
        },
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """One line says why, and what there is instead."""
    home = tmp_path / "home"
    home.touch()  # no folder can be made there, by root neither
    done = installed(home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        f"error: the shell's files cannot be changed: {home} is a file, and a folder is wanted there; repair that, or "
        "have your shell load what `textgrad-engine --show-completion` prints"
    )
    assert "Traceback" not in done.stderr


def test_a_file_of_the_shell_that_is_no_text(tmp_path: Path) -> None:
    """It is left as it is."""
    (tmp_path / ".bashrc").write_bytes(b"# \xff\n")
    done = installed(tmp_path, PYTHONUTF8="1")
    assert done.returncode == 1
    assert "error: the shell's files cannot be changed: 'utf-8' codec can't decode" in done.stderr
    assert (tmp_path / ".bashrc").read_bytes() == b"# \xff\n"


def test_nobody_reads_what_installing_says(tmp_path: Path) -> None:
    """It is installed all the same, and nothing is wrong with the shell's files."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = installed(tmp_path, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert "cannot be changed" not in done.stderr
    assert (tmp_path / ".bash_completions" / "textgrad-engine.sh").is_file()


def test_installing_says_that_the_program_must_be_on_the_path(tmp_path: Path) -> None:
    """Zsh and fish ask it by its name, and an environment that is not activated has it nowhere."""
    told = "note: zsh and fish ask textgrad-engine by its name"
    assert told in installed(tmp_path, PATH=os.defpath).stderr
    (tmp_path / "textgrad-engine").touch(0o755)
    assert told not in installed(tmp_path, PATH=str(tmp_path)).stderr


def test_commands_that_take_a_config_offer_configs(place: Path) -> None:
    """A folder that holds one, or a file that is called otherwise."""
    assert completed(place, "textgrad-engine train ") == ["other.toml", "tickets"]
    assert completed(place, "textgrad-engine estimate t") == ["tickets"]


def test_optimizers_are_offered_by_name(place: Path) -> None:
    """They are long to type."""
    assert completed(place, "textgrad-engine train tickets --optimizer Pa") == ["PatchSearch", "ParetoSearch"]


def test_the_texts_of_a_run_are_offered_by_name(trained: tuple[Path, Any], tmp_path: Path) -> None:
    """What `show --parameter` takes; of what is no run there are none."""
    assert completed(tmp_path, f"textgrad-engine show {trained[0]} --line 1 --parameter ") == ["system"]
    assert completed(tmp_path, "textgrad-engine show nothing --line 1 --parameter ") == []


def test_columns_are_offered_by_name(trained: tuple[Path, Any], tmp_path: Path) -> None:
    """Those of the data of a run or a config; where there is neither, or no data, nothing."""
    run, tickets = trained[0], Path(__file__).parents[2] / "examples" / "tickets"
    assert completed(tmp_path, f"textgrad-engine show {run} --by ") == ["id", "ticket", "queue"]
    assert completed(tmp_path, f"textgrad-engine eval {tickets} --by q") == ["queue"]
    (tmp_path / "mine").mkdir()
    for text in ("[data]\ntrain = 'none.jsonl'", "["):
        (tmp_path / "mine" / "config.toml").write_text(text, encoding="utf-8")
        assert completed(tmp_path, "textgrad-engine eval mine --by ") == []
    assert completed(tmp_path, "textgrad-engine report nothing --by ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_is_to_load_is_for_the_program_by_its_name(tmp_path: Path, shell: str) -> None:
    """Also where it was asked as a module, which no shell completes."""
    done = subprocess.run(
        [sys.executable, "-m", "textgrad_engine", "--show-completion", shell],
        # Else the shell that runs the tests is asked for, and there may be none.
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "_TEXTGRAD_ENGINE_COMPLETE" in done.stdout
    assert "python" not in done.stdout
