"""The config file: found, read, and checked."""

from __future__ import annotations

import tomllib
from pathlib import Path

from textgrad_engine.cli.completion import is_config
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.toml_lines import key_lines, syntax_error
from textgrad_engine.data.paths import missing_file
from textgrad_engine.data.textfile import read_text
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.store import FOLDS, typed
from textgrad_engine.user_paths import expanded

_CONFIG = "a config is a .toml file, or a folder that holds config.toml"


def load_config(path: str | Path, *models: str | None) -> Config:
    """Read and check a config file; the data is read by `config_data.read_data`.

    Args:
        path: a ``.toml`` file, or a folder that holds a ``config.toml``.
        models: those that the command line names; None for an option that is not given.

    Raises:
        ConfigError: anything in it cannot be used; every message names file, line and repair.
    """
    path = expanded(path)
    if path.is_dir():
        others = sorted(file.name for file in path.glob("*.toml"))
        if not (path / "config.toml").is_file() and any((path / name).is_file() for name in ("events.jsonl", FOLDS)):
            raise ConfigError(
                f"{path}: this is a run folder, and a config is wanted, such as that which it was made from; "
                f"`textgrad-engine resume {typed(path)}` goes on with a run"
            )
        path /= "config.toml"
        if not path.is_file() and others:
            raise ConfigError(f"{path}: there is no such file; name one of {', '.join(others)}, or rename it")
        if not path.is_file():
            raise ConfigError(f"{path}: there is no such file; name a folder that holds one, or another .toml file")
    if not path.is_file():
        said = missing_file(path, is_config)
        raise ConfigError(said if said.endswith("?") else f"{said}; {_CONFIG}")
    if path.suffix.lower() != ".toml":
        made = f"textgrad-engine init FOLDER --data {typed(path)} --target COLUMN"
        raise ConfigError(f"{path}: {_CONFIG}; of a table of examples `{made}` makes one")
    try:
        text = read_text(path)
    except DataError as error:
        raise ConfigError(str(error)) from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(syntax_error(path, text, str(error))) from None
    except RecursionError:
        raise ConfigError(f"{path}:1: the file is nested too deeply to be read") from None
    return Config.of(values, path, key_lines(text), models)
