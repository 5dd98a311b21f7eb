"""``textgrad-engine init``: from a table of examples to a folder that train takes."""

from __future__ import annotations

import contextlib
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from textgrad_engine import templates
from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config, load_config
from textgrad_engine.cli.config_data import not_compared, read_data
from textgrad_engine.cli.folds import parts_for
from textgrad_engine.cli.foresight import foreseen
from textgrad_engine.cli.leaks import leaking, leaks_in_words
from textgrad_engine.cli.options import BaseUrl, Seed
from textgrad_engine.cli.output import OK, checking, command, width, write
from textgrad_engine.data import Dataset, load, random_split
from textgrad_engine.data.dataset import ids_of, listed, suggest
from textgrad_engine.data.load import read_text
from textgrad_engine.data.paths import missing_file
from textgrad_engine.errors import ConfigError, DataError, RunError
from textgrad_engine.llm.prices import price
from textgrad_engine.llm.response import Usage
from textgrad_engine.nn import Module
from textgrad_engine.report.words import plural
from textgrad_engine.slots import SLOT_NAMES, composed, slots_of
from textgrad_engine.store.files import typed
from textgrad_engine.train.fields import no_text

__all__ = ["init"]

ENOUGH = 100
"""Fewer examples than this are not cut into three parts: `train --folds` tests all of them (`docs/search.md`)."""

FOLDS = 5
"""So many are named to whoever has few examples."""

PARTS = {"train": 0.3, "val": 0.3, "test": 0.4}
"""How the others are cut: what can be shown depends on the number of test examples."""

LABELS = 20
"""A target with no more values than this, each twice at least, is taken for a choice among them."""

Rows: TypeAlias = Sequence[dict[str, Any]]

LONG = 60
"""Characters above which answers are seldom the same to the letter."""


@command
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder to make, or an empty one.", show_default=False)
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", help="A table of examples: .csv, .jsonl or .json.  [required]", show_default=False
        ),
    ] = None,
    target: Annotated[
        str, typer.Option("--target", metavar="COLUMN", help="The column that holds the right answer.")
    ] = "target",
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="COLUMN",
            help="A column that the model is shown; may be given several times. "
            "Default: all others but id, and those that hold the answer.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            "--prompt",
            metavar="FILE",
            help="The prompt to begin with, as a text file. Default: a plain one.",
            show_default=False,
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            metavar="COLUMN",
            help="The column that says which examples belong together, e.g. the document that several are about.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model.")] = "openai/gpt-5-mini",
    base_url: BaseUrl = None,
    seed: Seed = None,
) -> None:
    """Make a folder that train takes, from a table of examples: a config, a prompt, and the table in three parts.

    The parts are drawn at random. Examples with equal inputs are in one part, and so are those of one cluster. A table
    of fewer than 100 examples stays whole, for train --folds. No model is asked, and no file is replaced.
    """
    target, inputs = composed(target), [composed(name) for name in inputs or ()]
    clusters = None if clusters is None else composed(clusters)
    with checking():
        if data is None:
            raise ConfigError(_no_data(folder))
        table = load(data)
        leaks = leaking(table, target, clusters)
        shown = _columns(table, data, target, inputs, clusters, leaks)
        files = {"prompt.txt": _prompt(table, shown, target, prompt)}
        parts = _parts(table, data, shown, clusters, seed or 0)
        files |= {f"{name}.jsonl": _lines(part) for name, part in parts.items()}
        files["config.toml"] = _config(shown, target, clusters, list(parts), model, base_url, seed or 0)
        with _made(folder, files):
            config = load_config(folder)
            splits, program = read_data(config), build.make_program(config)
            shows = foreseen(config, program, build.make_metric(config), splits[-1])
            if len(parts) == 1:
                shows = _why_no_folds(config, program, splits)
    remarks = leaks_in_words(leaks, shown, target)
    remarks += [shows] if shows else []
    write(_told(folder, data, parts, remarks, long=_are_long(table, target)))
    raise typer.Exit(OK)


def _no_data(folder: Path) -> str:
    """The message where no table is named, or only in the place of the folder."""
    made, table = (folder.with_suffix(""), typed(folder)) if folder.is_file() else (folder, "TABLE")
    wanted = f"textgrad-engine init {typed(made)} --data {table} --target COLUMN"
    return f"--data is missing: the table of examples, as in `{wanted}`"


