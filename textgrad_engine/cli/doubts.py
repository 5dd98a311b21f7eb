"""Examples of a run whose right answer may be wrong: what `show --doubtful` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textgrad_engine.cli import runs
from textgrad_engine.cli.config_data import load_examples
from textgrad_engine.cli.folds import dealt, part_of
from textgrad_engine.cli.output import colors, width
from textgrad_engine.cli.resume_words import how_it_ended
from textgrad_engine.cli.run_data import check_splits, check_there
from textgrad_engine.errors import RunError
from textgrad_engine.report.doubts import doubts_as_json, doubts_in_words
from textgrad_engine.report.printing import printed, styled
from textgrad_engine.store import Run, is_folds, read_run
from textgrad_engine.train.doubtful import Doubtful


@dataclass(frozen=True)
class Doubts:
    """The doubtful examples of a run, beside the data.

    Attributes:
        found: the examples.
        rows: by set and id where an example stands, and the example.
        targets: the columns of right answers.
    """

    found: tuple[Doubtful, ...]
    rows: Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]]
    targets: tuple[str, ...]


def of_path(path: Path) -> Doubts:
    """The doubtful examples of the run in a folder.

    Raises:
        TextgradError: it has no result or no config, or the data was changed or cannot be read.
    """
    if is_folds(path):
        raise RunError(f"{path}: these are several runs; name one, such as {path / 'final'}, which has all examples")
    run = read_run(path)
    if run.result is None:
        raise RunError(f"{run.path} has no result, as the run {how_it_ended(run)}; only a run that ended tells them")
    if run.by_command is None:
        raise RunError(
            f"{run.path}: no config.json names its data, as the run was started from Python; there, result.doubtful "
            "has their ids, and what was said"
        )
    if "doubtful" not in json.loads((run.path / "result.json").read_bytes()):
        raise RunError(
            f"{run.path}: it was run by a version of before, which did not note them; a run of now does, such as "
            "textgrad-engine train with the same config"
        )
    config = runs.config_of(run, run.best)
    return Doubts(run.result.doubtful, _rows(run, config), config.target_columns())


def _rows(run: Run, config: Any) -> dict[tuple[str, str], tuple[str, Mapping[str, Any]]]:
    rows: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    part = part_of(config, run)
    for split in ("train", "val"):
        if part is not None:
            dataset = dealt(getattr(part, split))
        else:
            if (name := getattr(config.data, split)) is None:
                continue
            check_there(run, config, split)
            dataset = load_examples(config, config.file(name))
            check_splits(run, config, {split: dataset})
        for index, (name, row) in enumerate(zip(dataset.ids, dataset)):
            rows[split, name] = dataset.where(index), row
    return rows


def as_document(path: Path, doubts: Doubts, most: int) -> dict[str, Any]:
    """What ``--json`` prints."""
    shown = doubts_as_json(doubts.found[:most], doubts.rows, doubts.targets)
    return {"run": str(path), "doubtful": len(doubts.found), "examples": shown}


def in_words(path: Path, doubts: Doubts, most: int) -> str:
    """What is printed for people."""
    return printed(
        [
            styled(f"{path}: examples whose right answer may be wrong", "bold"),
            "",
            *doubts_in_words(doubts.found, most, doubts.rows, doubts.targets),
        ],
        width(),
        colors(),
    )
