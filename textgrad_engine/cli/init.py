"""``textgrad-engine init``: from a table of examples to a folder that train takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.folds import parts_for
from textgrad_engine.cli.foresight import foreseen
from textgrad_engine.cli.init_files import TOOLS_FILE, config_of, lines_of, made, parts_of, prompt_of, uneven
from textgrad_engine.cli.init_task import task_of
from textgrad_engine.cli.init_words import in_words, remarks_on
from textgrad_engine.cli.output import OK, checking, command, write
from textgrad_engine.data import Dataset
from textgrad_engine.errors import ConfigError
from textgrad_engine.nn import Module
from textgrad_engine.report.printing import harmless
from textgrad_engine.store.files import typed

FOLDS = 5
"""So many are named to whoever has few examples."""


@command
def init(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder to make, or one without any of these files.", show_default=False
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
            help="The column with the right answer: a text, or an object (JSON in a CSV) whose fields are scored one"
            " by one. Given several times, each column is a field of the answer. Default: target.",
            show_default=False,
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="COLUMN",
            help="A column that the model is shown; may be given several times. Default: all columns except id and "
            "those with the answer.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            "--prompt",
            metavar="FILE",
            help="A text file with the prompt to begin with. Default: a plain prompt.",
            show_default=False,
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            metavar="COLUMN",
            help="A column that says which examples belong together (clusters), e.g. the document that they are about.",
            show_default=False,
        ),
    ] = None,
    notes: Annotated[
        str | None,
        typer.Option(
            "--notes",
            metavar="COLUMN",
            help="A column with people's notes, e.g. why an answer is right. The critic sees it, the model does not.",
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
        int, typer.Option("--seed", metavar="N", help="Seed of the random split, also written into the config.")
    ] = 0,
) -> None:
    """Make a folder for train from a table of examples: a config, a prompt, and the table split into three parts.

    The split is random, but examples with equal inputs, or of one cluster, stay in one part. A table of fewer than 100
    examples stays whole, for train --folds. No model is asked, and no file is replaced.

    A column of chats, as in files for fine-tuning (messages with role and content), is shown as these messages. If no
    column holds the right answer, it is the last message of each chat. The system message is the prompt.
    """
    with checking():
        if data is None:
            raise ConfigError(_no_data(folder, *context.args[:1]))
        if context.args:
            raise ConfigError(f"{typed(Path(context.args[0]))}: one folder is made, and the table is that of --data")
        task = task_of(
            data,
            target or ["target"],
            inputs or (),
            clusters=clusters,
            notes=notes,
            seed=seed,
            has_prompt=prompt is not None,
        )
        parts = parts_of(task)
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
    remarks = [
        *([off] if (off := uneven(task, parts)) else []),
        *remarks_on(task, "" if prompt is None else files["prompt.txt"]),
        *([shows] if shows else []),
    ]
    remarks += () if task.is_judged else task.answers.remarks()
    write(harmless(in_words(folder, data, {name: len(own) for name, own in parts.items()}, folds, remarks)))
    raise typer.Exit(OK)


def _no_data(folder: Path, second: str = "") -> str:
    """The message where no table is named, or only in the place of the folder or behind it."""
    table = typed(Path(second)) if second else "TABLE"
    made, table = (folder.with_suffix(""), typed(folder)) if folder.is_file() else (folder, table)
    wanted = f"textgrad-engine init {typed(made)} --data {table} --target COLUMN"
    return f"--data is missing: the table of examples, as in `{wanted}`"


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