def _columns(
    table: Dataset,
    data: Path,
    target: str,
    inputs: Sequence[str] | None,
    clusters: str | None,
    leaks: Mapping[str, float],
) -> tuple[str, ...]:
    """The columns that the model is shown: those that were named, or all that are neither the answer nor tell it.

    Raises:
        ConfigError: a column that was named is not there or cannot be used, or there is none to show.
        DataError: a row has no value in one of them, or one that cannot be shown or compared.
    """
    for option, name in (("--target", target), ("--clusters", clusters), *(("--input", name) for name in inputs or ())):
        if name is not None and name not in table.columns:
            raise ConfigError(
                f"{option} {name}: {data} has no such column; it has {listed(table.columns)}"
                f"{suggest(name, table.columns)}"
            )
    if inputs and target in inputs:
        raise ConfigError(f"--input {target}: that is the right answer, by --target; the model must not be shown it")
    aside = (target, clusters, "id", *leaks)
    shown = tuple(dict.fromkeys(inputs or [name for name in table.columns if name not in aside]))
    if not shown:
        besides = " and ".join([target, *leaks])
        why = f", as {' and '.join(leaks)} {'is' if len(leaks) == 1 else 'are'} the answer itself" if leaks else ""
        raise ConfigError(f"{data} has no column to show the model besides {besides}{why}; add one")
    for name in shown:
        if slots_of(f"{{{name}}}") != (name,):
            raise ConfigError(
                f"{data}: the column {name!r} cannot fill a slot of a prompt: {SLOT_NAMES}; rename it in the table, or "
                "name those to be shown by --input"
            )
    table.require(target, *([clusters] if clusters else []))
    _check_values(table, shown, target)
    return shown


def _check_values(table: Dataset, shown: Sequence[str], target: str) -> None:
    """Check what the config would be refused for, where it still can be told by the lines of the table.

    Raises:
        DataError: a row has no value in a column, or one that cannot be shown or compared.
    """
    for name in shown:
        others = f"; --input names the columns to be shown, if {name} is not to be"
        try:
            table.require(name)
        except DataError as error:
            raise DataError(f"{error}{others}") from None
        for index, row in enumerate(table):
            if why := no_text(row[name]):
                raise DataError(f"{table.where(index)}: column {name!r} holds {why}{others}")
    for index, row in enumerate(table):
        if why := not_compared(row[target]):
            raise DataError(
                f"{table.where(index)}: column {target!r}, by --target, is {why} in this row, and exact match compares "
                f"texts: write it as text{_OF_FIELDS if isinstance(row[target], dict) else ''}"
            )


_OF_FIELDS = (
    "; or, to score its fields, write the config by hand: [program] response_format, and for each a [[metric]] with "
    "its field (docs/config.md)"
)


def _prompt(table: Dataset, shown: Sequence[str], target: str, given: Path | None) -> str:
    """The prompt to begin with.

    Raises:
        ConfigError: the file is not there.
    """
    if given is not None:
        if not given.is_file():
            raise ConfigError(f"--prompt {given}: {missing_file(given)}")
        return read_text(given)
    times: dict[str, int] = {}
    for row in table:
        times[str(row[target])] = times.get(str(row[target]), 0) + 1
    few = len(times) <= LABELS and min(times.values()) > 1
    named = few and not any(slots_of(label) or not label.strip() or not label.isprintable() for label in times)
    labels = sorted(times) if named else []
    return templates.load("first_prompt").render(inputs=list(shown), target=target, labels=labels) + "\n"


def _parts(table: Dataset, data: Path, shown: Sequence[str], clusters: str | None, seed: int) -> dict[str, Rows]:
    """The examples of each file.

    Raises:
        ConfigError: nearly all of them belong together.
    """
    if len(table) < ENOUGH:
        return {"train": table}
    try:
        found = random_split(table, list(PARTS.values()), seed, clusters=clusters, together=shown)
    except ValueError:
        equal = f"{' and '.join(shown)}{f' or of one {clusters}' if clusters else ''}"
        raise ConfigError(
            f"{data}: examples with the same {equal} stay in one part, and of the {len(table)} that there are nearly "
            f"all do, so they cannot be cut into {len(PARTS)}; add others, or name other columns by --input"
            f"{', or another by --clusters' if clusters else ''}"
        ) from None
    return dict(zip(PARTS, found))


def _lines(part: Rows) -> str:
    """Examples as JSON lines, each with an id, so that reports name it by its place in the table."""
    rows = [
        {"id": name, **{key: value for key, value in row.items() if key != "id"}}
        for row, name in zip(part, ids_of(part))
    ]
    return "".join([json.dumps(row, ensure_ascii=False) + "\n" for row in rows])


