"""The rows of tables: ``.csv``, between whatever marks spreadsheets put columns, and ``.tsv``."""

from __future__ import annotations

import csv
import io
import itertools
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from textgrad_engine.data.json_rows import Row
from textgrad_engine.errors import DataError
from textgrad_engine.slots import composed

_limit = threading.Lock()
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_MOST_OF_A_HEADER = 100


def csv_rows(path: Path, raw: bytes) -> Iterator[Row]:
    """The rows of a table with a header.

    Raises:
        DataError: it has none, or a row does not fit it.
    """
    first, between = _first_row(raw)
    between = "\t" if path.suffix.lower() == ".tsv" else between
    text = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline="")
    for _ in range(first):
        text.readline()
    reader = csv.reader(text, strict=True, delimiter=between)
    header: list[str] | None = None
    line = first + 1
    try:
        for fields in _with_long_fields(reader, len(raw)):
            if not any(fields):  # a blank line, or the ",,," that spreadsheets leave below a table
                line = first + reader.line_num + 1
                continue
            if header is None:
                header = _header(path, line, fields)
            elif len(fields) != len(header):
                mark, quoted = _SEPARATORS[between], 'in double quotes (" as "")'
                repair = (
                    f"put fields that hold a {mark} or a line break {quoted}"
                    if len(fields) > len(header)
                    else f"write a {mark} for each that is empty, and put fields that hold a line break {quoted}"
                )
                raise DataError(
                    f"{path}:{line}: the row has {len(fields)} {'field' if len(fields) == 1 else 'fields'}, the header "
                    f"has {len(header)}; {repair}"
                )
            else:
                yield dict(zip(header, fields)), line
            line = first + reader.line_num + 1
    except csv.Error as error:
        hint = 'inside of a quoted field, write " as ""'
        raise DataError(f"{path}:{line}: not CSV: {error}; {hint}") from error


def _with_long_fields(rows: Iterator[list[str]], most: int) -> Iterator[list[str]]:
    """The rows of a table in which a field, such as a contract, may have more than the 131,072 characters of `csv`.

    Its limit is the whole process's, so it is raised for one table after the other, and only while a row is read.
    """
    while True:
        with _limit:
            before = csv.field_size_limit()
            csv.field_size_limit(max(before, most))
            try:
                fields = next(rows, None)
            finally:
                csv.field_size_limit(before)
        if fields is None:
            return
        yield fields


def _first_row(raw: bytes) -> tuple[int, str]:
    """How many lines come before the header, and what stands between columns.

    Spreadsheets write semicolons where a comma stands in numbers, and some a line "sep=;" before the header. What is
    in the header outside of quotes tells; a name that has a semicolon in it stands in quotes.
    """
    lines = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline="")
    for number, ended in enumerate(lines):
        line = ended.strip("\r\n")
        if (said := re.fullmatch(r'"?sep=(.)"?', line)) and said[1] in _SEPARATORS:
            return number + 1, said[1]
        if line.strip():
            for more in itertools.islice(lines, _MOST_OF_A_HEADER):
                if line.count('"') % 2 == 0:
                    break
                line += more  # a name may be written on several lines
            bare = re.sub(r'"(?:[^"]|"")*"?', "", line).strip()
            return 0, next((mark for mark in _SEPARATORS if mark in bare), ",")
    return 0, ","


def _header(path: Path, line: int, fields: list[str]) -> list[str]:
    names = [composed(field.strip()) for field in fields]
    places: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if not name:
            raise DataError(f"{path}:{line}: column {position} of the header has no name; name it, or take it out")
        if (first := places.setdefault(name, position)) != position:
            raise DataError(
                f"{path}:{line}: the header names {name!r} twice, as columns {first} and {position}; rename one"
            )
    return names
