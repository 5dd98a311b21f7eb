"""Run folders as the command line uses them: their names, what config they keep, and the way back from them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePath
from typing import Any, Self

from pydantic import ValidationError

from textgrad_engine.autograd import no_grad
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_checks import idle_keys
from textgrad_engine.cli.config_errors import problems_of
from textgrad_engine.cli.output import version
from textgrad_engine.cli.run_data import SPLITS, kept_of, looks_at
from textgrad_engine.cli.settings import Budget
from textgrad_engine.cli.sources import digests_of
from textgrad_engine.cli.spending import ModelOptions, price_of
from textgrad_engine.data import Dataset
from textgrad_engine.errors import RunError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.nn import Module
from textgrad_engine.report.words import count, plural
from textgrad_engine.store import Run
from textgrad_engine.store.records import use_that_version


@dataclass(frozen=True)
class Way:
    """How a run is begun, besides its config.

    Attributes:
        feedback: whether the optimizer gets feedback.
        controls: whether searches without feedback are run beside it.
        cache: whether answers are kept on disk for other runs.
    """

    feedback: bool = True
    controls: bool = False
    cache: bool = False

    @classmethod
    def of(cls, run: Run) -> Self:
        """How a run was begun; one of before that was kept, in the usual way."""
        kept = run.by_command or {}
        return cls(**{each.name: bool(kept.get(each.name, each.default)) for each in fields(cls)})


def name_of(config: Config) -> str:
    """What a config is called: its folder when it is a ``config.toml``, else its file."""
    path = config.path.absolute()
    return path.parent.resolve().name or "run" if path.name == "config.toml" else path.stem


def prices_in_words(config: Config) -> list[str]:
    """The prices that were stated, a line each."""
    prices = config.models.prices.items()
    return [f"Stated price of {name}: {price.in_words()}, per million tokens" for name, price in prices]


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
        reason = reason_of(error)
        raise RunError(f"{home}: no run folder can be made: {reason}; name a place with --run-dir") from None


def describe(config: Config, path: Path, splits: Mapping[str, Dataset | None], way: Way) -> dict[str, Any]:
    """What ``config.json`` of a run folder says: every setting, null for none, and where the config's own folder is.

    Also whether the file of its prompt ends its last line, and digests of the files that it is made of.

    Args:
        config: of the run.
        path: the run folder.
        splits: the data by split; a digest of each is kept, and one of each of their rows.
        way: how it is begun.
    """
    return {
        "name": name_of(config),
        "version": version(),
        "folder": _from(path, config.folder),
        "ends_line": config.ends_line(),
        "files": digests_of(config),
        **asdict(way),
        **kept_of(splits),
        "looks_before": looks_at(splits.get("test"), path),
        "config": _portable(_in_effect(config)),
    }


def _in_effect(config: Config) -> dict[str, Any]:
    """The values of a config without those that mean nothing to the run: as a file, they would be refused.

    What comes from files, a schema or tools, is in its place, as what is asked later is to be what the run asked.
    """
    values = config.model_dump(mode="json", by_alias=True)
    for table, key, _ in idle_keys(config):
        values[table].pop(key, None)
    values["program"] |= config.files_read()
    return values


def _portable(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a config, its paths written with ``/``: a run folder of Windows may be read elsewhere."""
    data, program = values["data"], values["program"]
    for table, key in ((values, "prompts"), (program, "system_file"), *((data, split) for split in SPLITS)):
        if table[key] is not None:
            table[key] = PurePath(table[key]).as_posix()
    return values


def with_limits(run: Run, config: Config) -> dict[str, Any]:
    """What ``config.json`` of a run says that is resumed with another endpoint, price or budget.

    Args:
        run: the run.
        config: what it goes on with.
    """
    kept = {key: value for key, value in (run.by_command or {}).items() if key != "format"}
    values = dict(kept["config"])
    values["budget"] = config.budget.model_dump(mode="json")
    models = config.models.model_dump(mode="json")
    values["models"] = {
        **values["models"],
        **{key: models[key] for key in ("base_url", "api_key", "headers", "prices", "endpoints")},
    }
    return {**kept, "config": values}


