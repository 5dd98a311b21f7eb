"""The files of a folder that ``textgrad-engine init`` makes: config, prompt, and the examples in parts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textgrad_engine import templates
from textgrad_engine.cli.init_answers import Answers
from textgrad_engine.cli.init_images import moved
from textgrad_engine.cli.init_task import Task
from textgrad_engine.cli.prompt_source import check_no_source
from textgrad_engine.data.dataset import Subset, ids_of
from textgrad_engine.data.paths import missing_file
from textgrad_engine.data.sized_split import split_evenly
from textgrad_engine.data.split import members_of
from textgrad_engine.data.textfile import read_text
from textgrad_engine.errors import ConfigError, DataError, RunError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.prices import price
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.toml import toml_key, toml_value
from textgrad_engine.slots import slots_of

ENOUGH = 100
"""Fewer examples than this are not cut into three parts: `train --folds` tests all of them (`docs/search.md`)."""

PARTS = {"train": 0.3, "val": 0.3, "test": 0.4}
"""How the others are cut: what can be shown depends on the number of test examples."""

OFF = 0.1
"""Parts whose sizes are off by more than this share of the usual ones are told of."""

TOOLS_FILE = "tools.json"


def prompt_of(task: Task, given: Path | None) -> str:
    """The prompt to begin with.

    Args:
        task: what it is for.
        given: the file of one that the user has.

    Raises:
        ConfigError: the file is not there.
        RunError: it is source that holds a prompt.
    """
    if given is not None:
        if not given.is_file():
            raise ConfigError(f"--prompt {given}: {missing_file(given)}")
        text = read_text(given)
        check_no_source(given, text)
        return text
    if task.chats is not None and task.chats.prompt is not None:
        return f"{task.chats.prompt.rstrip()}\n"
    answers = task.answers
    fields = [
        {"name": each.name, "labels": (each.parts or each).labels, "several": each.parts is not None}
        for each in answers.each
        if not slots_of(each.name)
    ]
    labels = [] if answers.fields else answers.each[0].labels
    rendered = templates.load("first_prompt").render(
        inputs=list(task.shown),
        target="" if answers.each[0].are_criteria or answers.each[0].final else answers.each[0].name,
        labels=labels,
        fields=fields if answers.fields and len(fields) == len(answers.each) else [],
        is_json=answers.fields,
        is_chat=task.chats is not None,
        final="" if answers.fields or answers.each[0].final is None else answers.each[0].final.words,
    )
    return f"{rendered}\n"


def parts_of(task: Task) -> dict[str, tuple[int, ...]]:
    """The positions of the examples of each file.

    Raises:
        ConfigError: nearly all of them belong together.
    """
    seen = task.seen  # images that are equal are one, whatever their files are called
    if len(seen) < ENOUGH:
        return {"train": tuple(range(len(seen)))}
    try:
        found = split_evenly(
            Subset(seen, range(len(seen))),
            list(PARTS.values()),
            task.seed,
            clusters=task.clusters,
            together=task.shown,
        )
    except ValueError:
        raise ConfigError(
            f"{task.data}: {_together(task)}, and of the {len(seen)} that there are "
            f"nearly all do, so they cannot be cut into {len(PARTS)}; add others, or name other columns by --input"
            f"{', or another by --clusters' if task.clusters else ''}"
        ) from None
    return {name: part.indices for name, part in zip(PARTS, found)}


def _together(task: Task) -> str:
    equal = f"{' and '.join(task.shown)}{f' or of one {task.clusters}' if task.clusters else ''}"
    return f"examples with the same {equal} stay in one part"


def uneven(task: Task, parts: Mapping[str, Sequence[int]]) -> str:
    """That the parts are not of the usual sizes, and why, in a sentence; "" where they are, or nothing is cut."""
    whole = sum(map(len, parts.values()))
    if len(parts) < len(PARTS):
        return ""
    usual = {name: round(share * whole) for name, share in PARTS.items()}
    if all(abs(len(parts[name]) - size) <= max(OFF * size, 1) for name, size in usual.items()):
        return ""
    most = max(map(len, members_of(Subset(task.seen, range(len(task.seen))), task.clusters, task.shown)))
    sizes = " and ".join([", ".join([str(size) for size in list(usual.values())[:-1]]), str(usual["test"])])
    return f"{_together(task)[0].upper()}{_together(task)[1:]}, and up to {most} do, so the parts are not {sizes}."


def lines_of(task: Task, positions: Sequence[int], folder: Path) -> str:
    """Examples as JSON lines, each with an id, so that reports name it by its place in the table.

    Args:
        task: has the examples.
        positions: which of them.
        folder: where they will be; paths of images are seen from there.
    """
    names = ids_of(task.table)
    lines = []
    for position in positions:
        row = moved(task.table[position], task.images, task.data.parent, folder)
        kept = {"id": names[position], **{key: value for key, value in row.items() if key != "id"}}
        lines.append(json.dumps(kept, ensure_ascii=False) + "\n")
    return "".join(lines)


def config_of(task: Task, parts: Sequence[str], model: str, base_url: str | None) -> str:
    """The config, with a word on what else could stand in it.

    Args:
        task: what it is about.
        parts: the files of examples, without their endings.
        model: the model.
        base_url: its endpoint, if it is not the usual one.
    """
    costs = base_url is None and bool(price(model, Usage(input_tokens=1)))
    shown, answers = task.shown, task.answers
    user = f"{{{shown[0]}}}" if len(shown) == 1 else "\n".join([f"{name}: {{{name}}}" for name in shown])
    data = {name: f"{name}.jsonl" for name in parts}
    return "\n".join(
        [
            f"seed = {task.seed}",
            *_table(
                "program",
                _USER if task.chats is None else f"{_CHAT}\n{_CALLS}" if task.chats.calls == "all" else _CHAT,
                {"system_file": "prompt.txt", "user": user, "tools": TOOLS_FILE if task.tools else None},
            ),
            *(_form(answers.schema) if answers.fields else ()),
            *_table(
                "data",
                _IMAGES if task.images else "",
                {
                    **data,
                    "target": None if answers.of_columns else answers.columns[0],
                    "notes": task.notes,
                    "clusters": task.clusters,
                    "images": list(task.images) or None,
                },
            ),
            *(_judged(task) if task.is_judged else _metrics(answers)),
            *_table("models", _MODELS, {"forward": model, "base_url": base_url}),
            *_table("optimizer", _OPTIMIZER, {"name": "TGD", "max_edits": 12, "momentum": 4}),
            *_table("train", "", {"max_epochs": 3, "batch_size": 32}),
            *_table("budget", _BUDGET, {"dollars": 2.0} if costs else {"calls": 5000}),
            "",
        ]
    )


_USER = "# What is trained is in prompt.txt. In user, a column of the data fills each {slot}."
_CHAT = "# What is trained is in prompt.txt. Behind it come the messages of a chat, which fill the slot in user."
_CALLS = (
    "# tools: what the model may call. Its answer is the list of its calls, which the metric compares as JSON;\n"
    "# graded = true there counts the part of them that is right."
)
_FORM = "# The form of the answers, as a JSON schema."
_IMAGES = "# images: columns with the paths or addresses of images."
_ONE = '# Or name = "judge" with instructions = "..."; or function = "metric:score" with purpose = "...".'
_EACH = (
    "# The score is the mean of the metrics; weight = 2 counts one twice. In the place of an exact match there may be"
)
_JUDGED = "# How the judge is to score; it is shown the chat, the right answer (data.target) and the model's."
_ELSE = '# name = "judge" with instructions = "...", or function = "metric:score" with purpose = "...".'
_MODELS = '# Critic and optimizer, if others: backward = "...", optimizer = "..."; elsewhere: [models.endpoints."..."].'
_OPTIMIZER = '# Or name = "PatchSearch", several patches at a time; then leave out the rest here and all in [train].'
_BUDGET = "# A run ends before it takes more; dollars, calls and tokens can be limited."


def _table(name: str, note: str, values: Mapping[str, Any], brackets: str = "[]") -> Iterator[str]:
    yield ""
    yield f"{brackets[: len(brackets) // 2]}{name}{brackets[len(brackets) // 2 :]}"
    yield from [note] if note else []
    yield from (f"{toml_key(key)} = {toml_value(value)}" for key, value in values.items() if value is not None)


def _form(schema: Mapping[str, Any]) -> Iterator[str]:
    rest = {key: value for key, value in schema.items() if key != "properties"}
    yield from _table("program.response_format", _FORM, rest)
    yield from _table("program.response_format.properties", "", schema["properties"])


def _judged(task: Task) -> Iterator[str]:
    criteria = templates.load("first_criteria").render(calls=bool(task.tools))
    yield from _table("metric", _JUDGED, {"name": "judge", "instructions": criteria})


def _metrics(answers: Answers) -> Iterator[str]:
    if not answers.fields:
        yield from _table("metric", _ONE, answers.each[0].metric)
        return
    if len(answers.each) == 1:
        yield from _table("metric", _ONE, {**answers.each[0].metric, "field": answers.each[0].name})
        return
    for number, each in enumerate(answers.each):
        note = "" if number else f"{_EACH}\n{_ELSE}"
        target = each.column if answers.of_columns else None
        yield from _table("metric", note, {**each.metric, "field": each.name, "target": target}, "[[]]")


@contextlib.contextmanager
def made(folder: Path, files: Mapping[str, str]) -> Iterator[None]:
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
            reason = reason_of(error)
            raise RunError(f"{folder} cannot be written: {reason}; name another folder") from None
        try:
            yield
        except (ConfigError, DataError) as error:
            raise ConfigError(f"{error} (so the folder would be no use, and was not made)") from None
        undo.pop_all()
