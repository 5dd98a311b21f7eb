"""What a shell completes behind a command, where it was told to: ``textgrad-engine --install-completion``."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperGroup

from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.output import FAILED
from textgrad_engine.cli.streams import is_unread
from textgrad_engine.errors import RunError, TextgradError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.report.terminal import complain

_INSTALL = "--install-completion"

_OF_WINDOWS = ("powershell", "pwsh")
"""Shells whose users write paths as the system does; the others read a backslash as something else."""


class InstallsCompletion(TyperGroup):
    """The program, whose option ``--install-completion`` says what is in its way, and what it needs afterwards."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the command; that one writes to the home folder, and ends the program."""
        name, installs = str(self.name), _INSTALL in args  # reading takes them out
        if installs and shutil.which(name) is None:
            complain(f"note: zsh and fish ask {name} by its name, so have it on the PATH: source .venv/bin/activate")
        try:
            return super().parse_args(ctx, args)
        except (OSError, UnicodeError, RuntimeError) as error:
            if not installs or is_unread(error):  # who reads what is printed has gone
                raise
            complain(
                f"error: the shell's files cannot be changed: {_reason(error)}; repair that, or have your shell load "
                f"what `{name} --show-completion` prints"
            )
            raise typer.Exit(FAILED) from None


def _reason(error: Exception) -> str:
    """What was in the way, with the file where one is known."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    reason = reason_of(error)
    return reason if str(error.filename) in reason else f"{error.filename}: {reason}"


def run_folders(incomplete: str) -> list[str]:
    """The run folders whose path begins so, where that leads to or one folder below."""
    from textgrad_engine.store.files import FOLDS  # every command loads this module

    return _below(incomplete, lambda path: (path / "events.jsonl").is_file() or (path / FOLDS).is_file())


def configs(incomplete: str) -> list[str]:
    """The folders with a ``config.toml``, and other ``.toml`` files, where a path leads to or one folder below."""
    return _below(incomplete, is_config)


def runs_and_configs(incomplete: str) -> list[str]:
    """Both of them."""
    return sorted({*run_folders(incomplete), *configs(incomplete)})


def optimizers(incomplete: str) -> list[str]:
    """The names of optimizers that begin so."""
    return [name for name in NAMES if name.startswith(incomplete)]


def parameters(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names that begin so of the texts which the run on the command line has trained."""
    from textgrad_engine.store.reader import read_run  # a third of the time that help takes, and for this alone

    for word in ctx.args:  # an option that is not complete yet keeps them from being parsed
        with contextlib.suppress(RunError):
            return [name for name in read_run(Path(word)).seed if name.startswith(incomplete)]
    return []


def purposes(incomplete: str) -> list[str]:
    """Why calls of models are made."""
    from textgrad_engine.llm.request import Purpose  # for this alone

    return [name for name in get_args(Purpose) if name.startswith(incomplete)]


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """The columns that begin so of the data of the run, or of the config, on the command line."""
    from textgrad_engine.data.load import load  # for this alone, as above

    for word in ctx.args:
        with contextlib.suppress(TextgradError, OSError, LookupError, TypeError, ValueError):
            folder, data = _data_of(Path(word))
            file = next(name for name in (data.get("test"), data.get("val"), data["train"]) if name)
            return [name for name in load(folder / file).columns if name.startswith(incomplete)]
    return []


def _data_of(path: Path) -> tuple[Path, Mapping[str, Any]]:
    """The folder that paths count from, and what ``[data]`` says.

    Raises:
        LookupError: there is neither a run nor a config.
    """
    for run in (path, path / "fold-1"):
        if (run / "config.json").is_file():
            kept = json.loads((run / "config.json").read_text(encoding="utf-8"))
            return run.resolve() / kept["folder"], kept["config"]["data"]
    config = path if path.suffix == ".toml" else path / "config.toml"
    if not config.is_file():
        raise LookupError(path)
    return config.parent, tomllib.loads(config.read_text(encoding="utf-8"))["data"]


def is_config(path: Path) -> bool:
    """Whether `train` takes it: a folder with a ``config.toml``, or another ``.toml`` file."""
    if path.suffix == ".toml":
        return path.name not in ("config.toml", "pyproject.toml") and path.is_file()
    return (path / "config.toml").is_file()


def _below(incomplete: str, wanted: Callable[[Path], bool]) -> list[str]:
    begin = os.path.split(incomplete)[1]
    typed = incomplete.removesuffix(begin)  # as it was: Typer keeps what begins with the unfinished word
    between = os.sep if "/" not in typed and _shell() in _OF_WINDOWS else "/"
    found: list[str] = []
    for path in _listed(Path(typed or ".")):
        if path.name.startswith(begin) and (begin.startswith(".") or not path.name.startswith(".")):
            if wanted(path):
                found.append(typed + path.name)
            else:
                found += [typed + path.name + between + each.name for each in _listed(path) if wanted(each)]
    return _as_typed(sorted(each for each in found if each.isprintable()))


def _as_typed(paths: list[str]) -> list[str]:
    """Paths as the shell that asks puts them into the line, by what Typer's scripts make of them.

    Bash puts in what it is given, so that a space has to be escaped, unless the line has an open quote there. Zsh
    loses quotes; where nothing is offered it completes paths by itself.
    """
    shell = _shell()
    if shell == "zsh":
        return [path for path in paths if not set(path) & set("'\"")]
    if shell != "bash" or _word().startswith(("'", '"')):
        return paths
    return [_Escaped(re.sub(r"([^\w@%+=:,./-])", r"\\\1", path)) for path in paths]


def _shell() -> str:
    return os.environ.get("_TEXTGRAD_ENGINE_COMPLETE", "").removeprefix("complete_")


def _word() -> str:
    """The word that bash completes, as it was typed; "" where it does not say."""
    with contextlib.suppress(KeyError, ValueError, IndexError):
        return os.environ["COMP_WORDS"].split("\n")[int(os.environ["COMP_CWORD"])]
    return ""


class _Escaped(str):
    """A path as bash reads it. Typer keeps what begins with the unfinished word, which has no backslashes."""

    def startswith(self, *_: Any) -> bool:
        return True


def _listed(folder: Path) -> Iterator[Path]:
    """What a folder holds; nothing where it cannot be read."""
    try:
        yield from folder.iterdir()
    except OSError:
        return
