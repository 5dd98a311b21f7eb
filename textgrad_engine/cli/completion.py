"""What a shell completes behind a command, where it was told to: ``textgrad-engine --install-completion``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from textgrad_engine.cli.optimizers import NAMES
from textgrad_engine.errors import RunError
from textgrad_engine.store import FOLDS, read_run

__all__ = ["configs", "optimizers", "parameters", "run_folders"]


def run_folders(incomplete: str) -> list[str]:
    """The run folders whose path begins so, where that leads to or one folder below."""
    return _below(incomplete, lambda path: (path / "events.jsonl").is_file() or (path / FOLDS).is_file())


def configs(incomplete: str) -> list[str]:
    """The folders with a ``config.toml``, and other ``.toml`` files, where a path leads to or one folder below."""
    return _below(incomplete, _is_config)


def optimizers(incomplete: str) -> list[str]:
    """The names of optimizers that begin so."""
    return [name for name in NAMES if name.startswith(incomplete)]


def parameters(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names that begin so of the texts which the run on the command line has trained."""
    for word in ctx.args:  # an option that is not complete yet keeps them from being parsed
        with contextlib.suppress(RunError):
            return [name for name in read_run(Path(word)).seed if name.startswith(incomplete)]
    return []


def _is_config(path: Path) -> bool:
    if path.suffix == ".toml":
        return path.name not in ("config.toml", "pyproject.toml") and path.is_file()
    return (path / "config.toml").is_file()


def _below(incomplete: str, wanted: Callable[[Path], bool]) -> list[str]:
    folder, begin = os.path.split(incomplete)
    found: list[str] = []
    for path in _listed(Path(folder or ".")):
        if path.name.startswith(begin) and (begin.startswith(".") or not path.name.startswith(".")):
            if wanted(path):
                found.append(os.path.join(folder, path.name))
            else:
                found += [os.path.join(folder, path.name, each.name) for each in _listed(path) if wanted(each)]
    return sorted(each for each in found if each.isprintable())


def _listed(folder: Path) -> Iterator[Path]:
    """What a folder holds; nothing where it cannot be read."""
    try:
        yield from folder.iterdir()
    except OSError:
        return
