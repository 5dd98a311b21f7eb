"""What the tools of a program gave in a run: how often each was called, and what came to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_SAMPLES = 3
"""So many calls of a tool are shown."""

_KINDS = 100
"""So many different problems of a tool are counted; a tool may word each failure otherwise."""


@dataclass
class ToolRow:
    """The calls of one tool.

    Attributes:
        name: as the model gave it, which may be that of no tool.
        calls: how often it was called.
        failed: how many of these came to nothing.
        problems: why, in words, and how often.
        samples: the first calls that did not, each with its arguments and what it gave.
    """

    name: str
    calls: int = 0
    failed: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    samples: list[tuple[str, str]] = field(default_factory=list)


def tools_of(entries: Iterable[Mapping[str, Any]]) -> list[ToolRow]:
    """The tools of a run, the one called most often first.

    Args:
        entries: the lines of ``tools.jsonl`` (`store.Run.tools`).
    """
    rows: dict[str, ToolRow] = {}
    for entry in entries:
        name = str(entry.get("name", ""))
        row = rows.setdefault(name, ToolRow(name))
        row.calls += 1
        if problem := str(entry.get("error", "")):
            row.failed += 1
            if problem in row.problems or len(row.problems) < _KINDS:
                row.problems[problem] += 1
        elif len(row.samples) < _SAMPLES:
            row.samples.append((str(entry.get("arguments", "")), str(entry.get("text", ""))))
    return sorted(rows.values(), key=lambda row: (-row.calls, row.name))


def tools_as_json(rows: Iterable[ToolRow]) -> list[dict[str, Any]]:
    """The same as plain JSON values."""
    return [
        {
            "name": row.name,
            "calls": row.calls,
            "failed": row.failed,
            "problems": [{"problem": problem, "calls": count} for problem, count in row.problems.most_common()],
        }
        for row in rows
    ]
