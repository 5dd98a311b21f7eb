"""What ``textgrad-engine init`` says of the folder that it has made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from textgrad_engine.cli.init_files import TOOLS_FILE
from textgrad_engine.cli.init_images import looks_like_images
from textgrad_engine.cli.init_labels import at_odds_in_words, labels_in_words, names_in_words
from textgrad_engine.cli.init_task import Task
from textgrad_engine.cli.leaks import leaks_in_words
from textgrad_engine.cli.output import width
from textgrad_engine.cli.prompt_source import braces_in_words
from textgrad_engine.data.names import listed
from textgrad_engine.report.printing import columns_of, wrapped
from textgrad_engine.report.words import count, plural
from textgrad_engine.store.files import typed


def remarks_on(task: Task, prompt: str) -> list[str]:
    """What was made of columns, chats, answers and the user's own prompt that nobody may have expected.

    Args:
        task: what the folder is made of.
        prompt: the user's own; "" for a plain one.
    """
    return [
        *leaks_in_words(task.leaks, task.shown),
        *_of_nothing(task),
        *_of_images(task),
        *_of_chats(task),
        *braces_in_words(prompt, task.shown),
        *names_in_words(task),
        *labels_in_words(task),
        *at_odds_in_words(task),
    ]


def _of_nothing(task: Task) -> Sequence[str]:
    """What is said of rows whose columns to be shown are all empty."""
    empty = sum(all(isinstance(row[name], str) and not row[name].strip() for name in task.shown) for row in task.seen)
    if not empty:
        return []
    shown = f"{' and '.join(task.shown)} {'is' if len(task.shown) == 1 else 'are'} empty"
    it = "it" if empty == 1 else "them"
    return [
        f"In {plural(empty, 'row')} {shown}, so the model is shown nothing: write what is missing, or take {it} out."
    ]


def _of_images(task: Task) -> Sequence[str]:
    """What is said of columns with images, and of those that read as if they had some."""
    others = [name for name in task.shown if name not in task.images and looks_like_images(task.table, name)]
    return [
        *(f"The column {name!r} has images, which the model is shown: it has to read them." for name in task.images),
        *(
            f"The column {name!r} looks like paths of images, but no such file is there, seen from "
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


def in_words(folder: Path, data: Path, parts: Mapping[str, int], folds: int | None, remarks: Sequence[str]) -> str:
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
        said = [f"{made}: {', '.join([f'{count(number)} in {name}' for name, number in parts.items()])}."]
    else:
        said = [f"{made}, uncut, as they are few{': --folds tests all of them in turn' if folds else ''}."]
    said += remarks
    dealt = f" --folds {folds}" if folds else ""
    place = typed(folder)
    steps = [(f"textgrad-engine eval {place}", "# how good the prompt is now")]
    if folds != 0:  # else nothing is left to train on
        steps += [
            (f"textgrad-engine estimate {place}{dealt}", "# what it would cost"),
            (f"textgrad-engine train {place}{dealt}", "# a better prompt, if there is one"),
        ]
    longest = max(columns_of(line) for line, _ in steps)
    lines = [line for each in said for line in wrapped(each, min(width(), 80))]
    lines += ["", *wrapped("Look at prompt.txt and config.toml, then:", width()), ""]
    beside = [f"  {line}{' ' * (longest - columns_of(line))}  {what}" for line, what in steps]
    if max(map(columns_of, beside)) > width():
        beside = [each for line, what in steps for each in (f"  {what}", f"  {line}")]
    return "\n".join([*lines, *beside])
