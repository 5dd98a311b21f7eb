"""Images of examples: a file or an address becomes the content part that a model is sent."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from textgrad_engine.checks import check
from textgrad_engine.data.names import suggest
from textgrad_engine.data.paths import missing_file
from textgrad_engine.errors import DataError
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.images import is_image, part_problem
from textgrad_engine.user_paths import expanded

MAX_IMAGE = 20_000_000
"""Bytes of an image file at most: what most endpoints take."""

Detail = Literal["auto", "low", "high"]
"""How closely a model looks at an image, as in OpenAI's API: "low" is cheaper, and blind to what is small."""

_KINDS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
_OTHERS = (
    (re.compile(rb"BM"), "a BMP image"),
    (re.compile(rb"II\*\0|MM\0\*"), "a TIFF image"),
    (re.compile(rb"....ftyp(?:heic|heix|mif1|msf1|avif)", re.DOTALL), "a HEIC or AVIF image"),
    (re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<svg", re.DOTALL), "an SVG drawing"),
    (re.compile(rb"%PDF"), "a PDF document"),
    (re.compile(rb"version https://git-lfs"), "a pointer of Git LFS, whose file is not here (git lfs pull)"),
    (re.compile(rb"\s*<(?:!doctype )?html", re.IGNORECASE), "a web page"),
)
_ELSE = ("no image", "a web page", "a pointer of Git LFS, whose file is not here (git lfs pull)")
"""What can be made no image of."""

_ADDRESS = re.compile(r"(?i)https?://\S+|data:image/[\w.+-]+;base64,[A-Za-z0-9+/=_-]+|(?:gs|s3)://\S+")
_NO_PATH = re.compile(r"(?i)\s*(?:[a-z][a-z0-9+.-]+://|data:\w+/)")
"""What is meant for an address, or for a data URL, whether models take it or not."""


@names_told
def image_part(source: str | os.PathLike[str] | bytes, detail: Detail | None = None) -> dict[str, Any]:
    """The content part of an image, for a message, a slot, or a judge's inputs.

    A file is read at once and sent along with each call, in base64; an address is sent as it is, and the endpoint gets
    the image from there, if it can.

    Args:
        source: a PNG, JPEG, GIF or WebP file, or its bytes; or an ``https://`` address; or a data URL.
        detail: how closely the model is to look; None leaves that to the endpoint.

    Raises:
        DataError: there is no such file, it is none of these kinds, or larger than `MAX_IMAGE` bytes; or the address is
            none that models take. The message names the file and the repair.

    Example:
        >>> image_part("https://example.org/cat.png", detail="low")
        {'type': 'image_url', 'image_url': {'url': 'https://example.org/cat.png', 'detail': 'low'}}
    """
    check(image_part, locals())
    if isinstance(source, bytes):
        url = _data_url(source, "the bytes")
    elif isinstance(source, str) and _ADDRESS.fullmatch(source):
        url = source
    elif isinstance(source, str) and _NO_PATH.match(source):
        raise DataError(_no_address(source))
    else:
        url = _data_url(_read(expanded(source)), str(source))
    return {"type": "image_url", "image_url": {"url": url} if detail is None else {"url": url, "detail": detail}}


def _read(path: Path) -> bytes:
    try:
        found = path.is_file()
        size = path.stat().st_size if found else 0
        if found and size <= MAX_IMAGE:
            return path.read_bytes()
        problem = _too_large(str(path), size) if found else missing_file(path)
    except (OSError, ValueError) as error:  # a name with a NUL in it, too
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{str(path)[:200]!r}: the image cannot be read: {why}; check the path") from None
    raise DataError(problem)


def _no_address(source: str) -> str:
    shown = f"{source[:60]!r}{'…' if len(source) > 60 else ''}"
    if re.search(r"\s", source):
        return f"{shown}: an address with white space in it; take it out, or write %20 for a space"
    return (
        f"{shown}: models take https:// addresses, and data URLs of images in base64 alone; have the image in a file, "
        "and name its path"
    )


def _too_large(name: str, size: int) -> str:
    return (
        f"{name}: the image has {size / 1e6:,.0f} MB, and endpoints take {MAX_IMAGE / 1e6:.0f} MB at most; make it "
        "smaller (most models see no more than 2,048 pixels a side), or name its https:// address"
    )


def _data_url(content: bytes, name: str) -> str:
    """The data URL of an image.

    Args:
        content: its bytes.
        name: what it is called in errors.
    """
    if len(content) > MAX_IMAGE:
        raise DataError(_too_large(name, len(content)))
    for pattern, kind in _KINDS:
        if pattern.match(content):
            return f"data:{kind};base64,{base64.b64encode(content).decode()}"
    if not content:
        raise DataError(f"{name}: the image is empty; copy the file anew, or take the row out")
    what = next((words for pattern, words in _OTHERS if pattern.match(content[:1000])), "no image")
    repair = "convert it" if what not in _ELSE else "name another file, or take the row out"
    raise DataError(f"{name}: this is {what}, and models take PNG, JPEG, GIF and WebP; {repair}")


def outside(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """The images that a file names and that are not in its folder, each once, as they are written there.

    Whoever wrote a table may name any image of who reads it, also by a link beside the table, and it goes to a model.

    Args:
        path: the file.
        rows: its rows, as they are written.
        columns: which columns name images.
    """
    named = dict.fromkeys(row[name] for row in rows for name in columns if isinstance(row.get(name), str))
    folder = path.parent.resolve()
    return [each for each in named if not _NO_PATH.match(each) and not (folder / each).resolve().is_relative_to(folder)]


def with_images(
    rows: list[tuple[dict[str, Any], int]], path: Path, columns: Sequence[str], detail: Detail | None
) -> list[tuple[dict[str, Any], int]]:
    """The rows of a file with images in the columns that name them.

    Args:
        rows: each with its line.
        path: the file; paths in it count from its folder.
        columns: which columns name images.
        detail: as for `image_part`, for those that do not say it themselves.

    Raises:
        DataError: there is no such column, or an image is not to be had; the message names file, line and column.
    """
    known = {name for row, _ in rows for name in row}
    if missing := [name for name in columns if name not in known]:
        raise DataError(
            f"{path}: there is no column {missing[0]!r} in any row, which is to name images; the columns are "
            f"{', '.join(map(repr, sorted(known)))}{suggest(missing[0], sorted(known))}"
        )
    made: dict[str, dict[str, Any]] = {}
    return [({**row, **_images_of(row, line, path, columns, detail, made)}, line) for row, line in rows]


def _images_of(
    row: dict[str, Any],
    line: int,
    path: Path,
    columns: Sequence[str],
    detail: Detail | None,
    made: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    found = {}
    for column in columns:
        value = row.get(column)
        if value is None:
            continue
        where = f"{path}:{line}: column {column!r}: "
        if is_image(value):
            if problem := part_problem(value):
                raise DataError(f"{where}{problem}")
            found[column] = value
            continue
        if not isinstance(value, str) or not value.strip():
            what = "empty" if isinstance(value, str) else f"{type(value).__name__} {value!r:.60}"
            raise DataError(
                f"{where}it is {what}, and is to name an image: write a path, seen from {path.parent}, or an https:// "
                "address"
            )
        if value not in made:
            source = value if _NO_PATH.match(value) else path.parent / value
            try:
                made[value] = image_part(source, detail)  # one image of many questions is held once
            except DataError as error:
                raise DataError(f"{where}{error}") from None
        found[column] = made[value]
    return found
