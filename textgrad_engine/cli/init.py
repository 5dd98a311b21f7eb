"""``textgrad-engine init``: from a table of examples to a folder that train takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.folds import parts_for
from textgrad_engine.cli.foresight import foreseen
from textgrad_engine.cli.init_answers import answers_of, in_one_column, objects_read
from textgrad_engine.cli.init_chats import answers_read, chats_in, chats_read
from textgrad_engine.cli.init_columns import check_named, check_values, shown_columns
from textgrad_engine.cli.init_files import TOOLS_FILE, Task, config_of, lines_of, made, parts_of, prompt_of
from textgrad_engine.cli.init_images import image_columns, looks_like_images
from textgrad_engine.cli.leaks import leaking, leaks_in_words
from textgrad_engine.cli.output import OK, checking, command, width, write
from textgrad_engine.cli.prompt_source import braces_in_words
from textgrad_engine.data import Dataset, load
from textgrad_engine.data.dataset import listed
from textgrad_engine.errors import ConfigError
from textgrad_engine.nn import Module
from textgrad_engine.report.printing import harmless, wrapped
from textgrad_engine.report.words import plural
from textgrad_engine.slots import composed
from textgrad_engine.store.files import typed

FOLDS = 5
"""So many are named to whoever has few examples."""


@command
def init(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder to make, or one that has none of these files yet.", show_default=False
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", help="A table of examples: .csv, .jsonl or .json.  [required]", show_default=False
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The column that holds the right answer: a text, or an object (in a CSV as JSON) whose fields are "
            "scored each by itself. Given several times, each column is a field of the answer. Default: target.",
            show_default=False,
        ),
    ] = None,
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
    notes: Annotated[
        str | None,
        typer.Option(
            "--notes",
            metavar="COLUMN",
            help="A column of what people noted, e.g. why an answer is the right one: for the critic, not the model.",
        ),
    ] = None,
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model.")] = "openai/gpt-5-mini",
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            metavar="URL",
            help="An OpenAI-compatible endpoint, e.g. http://localhost:11434/v1 for Ollama.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Seed of the parts, and of the config that is written.")
    ] = 0,
) -> None:
    """Make a folder that train takes, from a table of examples: a config, a prompt, and the table in three parts.

    The parts are drawn at random. Examples with equal inputs are in one part, and so are those of one cluster. A table
    of fewer than 100 examples stays whole, for train --folds. No model is asked, and no file is replaced.

    A column of chats, as in files for fine-tuning (messages with role and content), is shown as these messages. Where
    no column holds the right answer, it is the last one of each chat. Their system message is the prompt.
    """
    inputs = [composed(name) for name in inputs or ()]
    targets = [composed(name) for name in target or ["target"]]
    clusters = None if clusters is None else composed(clusters)
    notes = None if notes is None else composed(notes)
    with checking():
        if data is None:
            raise ConfigError(_no_data(folder, *context.args[:1]))
        if context.args:
            raise ConfigError(f"{typed(Path(context.args[0]))}: one folder is made, and the table is that of --data")
        table = answers_read(chats_read(load(data)), targets)
        if (chats := chats_in(table, targets, inputs, has_prompt=prompt is not None)) is not None:
            table, inputs = chats.table, inputs or [chats.column]
        check_named(table, data, targets, inputs, clusters, notes)
        table = objects_read(table, targets)
        answers = answers_of(table, targets, calls=chats is not None and chats.calls == "all")
        table, answers = in_one_column(table, answers, clusters)
        leaks = leaking(table, answers, (clusters, notes))
        shown = shown_columns(table, data, answers, inputs, (clusters, notes), leaks)
        images = image_columns(table, data.parent, shown)
        seen = table if chats is not None else load(data, images=images)
        check_values(seen, shown, clusters)
        task = Task(table, data, shown, images, answers, clusters, notes, seed, chats, prompt is None)
        parts = parts_of(task, seen)
        files = {"prompt.txt": prompt_of(task, prompt)}
        files |= {f"{name}.jsonl": lines_of(task, positions, folder) for name, positions in parts.items()}
        if task.tools:
            files[TOOLS_FILE] = json.dumps(task.tools, ensure_ascii=False, indent=2) + "\n"
        files["config.toml"] = config_of(task, list(parts), model, base_url)
        with made(folder, files):
            config = load_config(folder)
            splits, program = read_data(config), build.make_program(config)
            shows = foreseen(config, program, build.make_metric(config), splits[-1])
            folds = None
            if len(parts) == 1:
                folds, shows = _folds_of(config, program, splits)
    of_answers = () if task.is_judged else answers.remarks()
    remarks = [
        *leaks_in_words(leaks, shown),
        *_of_images(task),
        *_of_chats(task),
        *([] if prompt is None else braces_in_words(files["prompt.txt"], task.shown)),
        *([shows] if shows else []),
        *of_answers,
    ]
    write(harmless(_told(folder, data, {name: len(own) for name, own in parts.items()}, folds, remarks)))
    raise typer.Exit(OK)


def _no_data(folder: Path, second: str = "") -> str:
    """The message where no table is named, or only in the place of the folder or behind it."""
    table = typed(Path(second)) if second else "TABLE"
    made, table = (folder.with_suffix(""), typed(folder)) if folder.is_file() else (folder, table)
    wanted = f"textgrad-engine init {typed(made)} --data {table} --target COLUMN"
    return f"--data is missing: the table of examples, as in `{wanted}`"


def _of_images(task: Task) -> Sequence[str]:
    """What is said of columns with images, and of those that read as if they had some."""
    others = [name for name in task.shown if name not in task.images and looks_like_images(task.table, name)]
    return [
        *(f"The column {name!r} has images, which the model is shown: it has to read them." for name in task.images),
        *(
            f"The column {name!r} reads as if it named images, and no such file is there, seen from "
            f"{task.data.parent}: it is shown as text."
            for name in others
        ),
    ]


def _of_chats(task: Task) -> Sequence[str]:
    """What was made of chats."""
    if (chats := task.chats) is None:
        return []
    said = [f"The column {chats.column!r} has chats, of which the model is shown the messages."]
    if chats.answers:
        judged = ", by which a judge scores: see [metric] in config.toml" if task.is_judged else ""
        said.append(f"The last answer of each is the right one{judged}.")
    if chats.calls == "all":
        said.append(f"It calls tools, which {TOOLS_FILE} describes, and is right where its calls are (json_match).")
    elif chats.calls:
        said.append(f"Some of these call tools, which {TOOLS_FILE} describes; the judge is shown such calls as JSON.")
    elif chats.tools:
        said.append(f"The model is given the tools that the chats call, which {TOOLS_FILE} describes; nothing is run.")
    if chats.prompt is not None and task.is_plain:
        said.append("Their system message is the prompt.")
    aside = (*task.shown, *task.answers.columns, task.clusters, task.notes, "id")
    if others := [name for name in task.table.columns if name not in aside]:
        said.append(f"Not shown: {listed(others)}, as a chat stands for whole messages.")
    return [" ".join(said)]


def _folds_of(config: Config, program: Module, splits: Sequence[Dataset | None]) -> tuple[int, str]:
    """How many folds so few examples can be dealt to, 0 where to none; and why to no more, as a sentence."""
    why = ""
    for folds in range(FOLDS, 1, -1):
        try:
            parts_for(config, program, splits, folds)
        except ConfigError as error:
            why = why or f"But {error}."
        else:
            return folds, why
    return 0, why


def _told(folder: Path, data: Path, parts: Mapping[str, int], folds: int | None, remarks: Sequence[str]) -> str:
    """What was made, what it can show, and what to do next.

    Args:
        folder: was made.
        data: the table.
        parts: how many of its examples are in which.
        folds: how many a table that is not cut can be dealt to; None for one that is.
        remarks: on both.
    """
    made = f"{folder} has a config, a prompt, and the {plural(sum(parts.values()), 'example')} of {data}"
    if folds is None:
        said = [f"{made}: {', '.join([f'{number} in {name}' for name, number in parts.items()])}."]
    else:
        said = [f"{made}, uncut, as they are few: --folds tests all of them in turn."]
    said += remarks
    dealt = f" --folds {folds}" if folds else ""
    place = typed(folder)
    steps = [(f"textgrad-engine eval {place}", "# how good the prompt is now")]
    if folds != 0:  # else nothing is left to train on
        steps += [
            (f"textgrad-engine estimate {place}{dealt}", "# what it would cost"),
            (f"textgrad-engine train {place}{dealt}", "# a better prompt, if there is one"),
        ]
    longest = max(len(line) for line, _ in steps)
    lines = [line for each in said for line in wrapped(each, min(width(), 80))]
    lines += ["", *wrapped("Look at prompt.txt and config.toml, then:", width()), ""]
    beside = [f"  {line:{longest}}  {what}" for line, what in steps]
    if max(map(len, beside)) > width():
        beside = [each for line, what in steps for each in (f"  {what}", f"  {line}")]
    return "\n".join([*lines, *beside])
