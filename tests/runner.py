"""A command that runs in this process, with any version of click that Typer stands on."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.testing
from typer.testing import CliRunner

from textgrad_engine.cli.main import app

# To make the commands of their signatures anew each time would take a fifth of a short run.
typer.testing._get_command = functools.cache(typer.testing._get_command)

_APART: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
"""Before click 8.2 stderr is in stdout, unless it is asked for by itself."""


COMMANDS = {name: each.load(name, None) for name, each in typer.main.get_command(app).all.items()}  # type: ignore[attr-defined]
"""Each command with its options, as Typer has it."""


@dataclass(frozen=True)
class Result:
    """What came of a command: its exit code, what it printed, and what ended it (`SystemExit`, or an error)."""

    exit_code: int
    stdout: str
    stderr: str
    exception: BaseException | None

    @property
    def output(self) -> str:
        """All that it printed: results first, then what it said about them."""
        return self.stdout + self.stderr


def invoke(*args: str | Path) -> Result:
    """What `textgrad-engine ARGS` prints, and how it ends."""
    done = CliRunner(**_APART).invoke(app, [str(arg) for arg in args])
    return Result(done.exit_code, done.stdout, done.stderr, done.exception)
