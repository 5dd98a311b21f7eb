"""Whether two datasets hold the same examples, where only positions name these."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import Any

from textgrad_engine.data.dataset import Examples, examples_of


def contents_of(dataset: Examples[Mapping[str, Any]]) -> dict[str, str]:
    """A digest of what stands in each column, where some example has no ``id`` of its own; else nothing.

    Two sets of examples that are named by their positions alone have the same names. Objects that are neither texts,
    numbers, truth values, lists nor dicts count by their type, as the same one may be made anew for another set.

    Example:
        >>> first, second = [{"text": "a", "target": 1}], [{"text": "b", "target": 1}]
        >>> one, other = contents_of(first), contents_of(second)
        >>> one["target"] == other["target"], one["text"] == other["text"]
        (True, False)
        >>> contents_of([{"id": "t1", "text": "a"}])
        {}
    """
    rows = list(itertools.takewhile(lambda row: isinstance(row, Mapping), examples_of(dataset)))
    if len(rows) < len(dataset) or all("id" in row for row in rows):
        return {}
    found = {}
    for name in sorted({name for row in rows for name in row if isinstance(name, str)}):
        with contextlib.suppress(RecursionError, ValueError):  # a list in itself, or a number longer than Python writes
            found[name] = _digest([row.get(name) for row in rows])
    return found


def _digest(values: list[Any]) -> str:
    told = json.dumps([_plain(value) for value in values], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else type(value).__name__
