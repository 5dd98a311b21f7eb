"""Lines that are on record of a run as what is played back of it: answers of models, and what tools gave."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from textgrad_engine.errors import RunError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.answers import COMPARED, Answer
from textgrad_engine.llm.tools_on_record import ToolOnRecord
from textgrad_engine.store.calls import answer_from_json, tool_from_json
from textgrad_engine.store.paid import Paid, place_of
from textgrad_engine.untrusted_files import check_unlinked, content_of

Where = tuple[int, int]
"""What a file is numbered as, and the number of the line."""

When = tuple[int, str]
"""The sitting in which something was asked for, and the time."""


def answer_of(folder: Path, paid: Paid, *, source: int) -> Answer:
    """What a line on record tells; only the first ones of a file keep their requests, as these are most of it.

    So does what was asked inside of a tool, as nobody else may know that request again.

    Args:
        folder: the run folder.
        paid: the line.
        source: what its file is numbered as.

    Raises:
        RunError: it was damaged.
    """
    try:
        answer = answer_from_json(paid.entry, nth=0, line=paid.line, source=source)
    except RunError as error:
        place = place_of(folder, "completions.jsonl", paid)
        raise RunError(f"{place}: the line was damaged: {error}; restore the file") from None
    return answer if paid.line <= COMPARED or answer.tool else replace(answer, request=None)


def tools_of(folder: Path, lines: Iterable[Paid], *, source: int) -> list[ToolOnRecord]:
    """The calls of tools that lines on record tell, numbered by when they began.

    Args:
        folder: the run folder.
        lines: the lines.
        source: what the file is numbered as that was not put aside.

    Raises:
        RunError: one was damaged.
    """
    found, read = [], functools.partial(_attached, folder)
    for nth, paid in enumerate(sorted(lines, key=lambda each: when(each, source))):
        try:
            found.append(tool_from_json(paid.entry, nth=nth, source=paid.source or source, read=read))
        except RunError as error:
            place = place_of(folder, "tools.jsonl", paid)
            raise RunError(f"{place}: the line was damaged: {error}; restore the file") from None
    return found


def _attached(folder: Path, name: str) -> bytes:
    """The bytes that a tool gave, of which a record has the name.

    Raises:
        RunError: they cannot be read.
    """
    file = folder / name
    try:
        check_unlinked(file)  # else the file that somebody's link names would be sent to a model
        return content_of(file)
    except OSError as error:
        why = reason_of(error)
        raise RunError(f"{file}: an image that a tool gave cannot be read: {why}; restore the file") from None


def phase_of(paid: Paid) -> int:
    """The number of the phase that a line belongs to; 0 where it has none, and is no line that `tools_of` reads."""
    phase = paid.entry.get("phase", 0)
    return phase if isinstance(phase, int) else 0


def when(paid: Paid, last: int) -> When:
    """When something was asked for; a clock may be set back between two sittings, so that the time alone misleads.

    Args:
        paid: the line.
        last: what the file is numbered as that was not put aside.
    """
    return paid.source or last, str(paid.entry.get("time", ""))


def in_order(found: list[tuple[When, Answer]]) -> list[Answer]:
    """Answers in the order in which they were asked for, and numbered by it.

    Args:
        found: when each was asked for, and the answer.
    """
    return [replace(answer, nth=nth) for nth, (_, answer) in enumerate(sorted(found, key=lambda each: each[0]))]
