"""What ``eval`` evaluates: a prompt of a run, or the one that a config begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textgrad_engine.cli import build, run_data, runs
from textgrad_engine.cli.completion import is_config
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import check_columns, load_examples, read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.folds import dealt, part_of
from textgrad_engine.cli.prompt_files import texts_in, trained_texts
from textgrad_engine.data import Dataset
from textgrad_engine.data.paths import missing_file
from textgrad_engine.errors import RunError
from textgrad_engine.report.earlier import in_files
from textgrad_engine.store import Run, is_folds, read_folds, read_run, typed, whole_of
from textgrad_engine.store.reader import others_beside
from textgrad_engine.user_paths import expanded


@dataclass(frozen=True)
class Subject:
    """What is evaluated.

    Attributes:
        path: the run folder, or the config, as it was named.
        config: says program, metric and models.
        prompt: what the texts are called: of a run as `Run.texts` has it, ``"config"`` of a config; or the files of
            which some come, as `report.earlier.in_files` has it.
        texts: by dotted name; those that are not there stay as the config has them.
        kept: what tells the splits from other data, as ``config.json`` of a run has it.
        run: the run; None for a config.
    """

    path: Path
    config: Config
    prompt: str
    texts: Mapping[str, str]
    kept: Mapping[str, Any]
    run: Run | None = None

    @property
    def may_change(self) -> bool:
        """Whether it is the best prompt of a run that has no result, so a later one may take its place."""
        return self.run is not None and self.run.result is None and self.prompt == "best"

    def dataset(self, data: Path | None) -> tuple[str, Dataset]:
        """What the examples are called, and they themselves.

        Args:
            data: the file; None for the test examples of a run (of one of a cross-validation those of its fold), and
                for the validation examples of a config, as nothing is to be chosen by its test examples.

        Raises:
            TextgradError: the file cannot be read or used, or the run has no test examples.
        """
        if data is not None:
            name, file = str(data), data
        elif self.run is None:
            name = self.config.data.val or self.config.data.train
            file = self.config.file(name)
        elif (part := part_of(self.config, self.run)) is not None:
            return part.name, dealt(part.test)
        elif self.config.data.test is None:
            raise RunError("the run's config names no test split; name a file with --data FILE")
        else:
            run_data.check_there(self.run, self.config, "test")
            name, file = self.config.data.test, self.config.file(self.config.data.test)
        dataset = load_examples(self.config, file)
        check_columns(self.config, dataset)
        return name, dataset


def prompt_of_config(path: Path, *models: str | None) -> Subject | None:
    """The prompt that a config begins with; None where a path leads to none, or to a run that keeps one.

    Args:
        path: where it is.
        models: those that the command line names; None for an option that is not given.

    Raises:
        TextgradError: the config or its data cannot be used.
    """
    if path.suffix.lower() != ".toml" and not expanded(path).exists():
        if others := others_beside(expanded(path)):
            raise RunError(f"{path}: there is no such config or run folder{others}")
        raise RunError(missing_file(expanded(path), is_config))
    if path.suffix.lower() != ".toml" and (is_folds(path) or not (path / "config.toml").is_file()):
        return None
    if (path / "events.jsonl").is_file():
        return None
    config = load_config(path, *models)
    train, val, test = read_data(config)
    build.make_guards(config, val, train, test)  # as `train` refuses them: nobody looks for a slice that is misspelt
    splits = dict(zip(run_data.SPLITS, (train, val, test)))
    if config.data.val is None:
        splits["val"] = None
    return Subject(path, config, "config", {}, run_data.kept_of(splits))


def prompt_of_run(path: Path, data: Path | None, prompt: str) -> Subject:
    """A prompt of the run in a folder; of a cross-validation that of its final run.

    Args:
        path: the folder.
        data: the file of the examples, if one was named.
        prompt: which one, as `Run.texts` has it.

    Raises:
        RunError: there is no run, or no such prompt; or there is nothing to test it on.
    """
    run = read_folds(path).final() if is_folds(path) else read_run(path)
    if data is None and whole_of(run.path) is not None and run.path.resolve().name == "final":
        raise RunError(
            f"{path}: no example tests the final prompt, as it was trained on all of them; name others with --data "
            "FILE. What prompts made in the same way score on examples that they have not seen is in "
            f"`textgrad-engine show {typed(whole_of(run.path) or path)}`"
        )
    texts = run.texts(prompt)
    return Subject(run.path, runs.config_of(run, texts), prompt, texts, run.by_command or {}, run)


def with_files(subject: Subject, files: Sequence[str]) -> Subject:
    """The same with texts of files in the place of its own.

    Args:
        subject: what would be evaluated.
        files: as in `texts_in`.

    Raises:
        RunError: as `texts_in`.
    """
    texts = trained_texts(subject.config) if subject.run is None else dict(subject.texts)
    found = texts_in(files, texts, subject.config, subject.path)
    return replace(subject, prompt=in_files(files), texts=texts | found)
