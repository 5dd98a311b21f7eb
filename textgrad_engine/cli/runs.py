"""Run folders as the command line uses them: their names, what config they keep, and the way back from them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.data import Dataset
from textgrad_engine.errors import RunError
from textgrad_engine.report.words import plural
from textgrad_engine.store import Run

__all__ = ["best_files", "claim", "config_of", "describe", "name_of", "summary"]


def name_of(config: Config) -> str:
    """What a config is called: its folder when it is a ``config.toml``, else its file."""
    path = config.path.absolute()
    return path.parent.resolve().name or "run" if path.name == "config.toml" else path.stem


def claim(config: Config, run_dir: Path | None) -> Path:
    """The folder of a new run: the given one, or the next free ``runs/NAME-N``, which is made.

    Raises:
        RunError: it cannot be made.
    """
    if run_dir is not None:
        return run_dir
    home, name = Path("runs"), name_of(config)
    try:
        home.mkdir(exist_ok=True)
        taken = [each.name.removeprefix(f"{name}-") for each in home.glob(f"{_escaped(name)}-*")]
        number = max((int(each) for each in taken if each.isdecimal()), default=0) + 1
        while True:
            try:
                (home / f"{name}-{number}").mkdir()
                return home / f"{name}-{number}"
            except FileExistsError:  # another run was quicker
                number += 1
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RunError(f"{home}: no run folder can be made: {reason}; name a place with --run-dir") from None


def describe(config: Config, path: Path, *, feedback: bool) -> dict[str, Any]:
    """What ``config.json`` of a run folder says: every setting, and where the config's own folder is from there."""
    return {
        "name": name_of(config),
        "folder": _from(path, config.folder),
        "feedback": feedback,
        "config": config.resolved(),
    }


def config_of(run: Run) -> Config:
    """The config that a run was made with; its files are looked for when they are read.

    Raises:
        RunError: the run keeps none, because it was started from Python.
        ConfigError: it was damaged.
    """
    kept = run.config
    if kept is None:
        raise RunError(
            f"{run.path}: there is no config.json, as this run was not started by `textgrad-engine train`; evaluate it "
            "from Python, with tg.evaluate"
        )
    try:
        values, folder = kept["config"], kept["folder"]
        return Config.of(values, run.path / folder / "config.toml")
    except (KeyError, TypeError) as error:
        raise RunError(f"{run.path / 'config.json'}: lacks {error}, so the file was damaged; restore it") from None


def best_files(path: Path, best: Mapping[str, str]) -> str:
    """Where the best texts are, in words."""
    return str(path / "best_prompt.txt") if len(best) == 1 else str(path / "best")


def summary(config: Config, train: Dataset, val: Dataset, test: Dataset | None) -> str:
    """What is about to be done, in a line."""
    names = list(dict.fromkeys(config.models.roles().values()))
    tests = "no test set" if test is None else f"{len(test)} to test"
    return f"{plural(len(train), 'example')} to train, {len(val)} to validate, {tests}; {', '.join(names)}"


def _from(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(folder.resolve(), path.resolve())).as_posix()
    except ValueError:  # another drive on Windows: there is no relative path
        return folder.resolve().as_posix()


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
