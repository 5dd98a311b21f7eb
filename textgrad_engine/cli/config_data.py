"""The data that a config names: read, and checked against what its program and metric need."""

from __future__ import annotations

import difflib
import functools
import json
import logging
from pathlib import Path
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_errors import table_of
from textgrad_engine.cli.settings import Metric
from textgrad_engine.cli.toml_lines import Keys
from textgrad_engine.data.dataset import Dataset
from textgrad_engine.data.images import outside
from textgrad_engine.data.load import load
from textgrad_engine.data.names import listed
from textgrad_engine.data.split import examples_in_both
from textgrad_engine.errors import DataError
from textgrad_engine.llm.images import is_part, name_of_part
from textgrad_engine.nn.metric_functions import forward_of, needs_two
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.slots import SLOT_NAMES, not_slots, slots_of
from textgrad_engine.train.fields import no_text

_log = logging.getLogger("textgrad_engine.cli.config_data")

_NEAR = 0.8
"""So much alike are a column and what is hardly anything but its name, with a slip (`difflib`)."""


def load_examples(config: Config, file: Path) -> Dataset:
    """Read a file of examples, with the images that they name.

    Raises:
        DataError: the file, or an image, cannot be read.
    """
    return load(file, images=config.data.images, detail=config.data.image_detail)


def images_elsewhere(config: Config) -> str:
    """Which images of the splits come from outside of the folders of these, in a sentence; "" where none does.

    Raises:
        DataError: a file cannot be read.
    """
    told, columns = [], config.data.images
    for name in dict.fromkeys((config.data.train, config.data.val, config.data.test)) if columns else ():
        if name is not None and (found := outside(file := config.file(name), load(file), columns)):
            few, shown = len(found) == 1, repr(found[0])
            what, are = ("1 image", "is") if few else (f"{len(found):,} images", "are")
            told.append(f"{what} that {name} names {are} outside of its folder ({shown}{'' if few else ', ...'})")
    if not told:
        return ""
    return f"{'; '.join(told)}. They are sent to the models, so check a table that you did not make yourself."


def read_data(config: Config) -> tuple[Dataset, Dataset, Dataset | None]:
    """Read the train, validation and test examples, and check that they can be used and do not overlap.

    Where no file of validation examples is named, these are the training examples themselves.

    Raises:
        DataError: a file cannot be read, or a row lacks a column that the program or the metric needs.
        ConfigError: an example of one split is also in another, or a prompt names a column that no slot can be called.
    """
    splits: dict[str, Dataset] = {}
    for key in ("train", "val", "test"):
        name = getattr(config.data, key)
        if name is None:
            continue
        splits[key] = load_examples(config, config.file(name))
        _check_braces(config, splits[key])
        check_columns(config, splits[key])
        if key == "train":
            _check_notes(config, splits[key])
            _tell_of_slips(config, splits[key])
        for earlier in list(splits)[:-1]:
            found = examples_in_both(splits[earlier], splits[key], config.input_columns())
            if found:
                config.fail(
                    f"[data] {key} and {earlier} overlap: {found[0]}"
                    + (f", and {len(found) - 1} more" if len(found) > 1 else "")
                    + "; keep each example in one split",
                    "data",
                    key,
                )
    return splits["train"], splits.get("val", splits["train"]), splits.get("test")


def _check_notes(config: Config, train: Dataset) -> None:
    """Check that there are notes, if the config says so; some rows may have none."""
    notes = config.data.notes
    if notes is not None and notes not in train.columns:
        try:
            train.require(notes)
        except DataError as error:
            raise DataError(f"{error} ({_asked_by(config, 'data', 'notes')})") from None


def _tell_of_slips(config: Config, train: Dataset) -> None:
    """Say which name in braces in the seed prompt is no column, and nearly one: it is sent as text."""
    targets = {config.target_of(where, metric) for where, metric in config.metrics()}
    columns = [column for column in train.columns if column not in targets]
    for name in slots_of(config.system_text() or ""):
        near = difflib.get_close_matches(name, columns, n=1, cutoff=_NEAR)
        if near and name not in train.columns:
            key = config.program.system_key
            _log.warning(
                "%s[program] %s has {%s}, which is no column, so it goes to the model as text; did you mean {%s}?",
                config.place_of("program", key),
                key,
                name,
                near[0],
            )


def check_columns(config: Config, dataset: Dataset) -> None:
    """Check that every row has the columns that the program and the metric need.

    Raises:
        DataError: a row lacks one, or has what is no text for a slot, or a target that exact match cannot compare; the
            message names the data's file and line, and the config's line that needs it.
        ConfigError: an image is to fill a slot of the system prompt.
    """
    required, optional = config.columns()
    slots = config.program.user is not None
    wanted: list[tuple[str, Keys]] = [(name, ("program", "user" if slots else "class")) for name in required]
    nullable: list[tuple[str, Keys]] = []
    for where, metric in config.metrics():
        target = config.target_of(where, metric)
        if target is not None and (not config.may_lack_target or target in dataset.columns):
            asked = nullable if metric.target is not None and metric.path else wanted
            asked.append((target, _target_key(where, metric)))
    if config.data.clusters is not None:
        wanted.append((config.data.clusters, ("data", "clusters")))
    for column, keys in (*wanted, *nullable):
        try:
            dataset.require(column, null=(column, keys) in nullable)
        except DataError as error:
            raise DataError(f"{error} ({_asked_by(config, *keys)})") from None
    if (clusters := config.data.clusters) is not None:
        tell_of_empty_clusters(dataset, clusters, _asked_by(config, "data", "clusters"))
    for column in (*required, *optional) if slots else ():
        for index, row in enumerate(dataset):
            if why := no_text(row.get(column)):
                key = "user" if column in required else config.program.system_key
                raise DataError(
                    f"{dataset.where(index)}: column {column!r} holds {why} ({_asked_by(config, 'program', key)})"
                )
    if slots:
        _check_parts(config, dataset)
    for where, metric in config.metrics():
        function = config.metric_function(where, metric)
        has_own = metric.kind == "rubric" and metric.criteria is None
        needs = metric.kind in ("exact_match", "json_match") or has_own
        if needs or (function is not None and needs_two(forward_of(function))):
            _check_targets(config, dataset, where, metric)


