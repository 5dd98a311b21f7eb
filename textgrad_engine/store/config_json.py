"""``config.json`` of a run folder, read: what the command line wrote there, or whatever Python keeps in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.kinds import Kind, kind_of
from textgrad_engine.store.files import read_object
from textgrad_engine.store.records import FORMAT, use_that_version
from textgrad_engine.wording import told


def config_of(path: Path) -> dict[str, Any] | None:
    """What is in such a file; None where there is none.

    Raises:
        RunError: it cannot be read, was damaged, or another version wrote it.
    """
    body = read_object(path)
    if body is not None and body.get("format") != FORMAT:
        raise RunError(
            f"{path}: has format {body.get('format')!r}, and this version of textgrad_engine reads {FORMAT}; "
            f"{use_that_version(body)}"
        )
    if body is not None and (wrong := _damaged(body)):
        raise RunError(f"{path}: was damaged{wrong}; restore it")
    return body


ROW_DIGITS_BEFORE = 12
"""So many digits the digest of a row has in a ``config.json`` of before: the first of the sixteen that it has now."""

_HELD: dict[str, Any] = {
    **dict.fromkeys(("name", "version", "folder"), str),
    **dict.fromkeys(("ends_line", "feedback", "controls", "cache"), bool),
    "looks_before": int,
}
"""What a ``config.json`` of the command line holds beside tables."""


def is_of_command(body: Mapping[str, Any]) -> bool:
    """Whether a command wrote a ``config.json``, by what each of them holds."""
    return {"config", "folder"} <= body.keys()


def _damaged(body: Mapping[str, Any]) -> str:
    """What in a ``config.json`` of a command is of another kind than is written there; "" where nothing is.

    What Python keeps there is its own. The config in it is looked at by who makes one of it.
    """
    if not is_of_command(body):
        return ""
    if not isinstance(body["config"], dict):
        return ", as it holds no config"
    held = [(name, body[name], kind_of(annotation)) for name, annotation in _HELD.items() if name in body]
    for name in ("digests", "rows", "files"):
        table = body.get(name, {})
        held.append((name, table, _TABLE))
        if isinstance(table, dict):
            held += [(f"{name}.{key}", value, kind_of(str)) for key, value in table.items()]
    for name, value, kind in held:
        if kind is not None and not kind.takes(value):
            return f": {name} is {told(value)}, and should be {kind.words[0]}"
    return ""


_TABLE = Kind(("a table", "tables"), lambda value: isinstance(value, dict))