def _config(
    shown: Sequence[str],
    target: str,
    clusters: str | None,
    parts: Sequence[str],
    model: str,
    base_url: str | None,
    seed: int,
) -> str:
    costs = base_url is None and bool(price(model, Usage(input_tokens=1)))
    user = f"{{{shown[0]}}}" if len(shown) == 1 else "\n".join([f"{name}: {{{name}}}" for name in shown])
    tables: dict[str, dict[str, Any]] = {
        "program": {"system_file": "prompt.txt", "user": user},
        "data": {**{name: f"{name}.jsonl" for name in parts}, "target": target, "clusters": clusters},
        "metric": {"name": "exact_match"},
        "models": {"forward": model, "base_url": base_url},
        "optimizer": {"name": "TGD", "max_edits": 4},
        "train": {"max_epochs": 3, "batch_size": 32},
        "budget": {"dollars": 2.0} if costs else {"calls": 5000},
    }
    notes = {
        "program": "# The user message: a column of the data fills each {slot}.",
        "metric": '# Or name = "judge" with instructions = "..."; or function = "metric:score" with purpose = "...".',
        "models": '# Critic and optimizer may be others: backward = "...", optimizer = "...".',
        "optimizer": '# Or name = "PatchSearch", which searches: more calls, several lanes at a time.',
        "budget": "# A run ends before it takes more; dollars, calls and tokens can be limited.",
    }
    lines = [f"seed = {seed}"]
    for name, values in tables.items():
        lines += ["", f"[{name}]", *([notes[name]] if name in notes else [])]
        lines += [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML has it; its strings are those of JSON, but for one character that it wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@contextlib.contextmanager
def _made(folder: Path, files: Mapping[str, str]) -> Iterator[None]:
    """Write the files, none of which is there, and take them away again where the block finds that they are no use.

    Raises:
        ConfigError: one is there, or they are no use.
        RunError: they cannot be written.
    """
    with contextlib.ExitStack() as undo:
        try:
            if folder.exists() and not folder.is_dir():
                raise ConfigError(f"{folder}: this is a file; name a new folder")
            if there := [name for name in (*files, *(f"{part}.jsonl" for part in PARTS)) if (folder / name).exists()]:
                raise ConfigError(f"{folder / there[0]} is there already and is not replaced; name a new folder")
            if not folder.exists():
                folder.mkdir(parents=True)
                undo.callback(folder.rmdir)
            for name, text in files.items():
                with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                    undo.callback((folder / name).unlink)
                    file.write(text)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise RunError(f"{folder} cannot be written: {reason}; name another folder") from None
        try:
            yield
        except (ConfigError, DataError) as error:
            raise ConfigError(f"{error} (so the folder would be no use, and was not made)") from None
        undo.pop_all()


def _why_no_folds(config: Config, program: Module, splits: Sequence[Dataset | None]) -> str:
    """Why so few examples cannot be trained with `--folds` either, as a sentence; "" where they can."""
    try:
        parts_for(config, program, splits, FOLDS)
    except ConfigError as error:
        return f"But {error}."
    return ""


def _are_long(table: Dataset, target: str) -> bool:
    lengths = sorted(len(str(row[target])) for row in table)
    return lengths[len(lengths) // 2] > LONG


def _told(folder: Path, data: Path, parts: Mapping[str, Rows], remarks: Sequence[str], *, long: bool) -> str:
    """What was made, what it can show, and what to do next."""
    made = f"{folder} has a config, a prompt, and the {plural(sum(map(len, parts.values())), 'example')} of {data}"
    folds = ""
    if len(parts) > 1:
        said = [f"{made}: {', '.join([f'{len(part)} in {name}' for name, part in parts.items()])}."]
    else:
        said = [f"{made}, uncut, as they are few: with --folds all of them test."]
        folds = f" --folds {FOLDS}"
    said += remarks
    if long:
        said.append("Exact match wants an answer to the letter, and these are long: see [metric] in config.toml.")
    place = typed(folder)
    steps = [
        (f"textgrad-engine eval {place}", "# how good the prompt is now"),
        (f"textgrad-engine estimate {place}{folds}", "# what it would cost"),
        (f"textgrad-engine train {place}{folds}", "# a better prompt, if there is one"),
    ]
    longest = max(len(line) for line, _ in steps)
    lines = [line for each in said for line in textwrap.wrap(each, min(width(), 80))]
    lines += ["", *textwrap.wrap("Look at prompt.txt and config.toml, then:", width()), ""]
    beside = [f"  {line:{longest}}  {what}" for line, what in steps]
    if max(map(len, beside)) > width():
        beside = [each for line, what in steps for each in (f"  {what}", f"  {line}")]
    return "\n".join([*lines, *beside])
