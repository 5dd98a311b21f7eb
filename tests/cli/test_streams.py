"""What becomes of stdout ends no command with the system's words, and nobody is told who has read enough."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import streams


def run_into(out: Any, tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "textgrad_engine", *args]
    return subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path, check=False)


def run_into_a_closed_pipe(tmp_path: Path, *args: str) -> tuple[int, str]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_into(writer, tmp_path, *args)
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("args", [("--help",), ("--version",), ()])
def test_help_that_nobody_reads_ends_quietly(tmp_path: Path, args: tuple[str, ...]) -> None:
    """As of ls, grep and git, shells say 141 of it: `textgrad-engine --help | head -1` is no error."""
    code, said = run_into_a_closed_pipe(tmp_path, *args)
    assert (code, said) == (141, "")


@pytest.mark.parametrize("args", [("show",), ("show", "--json"), ("diff",), ("report", "--out", "-")])
def test_a_result_that_nobody_reads_ends_quietly(
    trained: tuple[Path, Any], tmp_path: Path, args: tuple[str, ...]
) -> None:
    """Whichever way it is written."""
    name, *options = args
    assert run_into_a_closed_pipe(tmp_path, name, str(trained[0]), *options) == (141, "")


def test_an_error_keeps_its_code_where_nobody_reads(tmp_path: Path) -> None:
    """What is wrong is on stderr, which somebody may read."""
    code, said = run_into_a_closed_pipe(tmp_path, "show", "nothing")
    assert (code, said) == (
        2,
        "error: nothing: there is no such run folder; `textgrad-engine train CONFIG` makes one\n",
    )


class Left:
    """Stdout whose reader has gone, on Windows: the system's words are not those of a pipe."""

    encoding, errors = "utf-8", "strict"

    def write(self, text: str) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    def flush(self) -> None: ...


def test_on_windows_a_pipe_that_nobody_reads_ends_quietly_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its C library says "invalid argument" of such a pipe (bpo-35754), and `| head` is no error there either."""
    monkeypatch.setattr(streams, "_OF_A_PIPE", (errno.EPIPE, errno.EINVAL))
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(sys, "stdout", Left())
    streams.open_streams()
    kept = os.dup(1)
    try:
        assert streams.ending(lambda: print("what nobody reads")) == 141  # noqa: T201
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("args", [("--help",), ("--version",)])
def test_help_on_a_full_disk_says_so(tmp_path: Path, args: tuple[str, ...]) -> None:
    """Once, and without a traceback."""
    with Path("/dev/full").open("w") as full:
        done = run_into(full, tmp_path, *args)
    assert (done.returncode, done.stderr) == (
        1,
        "error: the result cannot be printed: no space left on device\n",
    )
