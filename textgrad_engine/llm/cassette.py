"""Cassettes that are read: what models were asked and what they answered, and what tools gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from textgrad_engine.errors import RunError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.answers import Answer
from textgrad_engine.llm.as_json import request_from_json
from textgrad_engine.llm.errors_as_json import error_from_json
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.response import completion_from_json
from textgrad_engine.llm.toolcalls import tool_from_json
from textgrad_engine.llm.tools_on_record import ToolOnRecord
from textgrad_engine.untrusted_files import content_of

FORMAT = {"cassette": 1}
"""The first line."""


class Cassette(NamedTuple):
    """What a cassette holds; what was written when it was gone on with has the number of that sitting as its `source`.

    Attributes:
        answers: the answers and failures, in the order of their lines.
        tools: what tools gave, likewise.
    """

    answers: list[Answer]
    tools: list[ToolOnRecord]


def read_cassette(path: Path) -> Cassette:
    """Read a cassette; a torn last line is left out. Two that were put into one file, or merged by git, are one.

    Raises:
        RunError: there is no such file, or it is damaged; the message names the line.
    """
    try:
        lines = content_of(path).splitlines(keepends=True)
    except FileNotFoundError:
        raise RunError(
            f"{path}: there is no such cassette; record it once, with models that answer: "
            f"`with llm.record({path.name!r})` around the same calls"
        ) from None
    except OSError as error:
        raise RunError(f"{path}: the cassette cannot be read: {reason_of(error)}") from None
    if not lines or parsed(lines[0]) != FORMAT:
        raise RunError(f"{path}:1: {_instead(lines)}")
    found: list[Answer] = []
    tools: list[ToolOnRecord] = []
    for number, line in enumerate(lines[1:], 2):
        entry = parsed(line)
        if entry is None and not line.endswith(b"\n"):
            break  # the recording was killed while it wrote its last line
        if not line.strip() or entry == FORMAT:
            continue
        if line.startswith(_CONFLICT):
            raise RunError(
                f"{path}:{number}: a merge left a conflict here; keep the lines of both, without git's marks"
            )
        try:
            if entry is None:
                raise ValueError("it is no JSON object")
            if "id" in entry:
                nth, sitting = int(entry.get("nth", len(tools))), int(entry.get("sitting", 0))
                tools.append(ToolOnRecord(tool_from_json(entry), nth, source=sitting))
                continue
            completion = entry.get("completion")
            outcome = error_from_json(entry["error"]) if completion is None else completion_from_json(completion)
            request = request_from_json(entry["request"])  # those of before have the bytes
            place = (entry["model"], request["purpose"], entry["example"], entry["nth"], number)
            within: dict[str, Any] = {"item": tuple(entry.get("item", ())), "tool": entry.get("tool", "")}
            within |= {"place": tuple(entry.get("place", ())), "source": int(entry.get("sitting", 0))}
            within |= {"sample": tuple(entry["sample"]) if "sample" in entry else None, "part": entry.get("part", 0)}
            found.append(Answer(*place, digest(request), outcome, entry.get("asked"), request, **within))
        except (ValidationError, ValueError, KeyError, TypeError, OverflowError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise RunError(f"{path}:{number}: the line is damaged: {why}; record the cassette anew") from None
    return Cassette(found, tools)


def _instead(lines: list[bytes]) -> str:
    """What stands where a cassette should begin, and the repair."""
    if not lines:
        return "the file is empty; delete it, and record it with llm.record"
    if lines[0].startswith(_POINTER):
        return "this is what Git LFS has in the place of a file; fetch that with `git lfs pull`"
    if lines[0].startswith(_CONFLICT):
        return "a merge left a conflict here; keep the lines of both, without git's marks"
    return "this is no cassette of this version; record it anew with llm.record"


_CONFLICT = (b"<<<<<<< ", b"||||||| ", b"=======", b">>>>>>> ")
"""What git writes around the lines that two have changed."""

_POINTER = b"version https://git-lfs"
"""How a file begins that Git LFS has not fetched."""


def parsed(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None where it is none, such as a torn one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
