"""Columns of a table that name images, for ``textgrad-engine init``: paths, addresses and data URLs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from textgrad_engine.data import Dataset

_ENDING = re.compile(r"(?i)\.(?:png|jpe?g|gif|webp)")
_ADDRESS = re.compile(r"(?i)https?://\S+")
_DATA_URL = re.compile(r"(?i)data:image/")


def image_columns(table: Dataset, folder: Path, columns: Sequence[str]) -> tuple[str, ...]:
    """Those of some columns that hold an image in every row: one that is there, an address of one, or a data URL.

    Args:
        table: the table.
        folder: that its paths count from.
        columns: which may be.
    """
    return tuple(
        name
        for name in columns
        if looks_like_images(table, name) and any(_is_there(row[name], folder) for row in table)
    )


def looks_like_images(table: Dataset, column: str) -> bool:
    """Whether every value of a column reads as if it named an image."""
    return all(isinstance(row.get(column), str) and _names_one(row[column]) for row in table)


def _names_one(value: str) -> bool:
    """Whether a text reads as if it named an image.

    Example:
        >>> [_names_one(text) for text in ("signs/a.PNG", "https://x.org/a.jpg?w=1", "data:image/png;base64,AA", "a")]
        [True, True, True, False]
    """
    if _ADDRESS.fullmatch(value):
        return bool(_ENDING.fullmatch(Path(urlsplit(value).path).suffix))
    return bool(_DATA_URL.match(value)) or bool("\n" not in value and _ENDING.fullmatch(Path(value).suffix))


def _is_there(value: str, folder: Path) -> bool:
    return not _is_path(value) or (folder / value).is_file()


def _is_path(value: str) -> bool:
    return not (_ADDRESS.fullmatch(value) or _DATA_URL.match(value))


def moved(row: Mapping[str, Any], columns: Sequence[str], before: Path, after: Path) -> dict[str, Any]:
    """A row whose paths of images count from another folder.

    Args:
        row: the row.
        columns: that name images.
        before: the folder that they count from now.
        after: the other one.
    """
    return {
        name: _from(value, before, after) if name in columns and isinstance(value, str) and _is_path(value) else value
        for name, value in row.items()
    }


def _from(value: str, before: Path, after: Path) -> str:
    if Path(value).is_absolute():
        return value
    file = os.path.abspath(before / value)
    try:
        return Path(os.path.relpath(file, os.path.abspath(after))).as_posix()
    except ValueError:  # on another drive of Windows
        return Path(file).as_posix()
