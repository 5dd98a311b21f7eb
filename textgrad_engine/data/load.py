"""Read a file of examples; whatever is wrong with it is said with the file, the line and the repair."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from textgrad_engine.checks import check
from textgrad_engine.data.dataset import Dataset
from textgrad_engine.data.images import Detail, with_images
from textgrad_engine.data.paths import missing_file
from textgrad_engine.errors import DataError
from textgrad_engine.homes import expanded
from textgrad_engine.keywords import names_told
from textgrad_engine.slots import by_composed_name, composed

_Row = tuple[dict[str, Any], int]

_BOMS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class _RefusedError(ValueError):
    """Valid for Python's JSON reader, but not a value that can be used."""


@names_told
def load(path: str | Path, *, images: Sequence[str] = (), detail: Detail | None = None) -> Dataset:
    r"""Read a dataset: ``.jsonl`` or ``.ndjson`` (one object per line), ``.json`` (a list of objects), or ``.csv`` or
    ``.tsv`` (with a header).

    Files are UTF-8, with or without a byte order mark. Blank lines are skipped. Every value of a CSV file is a
    string, and a row of nothing but empty fields is a blank line; where its header has no comma between names, its
    columns are separated by semicolons, as spreadsheets write them in many countries, by tabs or by bars; those of a
    TSV file are by tabs. Names of columns are composed (Unicode's NFC), so that a slot that looks the same is the same.

    Args:
        path: the file.
        images: columns that name images: a file, seen from the folder of this one, or an ``https://`` address. What
            they hold becomes a content part, as `image_part` makes it; files are read at once and kept in memory.
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
    rows = list(reader(path, _read(path)))
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
        ".xlsx": "; export it as .csv",
    }
    what = f"the ending {path.suffix!r} is not known" if ending else "the file has no ending"
    return f"{path}: {what}; a dataset is .jsonl, .json or .csv{repairs.get(ending, '')}"


def read_text(path: Path) -> str:
    """The text of a UTF-8 file without its byte order mark, its lines ended by newlines, whatever ends them there.

    Raises:
        DataError: the file cannot be read, is empty, or is not UTF-8 text; the message names the line.
    """
    return _read(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _read(path: Path) -> bytes:
    """What `read_text` gives, as bytes: rows are decoded one at a time, as a text may take four times as much."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}; check its permissions") from error
    for mark, name in _BOMS:
        if raw.startswith(mark):
            raise DataError(f"{path}:1: the file is {name}; save it as UTF-8")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    begins = raw[:_LONGEST_MARK].lstrip().lower()
    for mark, what in _NO_TABLES.items():
        if begins.startswith(mark):
            raise DataError(f"{path}: this is {what}")
    if not raw.strip():
        raise DataError(f"{path}:1: the file is empty; write something into it")
    for number, line in enumerate(io.BytesIO(raw), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            what = "is not UTF-8; save the file as UTF-8"
            if error.reason == "unexpected end of data":
                what = (
                    "begins a character of UTF-8, and the file ends amid it; complete the file, or, if it is of "
                    "another encoding, save it as UTF-8"
                )
            raise DataError(
                f"{path}:{number}: byte {error.start + 1} of the line is 0x{line[error.start]:02x}, which {what}"
            ) from error
    if (place := raw.find(b"\0")) >= 0:
        line_number = raw.count(b"\n", 0, place) + 1
        raise DataError(
            f"{path}:{line_number}: there is a NUL character; the file is binary or UTF-16, save it as UTF-8 text"
        )
    return raw


_NO_TABLES = {
    b"pk\x03\x04": "a zip archive, as .xlsx files are; export the table as .csv, or unpack it",
    b"\x1f\x8b": "compressed; unpack it first",
    b"par1\x15": "a parquet table; export it as .jsonl",
    b"version https://git-lfs": "a pointer of Git LFS; `git lfs pull` gets the file itself",
    b"<!doctype html": "a web page; download the file itself, which may want a login",
    b"<html": "a web page; download the file itself, which may want a login",
}
"""What files that are no tables begin with, in small letters, and what they are, with the repair. Thrift's \\x15 behind
"PAR1" is in each such file, and in no header of columns."""
_LONGEST_MARK = 64


def _jsonl_rows(path: Path, raw: bytes) -> Iterator[_Row]:
    # Lines of bytes: a JSON string may hold U+2028 and its like, which end no line of the file.
    for number, encoded in enumerate(io.BytesIO(raw), 1):
        # A byte order mark within is that of a file that another was put behind.
        line = encoded.decode("utf-8").removesuffix("\n").removeprefix("\ufeff")
        if not line.strip():
            continue
        try:
            row = _DECODER.decode(line)
        except json.JSONDecodeError as error:
            if number == 1 and line.lstrip().startswith("[") and error.pos >= len(line.rstrip()):
                raise DataError(f"{path}:1: this is a list over several lines; name the file .json") from error
            if not encoded.endswith(b"\n") and (error.pos >= len(line.rstrip()) or "Unterminated" in error.msg):
                raise DataError(
                    f"{path}:{number}: the file ends amid this line; complete it, or take it out"
                ) from error
            hint = "; take off the comma at the end of the line" if line.rstrip().endswith("},") else ""
            hint = hint or "; a .jsonl file holds one whole object on each line"
            raise DataError(
                f"{path}:{number}: column {error.colno}: not JSON: {_why(error) or error.msg + hint}"
            ) from error
        except (ValueError, RecursionError) as error:
            _refuse(path, number, error)
        if isinstance(row, list):
            raise DataError(f"{path}:{number}: a row is an object, got a list; name the file .json if it is one list")
        yield _object(path, number, row, line), number


def _json_rows(path: Path, raw: bytes) -> Iterator[_Row]:
    text = raw.decode("utf-8")
    del raw
    space = re.compile(r"[ \t\r\n]*")
    at = _skip(space, text, 0)
    if text[at] != "[":
        if field := _list_inside(text):
            raise DataError(
                f"{path}:{_line(text, at)}: a .json file is a list of objects, and this is an object that has one in "
                f"{field!r}; write that list alone into the file"
            )
        what = "an object; if each line is one, name the file .jsonl, else" if text[at] == "{" else "something else;"
        raise DataError(f"{path}:{_line(text, at)}: a .json file is a list of objects, got {what} put it in [ ]")
    line, start = 1, 0
    at = _skip(space, text, at + 1)
    if text[at : at + 1] == "]":
        at += 1
    else:
        while True:
            line += text.count("\n", start, at)
            start = at
            try:
                row, at = _DECODER.raw_decode(text, at)
            except json.JSONDecodeError as error:
                why = _why(error) or error.msg
                raise DataError(f"{path}:{error.lineno}: column {error.colno}: not JSON: {why}") from error
            except (ValueError, RecursionError) as error:
                _refuse(path, line, error)
            yield _object(path, line, row, text[start:at]), line
            at = _skip(space, text, at)
            mark = text[at : at + 1]
            at = _skip(space, text, at + 1)
            if mark == "]":
                break
            if mark != ",":
                _not_json(path, text, at if not mark else at - 1, "expected ',' or ']' after a row")
            if text[at : at + 1] == "]":
                _not_json(path, text, at, "a comma before ']'; take it off")
    if _skip(space, text, at) != len(text):
        _not_json(path, text, _skip(space, text, at), "something follows the list; take it off")


def _list_inside(text: str) -> str:
    """The field of an object that holds a list of objects; "" where there is none."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    fields = whole.items() if isinstance(whole, dict) else ()
    return next((name for name, held in fields if isinstance(held, list) and held and isinstance(held[0], dict)), "")


def _why(error: json.JSONDecodeError) -> str:
    """What is wrong with JSON that has a comma too many, or that Python wrote; "" for all else."""
    if re.compile(r"\s*('|None\b|True\b|False\b)").match(error.doc, error.pos):
        return (
            "texts stand in double quotes, and there are null, true and false; where Python writes the file, "
            "json.dumps(row) is JSON, and str(row) is not"
        )
    found = re.compile(r"\s*([}\]])").match(error.doc, error.pos)
    trailing = (found and error.doc[: error.pos].rstrip().endswith(",")) or "trailing comma" in error.msg
    return "a comma behind which nothing follows; take it off" if trailing else ""


def _csv_rows(path: Path, raw: bytes) -> Iterator[_Row]:
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


_limit = threading.Lock()
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_MOST_OF_A_HEADER = 100


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


_READERS: dict[str, Callable[[Path, bytes], Iterator[_Row]]] = {
    ".csv": _csv_rows,
    ".json": _json_rows,
    ".jsonl": _jsonl_rows,
    ".ndjson": _jsonl_rows,
    ".tsv": _csv_rows,
}


def _object(path: Path, line: int, row: Any, source: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        kind = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(type(row), "a number")
        raise DataError(f'{path}:{line}: a row is an object such as {{"text": "..."}}, got {kind}')
    # Text decoded from UTF-8 has no lone surrogate but by an escape, so most rows need no second look.
    if _SURROGATE_ESCAPE.search(source) and (place := _surrogate(row, "")):
        raise DataError(
            f"{path}:{line}: {place} is half of a surrogate pair, which is no character; "
            "repair the text where it was cut, or take the row out"
        )
    try:
        return by_composed_name(row)
    except ValueError as error:
        raise DataError(f"{path}:{line}: {error}; take one out") from None


def _surrogate(value: Any, place: str) -> str:
    """Where the first lone surrogate is in a value, in words; "" when there is none."""
    if isinstance(value, str):
        found = _SURROGATE.search(value)
        return f"character {found.start() + 1} of {place}" if found else ""
    items: Any = ()
    if isinstance(value, dict):
        for key in value:
            if _SURROGATE.search(key):
                return f"a character of the column name {key!a}"
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        if found_in := _surrogate(item, f"{place}[{key!r}]" if place else f"column {key!r}"):
            return found_in
    return ""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(f"the field {twice!r} is there twice in one object; take one out")
    return result


def _no_constant(name: str) -> NoReturn:
    raise _RefusedError(f"{name} is no JSON value; write null or a number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _RefusedError(f"the number {text[:40]} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def _refuse(path: Path, line: int, error: Exception) -> NoReturn:
    if isinstance(error, _RefusedError):
        raise DataError(f"{path}:{line}: {error}") from error
    if isinstance(error, RecursionError):
        raise DataError(f"{path}:{line}: the row is nested too deeply to be read; flatten it") from error
    raise DataError(f"{path}:{line}: a number of the row is too long to be read; write it as a string") from error


def _not_json(path: Path, text: str, at: int, what: str) -> NoReturn:
    column = at - text.rfind("\n", 0, at)
    raise DataError(f"{path}:{_line(text, at)}: column {column}: not JSON: {what}")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _skip(space: re.Pattern[str], text: str, at: int) -> int:
    found = space.match(text, at)
    return found.end() if found else at