def name_in(run: Run) -> str:
    """What the config of a run is called."""
    return str((run.by_command or {}).get("name", run.path.name))


def config_of(run: Run, texts: Mapping[str, str]) -> Config:
    """The config that a run was made with, its system prompt replaced by that of `texts`, if there are any.

    Files that it names are looked for when they are read, so that a run folder is of use without the training data.

    Raises:
        RunError: the run keeps none, because it was started from Python; or it was damaged.
    """
    kept = run.by_command
    if kept is None:
        why, what = "there is no config.json", "removed"
        if run.config is not None:
            why, what = "its config.json holds no config of a command", "changed"
        raise RunError(
            f"{run.path}: {why}, as the run was started from Python, or the file was {what}; "
            "evaluate it from Python, with tg.evaluate, or go on with it, with tg.Trainer(run_dir=..., resume=True); a "
            f"file that was {what} is to be put back"
        )
    try:
        values, folder = dict(kept["config"]), kept["folder"]
        program = values.get("program")
        if isinstance(program, dict) and program.get("class") is None and texts:
            values["program"] = {**program, "system_file": None, "system": texts["system"]}
        guards = values.get("guards")
        if isinstance(guards, dict) and guards.get("never_break"):  # in a run of before one run of each decided
            values["guards"] = {"reruns": 0, **guards}
        config = Config.model_validate(values)
    except ValidationError as error:
        raise RunError(f"{run.path / 'config.json'}: {_unreadable(kept, error)}") from None
    except KeyError as error:
        raise RunError(f"{run.path / 'config.json'}: was damaged, as it has no {error}; restore it") from None
    config._path = _shown(run.path.resolve() / folder) / "config.toml"
    return config


def _unreadable(kept: Mapping[str, Any], error: ValidationError) -> str:
    """Why a config cannot be used, and what to do: it was damaged, or is of a version that knows other settings."""
    wrong = "; ".join(said for _, said in problems_of(error, Config))
    if kept.get("version") not in (None, version()):
        return f"textgrad_engine {kept['version']} wrote it, and this is {version()}: {wrong}; {use_that_version({})}"
    if all(each["type"] == "extra_forbidden" for each in error.errors()):
        return f"is not as textgrad_engine {version()} writes it: {wrong}; restore it, or {use_that_version({})}"
    return f"was damaged: {wrong}; restore it"


def changed(config: Config, said: ModelOptions, limits: Budget) -> Config:
    """The config with what the command line says of models, and with these limits in place of its own."""
    price = price_of(said.price)
    config.check_judge(said.judge)
    models = config.models.changed(model=said.model, judge=said.judge, base_url=said.base_url, price=price)
    return config.model_copy(update={"models": models, "budget": limits})


def load_texts(program: Module, texts: Mapping[str, str], path: Path) -> None:
    """Put texts of the run in a folder into a program.

    Raises:
        RunError: the program has not the parameters that the run trained.
    """
    parameters = dict(program.named_parameters())
    with no_grad():
        for name, text in texts.items():
            if name not in parameters:
                raise RunError(
                    f"{path}: the run trained {name!r}, and the program of its config now has "
                    f"{', '.join(parameters) or 'no parameters'}; it was changed since, so put it back as it was"
                )
            parameters[name].data = text


def summary(config: Config, train: Dataset, val: Dataset, test: Dataset | None) -> str:
    """What is about to be done, in a line."""
    names = list(dict.fromkeys(config.models.roles().values()))
    tests = "no test set" if test is None else f"{count(len(test))} to test"
    vals = "the same to validate" if val is train else f"{count(len(val))} to validate"
    return f"{plural(len(train), 'example')} to train, {vals}, {tests}; {', '.join(names)}"


def _from(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(folder.resolve(), path.resolve())).as_posix()
    except ValueError:  # another drive on Windows: there is no relative path
        return folder.resolve().as_posix()


def _shown(folder: Path) -> Path:
    """A folder as a person would write it: relative when it is below the working directory."""
    folder = Path(os.path.normpath(folder))
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed meanwhile
        return folder
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
