"""Ids of calls inside of which others are made: the same in every run, and none given twice in one."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from textgrad_engine.scoped import setting


@contextlib.contextmanager
def giving_ids() -> Iterator[None]:
    """Inside the block, calls get ids of their own, which depend on what is called there alone."""
    if _ids.get() is not None:  # whoever records inside of it writes the same calls down
        yield
        return
    with setting(_ids, Counter()):
        yield


@contextlib.contextmanager
def known_ids(names: frozenset[str]) -> Iterator[None]:
    """Inside the block, no call gets one of these ids: they are those of calls that are on record."""
    with setting(_known, names):
        yield


def next_id(where: Mapping[str, Any]) -> str:
    """An id for a call that is made now.

    Args:
        where: what is known of the call and of its place, as plain JSON; equal calls, such as those of two candidates
            of a search, get different ids where these are given.
    """
    base, given, known = digest(where), _ids.get(), _known.get()
    if given is None:
        return base
    while True:
        found = digest({**where, "number": given[base]}) if given[base] else base
        given[base] += 1
        if found not in known:
            return found


def digest(value: Any) -> str:
    """SHA-256 of something as plain JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


_ids: ContextVar[Counter[str] | None] = ContextVar("textgrad_engine_ids", default=None)
_known: ContextVar[frozenset[str]] = ContextVar("textgrad_engine_known_ids", default=frozenset())
