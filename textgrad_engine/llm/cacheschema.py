"""What a cache file holds, and the refusal of one that holds anything else."""

from __future__ import annotations

import contextlib
import functools
import sqlite3

SCHEMA = """
CREATE TABLE IF NOT EXISTS answers
    (key BLOB PRIMARY KEY, body TEXT NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL);
CREATE INDEX IF NOT EXISTS answers_by_use ON answers (used);
CREATE TABLE IF NOT EXISTS leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL);
CREATE TABLE IF NOT EXISTS total (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL);
INSERT OR IGNORE INTO total VALUES (1, 0);
CREATE TRIGGER IF NOT EXISTS answers_added AFTER INSERT ON answers
    BEGIN UPDATE total SET bytes = bytes + NEW.bytes; END;
CREATE TRIGGER IF NOT EXISTS answers_removed AFTER DELETE ON answers
    BEGIN UPDATE total SET bytes = bytes - OLD.bytes; END;
"""
"""What a file holds. One with other statements, letter by letter, is refused: whoever changes these lets in both."""


def refuse_foreign(db: sqlite3.Connection) -> None:
    """Refuse a file with what this library has not put there, before anything is read or written that might run it.

    Raises:
        sqlite3.DatabaseError: it holds such a thing; the message names it.
    """
    for kind, name, made in _parts_of(db):
        if (kind, name, made) not in _own_parts():
            raise sqlite3.DatabaseError(f"it holds the {kind} {name!r:.80}, which this library has not put there")


@functools.cache
def _own_parts() -> frozenset[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return frozenset(_parts_of(db))


def _parts_of(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """The tables, indexes, views and triggers of a file: of what kind, how called, and made by which statement."""
    # What SQLite makes by itself has no statement, but for the tables that say how often a value occurs.
    return db.execute(
        "SELECT type, name, sql FROM sqlite_master "
        "WHERE sql IS NOT NULL AND NOT (type = 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))"
    ).fetchall()
