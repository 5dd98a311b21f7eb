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
_LOOKED_AT = 20
"""So many rows tell what separates columns where the header has several of the marks."""


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
    width, named = 0, list[str]()
    line = first + 1
    try:
        for fields in _with_long_fields(reader, len(raw)):
            if not any(fields):  # a blank line, or the ",,," that spreadsheets leave below a table
                line = first + reader.line_num + 1
                continue
            if header is None:
                header, width, named = _header(path, line, fields), len(fields), _names_in(fields)
            elif len(named) > 1 and _bare(fields[0]) == named[0] and _names_in(fields) == named:
                raise DataError(
                    f"{path}:{line}: the header stands here once more, as where tables were put together; take the "
                    "line out"
                )
            else:
                _check_fits(path, line, fields, header, width, between)
                yield dict(zip(header, fields)), line
            line = first + reader.line_num + 1
    except csv.Error as error:
        hint = 'inside of a quoted field, write " as ""'
        raise DataError(f"{path}:{line}: not CSV: {error}; {hint}") from error


def _bare(field: str) -> str:
    """A name without white space, and without marks that have no width, such as that of a file put behind another."""
    return field.strip().strip("\u200b\u2060\ufeff").strip()


def _names_in(fields: list[str]) -> list[str]:
    """The names in a header, without the empty ones that spreadsheets leave behind the last column."""
    names = list(map(_bare, fields))
    while len(names) > 1 and not names[-1]:
        names.pop()
    return names


def _check_fits(path: Path, line: int, fields: list[str], header: list[str], width: int, between: str) -> None:
    """Check that a row has a field for each name, and behind these nothing but as many empty ones as the header has.

    Raises:
        DataError: it has fewer, or more, or a field where the header names none.
    """
    if not len(header) <= len(fields) <= width:
        mark, quoted = _SEPARATORS[between], 'in double quotes (" as "")'
        repair = (
            f"put fields that hold a {mark} or a line break {quoted}"
            if len(fields) > width
            else f"write a {mark} for each that is empty, and put fields that hold a line break {quoted}"
        )
        raise DataError(
            f"{path}:{line}: the row has {len(fields)} {'field' if len(fields) == 1 else 'fields'}, the header "
            f"has {width if len(fields) > width else len(header)}; {repair}"
        )
    for position, field in enumerate(fields[len(header) :], len(header) + 1):
        if field:
            raise DataError(
                f"{path}:{line}: column {position} has {field!r:.40} in this row, and no name in the header; name it, "
                "or take it out"
            )


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
    in the header outside of quotes tells. Where that is several of the marks, as in a name with a comma, it is the
    first one by which the rows below have as many fields as the header.
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
            marks = [mark for mark in _SEPARATORS if mark in bare] or [","]
            return 0, next((mark for mark in marks if len(marks) == 1 or _fits(raw, mark)), marks[0])
    return 0, ","


def _fits(raw: bytes, mark: str) -> bool:
    """Whether the first rows of a table have one number of fields, where the mark separates these."""
    text = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline="")
    rows = _with_long_fields(csv.reader(text, strict=True, delimiter=mark), len(raw))
    try:
        return len({len(fields) for fields in itertools.islice(filter(any, rows), 1 + _LOOKED_AT)}) == 1
    except csv.Error:
        return False


def _header(path: Path, line: int, fields: list[str]) -> list[str]:
    """The names of the columns, as `_names_in` a header.

    Raises:
        DataError: one has no name, or the name of another.
    """
    names = list(map(composed, _names_in(fields)))
    places: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if not name:
            raise DataError(f"{path}:{line}: column {position} of the header has no name; name it, or take it out")
        if (first := places.setdefault(name, position)) != position:
            raise DataError(
                f"{path}:{line}: the header names {name!r} twice, as columns {first} and {position}; rename one"
            )
    return names