def tell_of_empty_clusters(dataset: Dataset, column: str, asked_by: str) -> None:
    """Say that rows which name no cluster are one, as in tables of texts they are not null.

    Args:
        dataset: the examples.
        column: which names their clusters.
        asked_by: what asks for it, in words.
    """
    empty = sum(not str(row[column]).strip() for row in dataset)
    if empty > 1:
        _tell_once(str(dataset.path), column, empty, asked_by)


@functools.lru_cache(maxsize=64)  # a command may read a file several times, as one of each prompt that it compares
def _tell_once(file: str, column: str, empty: int, asked_by: str) -> None:
    _log.warning(
        "%s: the column %r is empty in %d rows, which count as one cluster; give each that stands for itself a "
        "value of its own (%s)",
        file,
        column,
        empty,
        asked_by,
    )


def _check_parts(config: Config, dataset: Dataset) -> None:
    """Refuse images where no model takes them."""
    for column in slots_of(config.system_text() or ""):
        for index, row in enumerate(dataset):
            if is_part(row.get(column)):
                key = config.program.system_key
                config.fail(
                    f"[program] {key} has the slot {{{column}}}, and column {column!r} holds "
                    f"{name_of_part(row[column])} ({dataset.where(index)}), which models take in the user's message "
                    f"alone; write the slot into user, or {{{{{column}}}}} here where braces are to be shown",
                    "program",
                    key,
                )


def _check_targets(config: Config, dataset: Dataset, where: Keys, metric: Metric) -> None:
    """Refuse targets without the field of a metric, those that exact match cannot compare, and what are no criteria."""
    column = config.target_of(where, metric)
    assert column is not None  # what cannot do without has one
    asked_by = _asked_by(config, *_target_key(where, metric))
    for index, row in enumerate(dataset):
        target = row[column]
        if metric.path and isinstance(target, dict):
            try:
                target = functools.reduce(lambda value, key: value[key], metric.path, target)
            except (KeyError, IndexError, TypeError):
                asked = f"{config.place_of(*where, 'field')}{table_of(where)} field asks for it"
                raise DataError(
                    f"{dataset.where(index)}: column {column!r} is an object in this row, and has no field "
                    f"{metric.field!r}; it has {listed(target)} ({asked})"
                ) from None
        if metric.kind == "rubric":
            try:
                criteria_of(target)
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"{dataset.where(index)}: column {column!r} holds no criteria in this row: {error}; or write "
                    f"criteria = [...] for all rows in {table_of(where)} ({asked_by})"
                ) from None
        if metric.kind != "exact_match":
            continue
        if target is row[column] and metric.path and _holds_field(target, metric.path[0]):
            raise DataError(
                f"{dataset.where(index)}: column {column!r} is JSON written as a text in this row, and the metric's "
                f"field {metric.field!r} would be compared with all of it: write it as an object, in a .jsonl or .json "
                f"file ({asked_by})"
            )
        if why := not_compared(target):
            part = f"the field {metric.field!r} of column" if target is not row[column] else "column"
            of_whole = " name its [metric] field," if isinstance(row[column], dict) and not metric.path else ""
            raise DataError(
                f"{dataset.where(index)}: {part} {column!r} is {why} in this row, and exact match compares texts:"
                f'{of_whole} write it as text, or take name = "json_match" in [metric] '
                f"({asked_by})"
            )


def _holds_field(target: Any, name: str | int) -> bool:
    """Whether a target is a text that holds an object with such a field, as tables of texts have it."""
    if not isinstance(target, str) or not target.lstrip().startswith("{"):
        return False
    try:
        found = json.loads(target)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and name in found


def not_compared(target: Any) -> str:
    """What a target is that exact match cannot compare; "" for one that it can."""
    return "a list" if isinstance(target, list) else "an object" if isinstance(target, dict) else ""


def _target_key(where: Keys, metric: Metric) -> Keys:
    """The keys that say where a metric's target is."""
    return ("data", "target") if metric.target is None else (*where, "target")


def _asked_by(config: Config, *keys: str | int) -> str:
    """The config's line that needs a column, in words."""
    return f"{config.place_of(*keys)}{table_of(keys[:-1])} {keys[-1]} asks for it"


def _check_braces(config: Config, dataset: Dataset) -> None:
    """Refuse a prompt with a column in braces that the model would be shown as it stands."""
    for name, text in (("user", config.program.user), (config.program.system_key, config.system_text())):
        if found := not_slots(text or "", dataset.columns):
            config.fail(
                f"[program] {name} has {{{found[0]}}}, and the column {found[0]!r} of {dataset.path} cannot fill it: "
                f"{SLOT_NAMES}; rename the column, there and in the data",
                "program",
                name,
            )
