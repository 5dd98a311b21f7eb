"""What tells examples from others that have the same ids: a digest of their content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from textgrad_engine.signed import unsigned


def digest_of(target: str, *sets: Iterable[dict[str, Any]]) -> str:
    """A digest of examples, which is the same in every process and of every copy.

    Args:
        target: the field that holds their target.
        sets: the examples, by set.

    Example:
        >>> digest_of("queue", [{"tags": {"a", "b"}}]) == digest_of("queue", [{"tags": {"b", "a"}}])
        True
    """
    digest = hashlib.sha256(target.encode("utf-8", "backslashreplace"))
    for rows in sets:
        for row in rows:
            written = unsigned(_written(row))  # an address that is signed anew makes no other example
            digest.update(written.encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def _written(row: dict[str, Any]) -> str:
    """An example's content, as it is written in every process and of every copy: no addresses, and sets in order."""
    try:
        text = json.dumps(row, default=_plain)
    except (TypeError, ValueError):  # of names that are no text, and of what holds itself
        text = repr(row)
    return _ADDRESS.sub("", text)


def _plain(value: Any) -> Any:
    return sorted(map(repr, value)) if isinstance(value, AbstractSet) else repr(value)


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
