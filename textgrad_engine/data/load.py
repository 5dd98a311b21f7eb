"""Read a file of examples; whatever is wrong with it is said with the file, the line and the repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from textgrad_engine.checks import check
from textgrad_engine.data.csv_rows import csv_rows
from textgrad_engine.data.dataset import Dataset
from textgrad_engine.data.images import Detail, with_images
from textgrad_engine.data.json_rows import Row, json_rows, jsonl_rows
from textgrad_engine.data.paths import missing_file
from textgrad_engine.data.textfile import read_bytes
from textgrad_engine.errors import DataError
from textgrad_engine.keywords import names_told
from textgrad_engine.slots import composed
from textgrad_engine.user_paths import expanded


@names_told
def load(path: str | Path, *, images: Sequence[str] = (), detail: Detail | None = None) -> Dataset:
    r"""Read a dataset: ``.jsonl`` or ``.ndjson`` (one object per line), ``.json`` (a list of objects), or ``.csv`` or
    ``.tsv`` (with a header).

    Files are UTF-8, with or without a byte order mark. Blank lines are skipped. Every value of a CSV file is a string.
    A row with only empty fields is a blank line, and empty columns after the last name are ignored. If the header of a
    CSV file has no comma, or has one in a name, the columns may be separated by semicolons (as spreadsheets write them
    in many countries), tabs or bars; those of a TSV file are separated by tabs. Column names are normalized (Unicode's
    NFC), so that a slot that looks the same is the same.

    Args:
        path: the file.
        images: columns that name images: a file, relative to the folder of this one, or an ``https://`` address. The
            values become content parts, as `image_part` makes them; files are read at once and kept in memory.
        detail: how closely models are to look at these, see `image_part`.

    Raises:
        DataError: the file is missing, empty, of an unknown kind, or one of its rows cannot be used; or an image is
            missing, too large, or none that models take. The message names the file, the line and the repair.
        TypeError: `images` is one text.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "tiny.jsonl")
        ...     _ = file.write_text('{"text": "no signal"}\n\n{"text": "wrong bill"}\n')
        ...     dataset = load(file)
        >>> list(dataset), dataset.ids
        ([{'text': 'no signal'}, {'text': 'wrong bill'}], ('tiny:1', 'tiny:3'))
    """
    check(load, locals())
    if "://" in str(path):
        raise DataError(f"{path}: this is an address; download the file, and give its path")
    path = expanded(path)
    if not path.is_file():
        raise DataError(missing_file(path))
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(_unknown_ending(path))
    rows = list(reader(path, read_bytes(path)))
    if not rows:
        raise DataError(f"{path}: the file has no rows; write at least one example into it")
    if images:
        rows = with_images(rows, path, list(map(composed, images)), detail)
    return Dataset([row for row, _ in rows], path=path, lines=[line for _, line in rows])


def _unknown_ending(path: Path) -> str:
    ending = path.suffix.lower()
    jsonl = path.with_suffix(".jsonl").name
    by_pandas = f"pandas.read_parquet({path.name!r}).to_json({jsonl!r}, orient='records', lines=True)"
    repairs = {
        ".gz": "; unpack it first",
        ".zip": "; unpack it first",
        ".parquet": f"; {by_pandas} makes one",
        ".txt": "; where tabs stand between its columns, name it .tsv",
        **dict.fromkeys((".ods", ".xls", ".xlsb", ".xlsm", ".xlsx"), "; export it as .csv"),
    }
    what = f"the ending {path.suffix!r} is not known" if ending else "the file has no ending"
    return f"{path}: {what}; a dataset is .jsonl, .json or .csv{repairs.get(ending, '')}"


_READERS: dict[str, Callable[[Path, bytes], Iterator[Row]]] = {
    ".csv": csv_rows,
    ".json": json_rows,
    ".jsonl": jsonl_rows,
    ".ndjson": jsonl_rows,
    ".tsv": csv_rows,
}
