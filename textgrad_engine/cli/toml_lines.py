"""Where each key of a TOML file stands, which tomllib does not say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

Keys = tuple[str | int, ...]
"""The path of a key: the tables that hold it, and its name; an item of a list has its position."""


def key_lines(text: str) -> dict[Keys, int]:
    r"""The line (from 1) of each key of a valid TOML text, by its path; list items have their position in the path.

    Example:
        >>> key_lines('seed = 1\n[data]\ntrain = "a"')
        {('seed',): 1, ('data',): 2, ('data', 'train'): 3}
    """
    return _Scanner(text).lines


class _Scanner:
    """Finds keys only: tomllib has accepted the text before, and says nothing of lines."""

    _SKIP = re.compile(r"(?:\s|#[^\n]*)*")
    _STRING = re.compile(
        r"""
          "{3} (?:[^\\]|\\.)*? "{3,5}  # of up to five quotes at the end, two are text
        | [']{3} .*? [']{3,5}
        | " (?:[^"\\]|\\.)* "
        | ' [^']* '
        """,
        re.DOTALL | re.VERBOSE,
    )
    _BARE = re.compile(r"[A-Za-z0-9_-]+")
    _SCALAR = re.compile(r"[^,\]}#\n]+")

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Keys, int] = {}
        table: Keys = ()
        counts: dict[Keys, int] = {}
        while self._peek():
            if self._take("["):
                many = self._take("[")
                table = self._key(())
                if many:
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                    self._note(table)
                _ = self._take("]") and many and self._take("]")
            else:
                self._pair(table)

    def _peek(self) -> str:
        found = self._SKIP.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def _take(self, mark: str) -> bool:
        taken = self._peek() == mark
        self.at += taken
        return taken

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at + 1
        return found[0] if found else ""

    def _note(self, path: Keys) -> None:
        self.lines.setdefault(path, self.text.count("\n", 0, self.at) + 1)

    def _key(self, path: Keys) -> Keys:
        while True:
            quoted = self._peek() in ("'", '"')
            line_at = self.at
            name = self._match(self._STRING if quoted else self._BARE)
            path = (*path, tomllib.loads(f"k = {name}")["k"] if quoted else name)
            end, self.at = self.at, line_at
            self._note(path)
            self.at = end
            if not self._take("."):
                return path

    def _pair(self, table: Keys) -> None:
        path = self._key(table)
        self._take("=")
        self._value(path)

    def _value(self, path: Keys) -> None:
        mark = self._peek()
        if mark in ("'", '"'):
            self._match(self._STRING)
        elif mark == "[":
            self.at += 1
            position = 0
            while not self._take("]"):
                self._note((*path, position))
                self._value((*path, position))
                self._take(",")
                position += 1
        elif mark == "{":
            self.at += 1
            while not self._take("}"):
                self._pair(path)
                self._take(",")
        else:
            self._match(self._SCALAR)


def line_of(lines: Mapping[Keys, int], keys: Sequence[str | int]) -> int:
    """The line of a key; of what holds it when it is not there itself."""
    path = tuple(keys)
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def place(path: Path, line: int, lines: Mapping[Keys, int]) -> str:
    """The start of a message; without a line when the values come from no file."""
    return f"{path}:{line}: " if lines else f"{path}: "


def syntax_error(path: Path, text: str, message: str) -> str:
    """The message about a text that tomllib refused with `message`."""
    what, _, place = message.rpartition(" (at ")
    found = re.search(r"line (\d+), column (\d+)", place)
    last = text.rstrip("\n").count("\n") + 1
    where = f"{path}:{found[1]}: column {found[2]}" if found else f"{path}:{last}: end of the file"
    line = text.split("\n")[int(found[1]) - 1] if found else ""
    odd = _no_ascii(line[int(found[2]) - 1 :][:1]) if found else ""
    return f"{where}: not TOML: {what or message}{odd or _repair(what, line, text, int(found[1]) if found else last)}"


def _no_ascii(character: str) -> str:
    """What to do about a character that was refused and looks much as the right one does; "" for others."""
    if character.isascii():
        return ""
    name = f"U+{ord(character):04X}"
    shown = f"{character} ({name})" if character.isprintable() else name
    return f'; here stands {shown}, and outside of quotes TOML takes ASCII alone: "text", = and plain spaces'


def _repair(what: str, line: str, text: str, number: int) -> str:
    """What to do about a text that tomllib refused, as it follows what it said; "" where that says enough.

    Args:
        what: what it said.
        line: the line that it said it of.
        text: the whole file.
        number: of the line, from 1.
    """
    if "Illegal character" in what and line.count('"') % 2:
        return '; the text has no " at its end; one of several lines stands in """..."""'
    if any(each in what for each in ("escape", "Escape", "\\", "hex")):
        return r"; in \"...\" a backslash is written \\, in '...' it needs nothing".replace(r"\"", '"')
    if "twice" in what or "overwrite" in what:
        return _where_first(line, text, number)
    if text.lstrip().startswith("{"):
        return "; that is how JSON writes it: TOML wants key = value, below the [table] that it is in"
    if re.match(r"\s*(---|[\w-]+\s*:)", line):
        return "; that is how YAML writes it: TOML wants key = value, below the [table] that it is in"
    if "Invalid value" in what:
        return '; text is written in quotes "...", true and false in small letters'
    return ""


def _where_first(line: str, text: str, number: int) -> str:
    """Where a table or key stood before, and what to do about it."""
    before = text.split("\n")[: number - 1]
    if head := re.match(r"\s*\[+\s*([^\]]*?)\s*\]", line):
        seen = [n for n, each in enumerate(before, 1) if re.match(rf"\s*\[+\s*{re.escape(head[1])}\s*\]", each)]
        several = ", or write each of several metrics as [[metric]], the first one, too" if head[1] == "metric" else ""
        return f"; [{head[1]}] begins in line {seen[0]} already: put its keys there{several}" if seen else ""
    key = re.match(r"\s*([\w.-]+)\s*=", line)
    heads = [n for n, each in enumerate(before, 1) if each.lstrip().startswith("[")]
    seen = [
        n
        for n, each in enumerate(before, 1)
        if key and n > (heads[-1] if heads else 0) and re.match(rf"\s*{re.escape(key[1])}\s*=", each)
    ]
    return f"; {key[1]} is there in line {seen[-1]} already: take one out" if key and seen else ""
