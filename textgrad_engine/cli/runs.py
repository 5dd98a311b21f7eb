"""Run folders as the command line uses them: their names, what config they keep, and the way back from them."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePath
from typing import Any, Self

from pydantic import ValidationError

from textgrad_engine.autograd import no_grad
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.output import version
from textgrad_engine.cli.settings import Budget
from textgrad_engine.data import Dataset
from textgrad_engine.errors import RunError
from textgrad_engine.llm.answers import Answer
from textgrad_engine.llm.response import Usage
from textgrad_engine.llm.usage import usage_of
from textgrad_engine.nn import Module
from textgrad_engine.report.words import count, money, plural
from textgrad_engine.store import Run, read_run, typed
from textgrad_engine.store.records import dumps
from textgrad_engine.store.resume import Earlier
from textgrad_engine.train import TrainResult

__all__ = [
    "CONTROL",
    "EVALUATION_ENDED",
    "EVALUATION_STARTED",
    "Resumed",
    "SPLITS",
    "Way",
    "begun",
    "best_files",
    "changed",
    "check_splits",
    "claim",
    "config_of",
    "describe",
    "digest_of",
    "goes_on",
    "how_it_ended",
    "left_in",
    "load_texts",
    "looks_at",
    "name_in",
    "name_of",
    "openings",
    "opens_test",
    "rows_of_splits",
    "split_of",
    "summary",
    "with_limits",
]

EVALUATION_STARTED, EVALUATION_ENDED = "EvaluationStarted", "EvaluationEnded"
"""The two lines that an evaluation has in ``evals.jsonl``; of one that was killed there is only the first."""

CONTROL = "a control: the optimizer got no feedback"

_LIMITS = {"dollars": "--budget DOLLARS", "calls": "--budget-calls N", "tokens": "--budget-tokens N"}
"""The options for the limits of [budget]."""

SPLITS = {"train": "training", "val": "validation", "test": "test"}


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
        kept = run.config or {}
        return cls(**{each.name: bool(kept.get(each.name, each.default)) for each in fields(cls)})


@dataclass(frozen=True)
class Resumed:
    """What a run that was resumed made of what had been paid for before.

    Attributes:
        played_back: so many calls were answered by it.
        usage: what these had used.
        not_asked_again: so many recorded calls were not asked for again.
        lost: what these had used.
    """

    played_back: int
    usage: Usage
    not_asked_again: int
    lost: Usage

    @classmethod
    def of(cls, earlier: Earlier) -> Self:
        """What it made of it so far."""
        played, left = earlier.player.played, earlier.player.left
        return cls(len(played), _used(played), len(left), _used(left))

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "played_back": {"calls": self.played_back, "usage": self.usage.model_dump()},
            "not_asked_again": {"calls": self.not_asked_again, "usage": self.lost.model_dump()},
        }

    def in_words(self, result: TrainResult, path: Path) -> list[str]:
        """The same for people, a line each."""
        every, before = plural(result.total.calls, "call"), count(self.usage.calls)
        lines = [f"Of {every}, {before} had been paid for before{_for(self.usage)}."]
        if self.not_asked_again and result.status == "finished":
            lines.append(
                f"{plural(self.not_asked_again, 'recorded call')} did not come up again{_for(self.lost)}, as something "
                f"has changed; what was answered stays in {path / 'answers-*.jsonl'}."
            )
        return lines


def _for(usage: Usage) -> str:
    """What was paid, in brackets, where it is known and something."""
    return f" ({money(usage.dollars)})" if usage.dollars else ""


def _used(answers: Iterable[Answer]) -> Usage:
    used = (usage_of(each.outcome) if isinstance(each.outcome, Exception) else each.outcome.usage for each in answers)
    return sum(filter(None, used), Usage())


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


def describe(config: Config, path: Path, splits: Mapping[str, Dataset | None], way: Way) -> dict[str, Any]:
    """What ``config.json`` of a run folder says: every setting (null for none), and where the config's own folder is.

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
        **asdict(way),
        "digests": {name: digest_of(rows) for name, rows in splits.items() if rows is not None},
        "looks_before": looks_at(splits.get("test"), path),
        "rows": {name: " ".join(_digests(rows)) for name, rows in splits.items() if rows is not None},
        "config": _portable(config.model_dump(mode="json", by_alias=True)),
    }


