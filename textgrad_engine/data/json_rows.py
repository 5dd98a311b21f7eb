"""The rows of JSON files: an object on each line, or one list of objects."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from textgrad_engine.errors import DataError
from textgrad_engine.slots import by_composed_name
from textgrad_engine.strict_json import NoJSONError, finite

Row: TypeAlias = tuple[dict[str, Any], int]
"""A row, and the line on which it begins."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def jsonl_rows(path: Path, raw: bytes) -> Iterator[Row]:
    """The rows of a file with an object on each line.

    Raises:
        DataError: it is another one, or a row cannot be used.
    """
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


def json_rows(path: Path, raw: bytes) -> Iterator[Row]:
    """The rows of a file that is a list of objects.

    Raises:
        DataError: it is another one, or a row cannot be used.
    """
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
        if held := _table_inside(text, path):
            raise DataError(f"{path}:{_line(text, at)}: a .json file is a list of objects, and this is {held}")
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


def _table_inside(text: str, path: Path) -> str:
    """What an object is whose fields are the columns of a table, or its rows, with the repair; "" for any other."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    fields = list(whole.values()) if isinstance(whole, dict) else []
    if len(fields) > 1 and all(isinstance(held, list) and len(held) == len(fields[0]) for held in fields):
        return _OF_COLUMNS.format(path.name, path.with_suffix(".jsonl").name)
    if len(fields) > 1 and all(isinstance(held, dict) and held and held.keys() == fields[0].keys() for held in fields):
        if all(map(str.isdecimal, fields[0])):
            return _OF_COLUMNS.format(path.name, path.with_suffix(".jsonl").name)
        return "an object that has a row in each field; write these alone into the file, as a list"
    return ""


_OF_COLUMNS = (
    "an object of columns; pandas.read_json({!r}).to_json({!r}, orient='records', lines=True) makes a file of its rows"
)


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


def _object(path: Path, line: int, row: Any, source: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        kind = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(type(row), "a number")
        raise DataError(f'{path}:{line}: a row is an object such as {{"text": "..."}}, got {kind}')
    # Text decoded from UTF-8 has no lone surrogate but by an escape, so most rows need no second look.
    if _SURROGATE_ESCAPE.search(source) and (place := _surrogate(row)):
        raise DataError(
            f"{path}:{line}: {place} is half of a surrogate pair, which is no character; "
            "repair the text where it was cut, or take the row out"
        )
    try:
        return by_composed_name(row)
    except ValueError as error:
        raise DataError(f"{path}:{line}: {error}; take one out") from None


def _surrogate(row: dict[str, Any]) -> str:
    """Where the first lone surrogate is in a row, in words; "" when there is none."""
    waiting: list[tuple[Any, _Place | None]] = [(row, None)]
    while waiting:  # not by recursion, as JSON may be nested more deeply than Python calls
        value, place = waiting.pop()
        if isinstance(value, str):
            if found := _SURROGATE.search(value):
                return f"character {found.start() + 1} of {_in_words(place)}"
            continue
        items: Any = ()
        if isinstance(value, dict):
            for key in value:
                if _SURROGATE.search(key):
                    return f"a character of the column name {key!a}"
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        waiting += reversed([(item, _Place(place, key)) for key, item in items])
    return ""


class _Place(NamedTuple):
    """Where a value is in a row: in another value, under a key. It is put into words only where it is told."""

    within: _Place | None
    key: str | int


def _in_words(place: _Place | None) -> str:
    keys: list[str | int] = []
    while place is not None:
        keys.append(place.key)
        place = place.within
    column, *inside = reversed(keys)
    return f"column {column!r}{''.join(f'[{key!r}]' for key in inside)}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        times = Counter([name for name, _ in pairs])
        twice = next(name for name in times if times[name] > 1)
        raise NoJSONError(f"the field {twice!r} is there twice in one object; take one out")
    return result


def _no_constant(name: str) -> NoReturn:
    raise NoJSONError(f"{name} is no JSON value; write null or a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=finite)


def _refuse(path: Path, line: int, error: Exception) -> NoReturn:
    if isinstance(error, NoJSONError):
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
