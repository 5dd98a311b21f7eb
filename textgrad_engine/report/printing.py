"""Text for terminals and pipes: what all reports are printed with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Column, Table
    from rich.text import Text

_JOINERS = "\u200c\u200d"
"""They are needed to write Persian and Hindi, and in emoji; they can hide nothing and turn nothing around."""

WIDEST = 100
"""Columns; lines longer than this are hard to read, however wide the terminal is."""


def is_harmless(character: str) -> bool:
    """Whether a character can be seen, and moves and hides no others; the joiners are none that do."""
    return character.isprintable() or character in _JOINERS


def styled(text: str, style: str = "") -> Text:
    """Text as one line, with nothing in it that a terminal would take for a command."""
    from rich.text import Text

    return Text("".join(map(_printable, text)), style)


def harmless(text: str) -> str:
    r"""Lines without what a terminal would take for a command: prompts, names of columns and errors may quote some.

    Example:
        >>> harmless("a\tb\n\x1b[2Jc")
        'a\tb\n\ufffd[2Jc'
    """
    return text if text.isprintable() else "".join([c if c in "\n\t" else _printable(c) for c in text])


def _printable(c: str) -> str:
    if is_harmless(c):
        return c
    return " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"


def indented(text: str, by: int, style: str = "") -> RenderableType:
    """Text `by` columns to the right."""
    return padded(styled(text, style), by)


def hanging(mark: str, further: str, text: str, style: str = "") -> RenderableType:
    """Text behind a mark; its further lines begin below the text, and `further` to the right of that."""
    return _Hanging(mark, further, text, style)


@dataclass(frozen=True)
class _Hanging:
    mark: str
    further: str
    text: str
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len

        mark = cell_len(self.mark)
        room = max(20, options.max_width - mark - len(self.further))
        for number, line in enumerate(styled(self.text).wrap(console, room)):
            margin = self.mark if number == 0 else " " * mark + self.further
            yield styled(margin + line.plain.rstrip(), self.style)


def wrapped(text: str, columns: int, first: str = "") -> list[str]:
    """Text in lines of so many columns at most, of which a wide letter takes two.

    Lines end between words; only a word that is longer than one is broken.

    Args:
        text: what is wrapped, with nothing in it then that a terminal would take for a command.
        columns: of the terminal.
        first: what the first line begins with; further lines begin below the text behind it.

    Example:
        >>> wrapped("to be or not to be", 9, "a: ")
        ['a: to be', '   or not', '   to be']
    """
    margin = columns_of(first)
    room = max(columns - margin, 1 if 2 * margin <= columns else 20)
    lines, line, taken = list[str](), "", 0
    for word in "".join(map(_printable, text)).split():
        wide = columns_of(word)
        if line and taken + 1 + wide <= room:
            line, taken = f"{line} {word}", taken + 1 + wide
            continue
        lines += [line] if line else []
        *whole, line = _broken(word, room) if wide > room else [word]
        lines += whole
        taken = columns_of(line)
    lines += [line] if line else []
    return [(" " * margin if number else first) + line for number, line in enumerate(lines)]


def columns_of(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shortened(text: str, widest: int) -> str:
    """Text as one line of so many columns at most, without its middle where it is longer: names begin and end apart.

    Example:
        >>> shortened("corpus/shard-0001/document-17", 16), shortened("t17", 16)
        ('corpus/s…ment-17', 't17')
    """
    text = styled(text).plain
    if columns_of(text) <= widest:
        return text
    from rich.cells import set_cell_size  # heavy, and wanted only where something is long

    end = (widest - 1) // 2
    tail = set_cell_size(text[-end:][::-1], end)[::-1] if end else ""
    return f"{set_cell_size(text[:widest], widest - 1 - end).rstrip()}…{tail.lstrip()}"


def is_shown_as(text: str, shown: str) -> bool:
    r"""Whether a text looks so, cut by `shortened` or not.

    Example:
        >>> is_shown_as("corpus/shard-0001/document-17", "corpus/s…ment-17"), is_shown_as("a\nb", "a b")
        (True, True)
    """
    text = text if text.isprintable() else styled(text).plain
    head, cut, tail = shown.partition("…")
    whole = len(text) <= len(head) + len(tail)
    return text == shown or bool(cut and not whole and text.startswith(head) and text.endswith(tail))


def _broken(word: str, room: int) -> list[str]:
    """A word that is longer than a line in lines, which are full."""
    lines, taken = [""], 0
    for letter in word:
        taken += columns_of(letter)
        if lines[-1] and taken > room:
            lines.append("")
            taken = columns_of(letter)
        lines[-1] += letter
    return lines


def unwrapped(text: str, style: str = "") -> RenderableType:
    """Text as one line, however long, so that it can be copied."""
    line = styled(text, style)
    line.no_wrap, line.overflow = True, "ignore"
    return group([line])


@dataclass(frozen=True)
class Sentences:
    """Text `by` columns to the right; a command in backticks stays in one line, however long, to be copied."""

    text: str
    by: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len

        line = ""
        for word in re.findall(r"\S*`[^`]*`\S*|\S+", self.text):
            if line and cell_len(line) + 1 + cell_len(word) > options.max_width - self.by:
                yield unwrapped(" " * self.by + line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        yield unwrapped(" " * self.by + line)


def padded(what: RenderableType, by: int) -> RenderableType:
    """Anything `by` columns to the right."""
    from rich.padding import Padding

    return Padding(what, (0, 0, 0, by))


def open_table(gap: int = 3) -> Table:
    """A table without lines, its columns so far apart."""
    from rich.table import Table  # heavy, and wanted only when something is shown

    return Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")


def fitted(table: Table) -> RenderableType:
    """A table that loses no cell where there is no room for it: its columns come closer, or its rows become lists.

    Each entry of such a list is called by the name of its column, and what stands in columns without one comes first.
    """
    return _Fitted(table)


@dataclass(frozen=True)
class _Fitted:
    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self.table.columns
        words = sum(_needed(column, console, options) for column in columns)
        widest = self.table.padding[1]
        gap = min(widest, (options.max_width - words) // len(columns))
        if gap < 1:
            yield from self._lists()
            return
        self.table.padding = (0, gap, 0, 0)
        yield self.table
        self.table.padding = (0, widest, 0, 0)

    def _lists(self) -> Iterator[RenderableType]:
        from rich.cells import cell_len, set_cell_size

        columns = self.table.columns
        longest = max(cell_len(str(column.header)) for column in columns[1:])
        for row, cells in zip(self.table.rows, zip(*[map(str, column.cells) for column in columns])):
            said = [(column, cell) for column, cell in zip(columns[1:], cells[1:]) if cell]
            first = f"{columns[0].header} {cells[0]}".strip()
            style = str(row.style or "")
            yield hanging("", "  ", ", ".join([first, *(cell for column, cell in said if not column.header)]), style)
            for column, cell in said:
                if column.header:
                    mark = f"  {set_cell_size(str(column.header), longest)}  "
                    yield hanging(mark, "", cell, str(column.style or style))


def _needed(column: Column, console: Console, options: ConsoleOptions) -> int:
    """Columns of the terminal that one of a table must have, or cells would be cut off, and words broken."""
    from rich.measure import Measurement

    wide = options.update(max_width=10_000)
    sizes = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
    most = max(size.maximum if column.no_wrap else size.minimum for size in sizes)
    return max(column.min_width or 0, min(most, column.max_width or most))


def group(parts: Sequence[RenderableType]) -> RenderableType:
    """Several things below each other."""
    from rich.console import Group

    return Group(*parts)


def printed(parts: Sequence[RenderableType], width: int, color: bool) -> str:
    """What a terminal of that width shows, as text.

    Args:
        parts: what is below each other.
        width: columns; `WIDEST` at most.
        color: with the terminal's codes for colors.
    """
    from rich.console import Console

    console = Console(
        file=StringIO(),
        width=min(width, WIDEST),
        force_terminal=color,
        force_jupyter=False,  # in a notebook it would show the parts there, and give back an empty text
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part, crop=False)
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().split("\n")
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"