def _portable(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a config, its paths written with ``/``: a run folder of Windows may be read elsewhere."""
    data, program = values["data"], values["program"]
    for table, key in ((values, "prompts"), (program, "system_file"), *((data, split) for split in SPLITS)):
        if table[key] is not None:
            table[key] = PurePath(table[key]).as_posix()
    return values


def with_limits(run: Run, config: Config) -> dict[str, Any]:
    """What ``config.json`` of a run says that is resumed with another endpoint or budget.

    Args:
        run: the run.
        config: what it goes on with.
    """
    kept = {key: value for key, value in (run.config or {}).items() if key != "format"}
    values = dict(kept["config"])
    values["budget"] = config.budget.model_dump(mode="json")
    values["models"] = {**values["models"], "base_url": config.models.base_url}
    return {**kept, "config": values}


def name_in(run: Run) -> str:
    """What the config of a run is called."""
    return str((run.config or {}).get("name", run.path.name))


def config_of(run: Run, texts: Mapping[str, str]) -> Config:
    """The config that a run was made with, its system prompt replaced by that of `texts`, if there are any.

    Files that it names are looked for when they are read, so that a run folder is of use without the training data.

    Raises:
        RunError: the run keeps none, because it was started from Python; or it was damaged.
    """
    kept = run.config
    if kept is None:
        raise RunError(
            f"{run.path}: there is no config.json, as this run was not started by `textgrad-engine train`; evaluate it "
            "from Python, with tg.evaluate, or go on with it, with tg.Trainer(run_dir=..., resume=True)"
        )
    try:
        values, folder = dict(kept["config"]), kept["folder"]
        if values["program"].get("class") is None and texts:
            values["program"] = {"user": values["program"]["user"], "system": texts["system"]}
        config = Config.model_validate(values)
    except (KeyError, TypeError, ValidationError) as error:
        raise RunError(f"{run.path / 'config.json'}: was damaged ({error}); restore it") from None
    config._path = _shown(run.path.resolve() / folder) / "config.toml"
    return config


def changed(config: Config, *, model: str | None, base_url: str | None, limits: Budget) -> Config:
    """The config with what the command line says, and with these limits in place of its own."""
    models = config.models
    if model is not None:
        models = models.of(model)
    if base_url is not None:
        models = models.model_copy(update={"base_url": base_url})
    return config.model_copy(update={"models": models, "budget": limits})


def digest_of(dataset: Dataset) -> str:
    """Sixteen hexadecimal digits that tell datasets apart by their examples, wherever they are kept."""
    content = b"\n".join(dumps(row) for row in dataset)
    return hashlib.sha256(content).hexdigest()[:16]


def check_splits(run: Run, config: Config, splits: Mapping[str, Dataset | None]) -> None:
    """Check that data is what a run had.

    Args:
        run: the run.
        config: names the files.
        splits: what they hold now, by split; those that are left out are not looked at.

    Raises:
        RunError: it was changed.
    """
    known: Mapping[str, str] = (run.config or {}).get("digests", {})
    for name, rows in splits.items():
        if rows is not None and digest_of(rows) != known.get(name):
            file = config.file(getattr(config.data, name) or config.data.train)
            raise RunError(
                f"{file}: these are not the {SPLITS[name]} examples that {run.path} had; put them back as they were"
            )


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


def split_of(run: Run, dataset: Dataset) -> str | None:
    """Which of the run's splits a dataset is: "train", "val", "test", or None."""
    known: Mapping[str, str] = (run.config or {}).get("digests", {})
    digest = digest_of(dataset)
    return next((name for name, its in known.items() if its == digest), None)


def rows_of_splits(run: Run, dataset: Dataset) -> dict[str, int]:
    """How many rows of a dataset are of which of the run's splits, of those of which there are any.

    What is one of the splits as a whole counts as that one only. Runs of before that was kept know whole splits only.
    """
    if (split := split_of(run, dataset)) is not None:
        return {split: len(dataset)}
    asked = _digests(dataset)
    kept: Mapping[str, str] = (run.config or {}).get("rows", {})
    known = {name: set(digests.split()) for name, digests in kept.items()}
    counts = {name: sum(digest in digests for digest in asked) for name, digests in known.items()}
    return {name: number for name, number in counts.items() if number}


def _digests(dataset: Dataset) -> list[str]:
    """Of each row what tells it apart by its content, whatever its id and the order of its columns in a file."""
    contents = [{name: row[name] for name in sorted(row) if name != "id"} for row in dataset]
    return [hashlib.sha256(dumps(content)).hexdigest()[:12] for content in contents]


def openings(run: Run) -> int:
    """How often the run's test split was looked at: by the run itself, and by evaluations since, ended or not."""
    events = (*run.earlier, *run.events)
    own = any(event.get("event") == "PhaseStarted" and event.get("phase") == "test" for event in events)
    return max(int(own), 0 if run.result is None else run.result.openings) + sum(
        1 for entry in run.evals if opens_test(entry) and entry.get("event") != EVALUATION_ENDED
    )


def looks_at(test: Dataset | None, path: Path) -> int:
    """How often test examples were opened so far by other runs that lie beside a run's folder, evaluations included.

    A run whose test split has at least half of these examples has opened them, whatever its files are called. What
    cannot be read is left out.

    Args:
        test: the examples.
        path: the run folder, in the folder of the others.
    """
    if test is None or not path.absolute().parent.is_dir():
        return 0
    own, looks = set(_digests(test)), 0
    for other in path.absolute().parent.iterdir():
        if other.name == path.name or not (other / "config.json").is_file():
            continue
        try:
            found = read_run(other)
        except RunError:
            continue
        theirs = (found.config or {}).get("rows", {}).get("test", "").split()
        if 2 * len(own.intersection(theirs)) >= len(own):
            looks += openings(found)
    return looks


def opens_test(entry: Mapping[str, Any]) -> bool:
    """Whether an evaluation, as ``evals.jsonl`` has it, was on the test split or on a row of it."""
    return entry.get("split") == "test" or "test" in entry.get("rows", {})


def best_files(path: Path, best: Mapping[str, str]) -> str:
    """Where the best texts are, in words."""
    return str(path / "best_prompt.txt") if len(best) == 1 else str(path / "best")


def begun(path: Path) -> bool:
    """Whether the run in a folder has come to where models are asked."""
    return (path / "seed").is_dir()


def left_in(path: Path) -> str:
    """What a run that was ended at once has left in its folder, in words."""
    if (path / "result.json").is_file():
        return f"all of the run is in {path}, and `show {typed(path)}` prints the result"
    if not (path / "events.jsonl").is_file():
        return f"nothing was asked, and there is no run in {path}"
    try:
        run = read_run(path)
    except RunError as error:  # whatever it is that cannot be read now
        return f"what was paid for until then is in {path}, and cannot be read now: {error}"
    if not _answered(run):
        return f"nothing was answered; {_way_on(run)}"
    return (
        f"what was paid for until then is in {path}, with the best prompt so far and without a result.json; "
        f"`show {typed(path)}` prints what is known, and {_way_on(run)}"
    )


def goes_on(run: Run) -> str:
    """What goes on with a run that has not come to its end, in a sentence."""
    raising: list[str] = []
    if run.config is not None and run.result is not None and run.result.status == "budget":
        raising = _raising(run.config["config"]["budget"], run.result.total)
    if not raising:
        return f"{_way_on(run)}."
    nearest, *others = raising
    also = f" Where it is another limit that has no room: {', '.join(others)}." if others else ""
    return f"`textgrad-engine resume {typed(run.path)} {nearest}` goes on with a larger budget.{also}"


def _way_on(run: Run) -> str:
    """The command that goes on with a run, and what it does."""
    what = "goes on with it" if _answered(run) else "begins it, as nothing is on record yet"
    if run.config is None:
        return f"tg.Trainer(run_dir=..., resume=True) {what}"
    return f"`textgrad-engine resume {typed(run.path)}` {what}"


def _raising(limits: Mapping[str, float | None], used: Usage) -> list[str]:
    """The options for the limits that a run had, that of which most was used first."""
    spent = {"dollars": used.dollars or 0.0, "calls": used.calls, "tokens": used.total_tokens}
    own = {name: limit for name in _LIMITS if (limit := limits.get(name)) is not None}
    shares = {name: spent[name] / limit if limit else math.inf for name, limit in own.items()}
    return [_LIMITS[name] for name in sorted(shares, key=lambda name: -shares[name])]


def _answered(run: Run) -> bool:
    """Whether a run has paid for anything, or found it in the cache; what cannot be read was."""
    try:
        return any("text" in entry or _tokens(entry) for entry in run.completions())
    except RunError:
        return True


def _tokens(entry: Mapping[str, Any]) -> int:
    """What a call without a finished answer was charged for all the same."""
    return int(entry.get("usage", {}).get("output_tokens", 0))


def how_it_ended(run: Run) -> str:
    """What became of a run that has no result, in words."""
    if run.locked:
        return "still goes on"
    return "ended with an error" if run.error else "was killed"


def summary(config: Config, train: Dataset, val: Dataset, test: Dataset | None) -> str:
    """What is about to be done, in a line."""
    names = list(dict.fromkeys(config.models.roles().values()))
    tests = "no test set" if test is None else f"{len(test)} to test"
    vals = "the same to validate" if val is train else f"{len(val)} to validate"
    return f"{plural(len(train), 'example')} to train, {vals}, {tests}; {', '.join(names)}"


def _from(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(folder.resolve(), path.resolve())).as_posix()
    except ValueError:  # another drive on Windows: there is no relative path
        return folder.resolve().as_posix()


def _shown(folder: Path) -> Path:
    """A folder as a person would write it: relative when it is below the working directory."""
    folder = Path(os.path.normpath(folder))
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
