"""The file behind the cache: answers and leases in SQLite, bounded in size, set aside when it is damaged."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from textgrad_engine.errors import ConfigError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm import cacheforks
from textgrad_engine.llm.cacheowners import is_gone
from textgrad_engine.llm.cacheschema import SCHEMA, refuse_foreign
from textgrad_engine.llm.replace_file import move

T = TypeVar("T")
Claim = tuple[Literal["hit", "lead", "wait"], str | None]
"""An answer; or the right, and the duty, to ask; or somebody else is asking just now."""

_log = logging.getLogger("textgrad_engine.llm.cache")

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_PATIENCE = 30.0
"""Seconds to wait for another process that writes."""

_ROW = 256
"""Bytes that an answer takes besides its text, keys and indexes included; an estimate."""

_GRAIN = 60.0
"""Seconds to which the time of the last use is kept, so that most hits write nothing."""

_FULL = 0.9
"""When the file is full, answers are removed down to this share, so that not every new one has to remove one."""


class CacheFile:
    """Answers by key, and leases: who is asking for which answer, until when.

    Many processes may share one file; within a process it is used by one thread at a time. A file that turns out to be
    damaged is renamed to ``….corrupt-1`` (2, 3, …) and a new one begun, and one with tables, views or triggers of
    others is refused, as SQLite runs what they hold. Other trouble of the disk (full, read-only) is logged once and
    counts as "nothing stored": an answer that was paid for is worth more than its copy. SQLite lets a file that others
    have written hold anything anywhere, so what is read is cast to its kind.

    Args:
        path: the file.
        max_bytes: what its answers may take; those used longest ago are removed.
        lease: seconds for which a claim holds if it is not renewed: how long others wait for a process that was killed
            on another machine. One of this machine that is gone holds nothing.
        clock: seconds since the epoch.

    Raises:
        ConfigError: the file cannot be made or opened.
    """

    def __init__(self, path: Path, max_bytes: int, lease: float = 60.0, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.lease = lease
        self._clock = clock
        self._told = self._rests = False
        self.busy = threading.RLock()
        before = _inode(path)
        with cacheforks.opening():
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._db, self._inode = self._open()
            except (OSError, sqlite3.Error) as error:
                if not _is_damage(error):
                    raise self._unusable(error) from error
                try:
                    self._replace(error, before)
                except (OSError, sqlite3.Error) as trouble:
                    raise self._unusable(trouble) from trouble
            cacheforks.FILES.add(self)

    def _unusable(self, error: Exception) -> ConfigError:
        return ConfigError(
            f"the cache cannot use {self.path}: {reason_of(error)}; name another folder with llm.caching(path) or "
            "TEXTGRAD_CACHE_DIR"
        )

    def claim(self, key: bytes, owner: str) -> Claim:
        """The answer, or the right to ask for it, or neither because somebody else has that right.

        Args:
            key: of the request.
            owner: who wants it (`cacheowners.new_owner`); a renewal or release must name the same.
        """
        unclaimed: Claim = ("lead", None)
        return self._safely(lambda: self._claim(key, owner), unclaimed)

    def _claim(self, key: bytes, owner: str) -> Claim:
        body = self._find(key)
        if body is not None:
            return "hit", body
        now = self._clock()
        taken = self._db.execute(
            "INSERT INTO leases VALUES (:key, :owner, :expires) ON CONFLICT (key) DO UPDATE "
            "SET owner = :owner, expires = :expires WHERE expires <= :now OR owner = :owner",
            {"key": key, "owner": owner, "expires": now + self.lease, "now": now},
        )
        if not taken.rowcount:
            holder = self._db.execute("SELECT CAST(owner AS TEXT) FROM leases WHERE key = ?", (key,)).fetchone()
            if holder is None or not is_gone(holder[0]):
                return "wait", None
            self._db.execute("DELETE FROM leases WHERE owner = ?", holder)
            return self._claim(key, owner)
        body = self._find(key)  # it may have been put, and its lease given back, between the two statements above
        if body is None:
            return "lead", None
        self._db.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (key, owner))
        return "hit", body

    def find(self, key: bytes) -> str | None:
        """The answer, if there is one."""
        return self._safely(lambda: self._find(key), None)

    def _find(self, key: bytes) -> str | None:
        row = self._db.execute("SELECT body, CAST(used AS REAL) FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        now = self._clock()
        if now - row[1] >= _GRAIN:
            try:
                self._db.execute("UPDATE answers SET used = ? WHERE key = ?", (now, key))
            except sqlite3.Error as error:  # a disk that takes nothing has kept the answer all the same
                if _is_damage(error):
                    raise
                self._tell(error)
        return str(row[0])

    def put(self, key: bytes, owner: str, body: str) -> None:
        """Keep an answer and give the lease back; where there is one already, that one stays."""

        def work() -> None:
            size = len(body.encode()) + _ROW
            with self._transaction():
                if size <= self.max_bytes:
                    self._db.execute(
                        "INSERT INTO answers VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
                        (key, body, size, self._clock()),
                    )
                    self._shrink()
                self._db.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (key, owner))

        self._safely(work, None)

    def release(self, key: bytes, owner: str) -> None:
        """Give a lease back without an answer."""

        def work() -> None:
            self._db.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (key, owner))

        self._safely(work, None)

    def renew(self, owner: str) -> None:
        """Make the leases of an owner hold anew; its requests are still under way."""

        def work() -> None:
            self._db.execute("UPDATE leases SET expires = ? WHERE owner = ?", (self._clock() + self.lease, owner))

        self._safely(work, None)

    def drop(self, key: bytes) -> None:
        """Remove an answer."""

        def work() -> None:
            self._db.execute("DELETE FROM answers WHERE key = ?", (key,))

        self._safely(work, None)

    def clear(self) -> None:
        """Remove all answers, and give their space back to the disk."""

        def work() -> None:
            self._db.execute("DELETE FROM answers")
            self._db.execute("PRAGMA incremental_vacuum").fetchall()

        self._safely(work, None)

    def measure(self) -> tuple[int, int]:
        """How many answers there are, and the bytes they take."""

        def work() -> tuple[int, int]:
            held = "SELECT (SELECT count(*) FROM answers), CAST(bytes AS INTEGER) FROM total"
            return self._db.execute(held).fetchone() or (0, 0)

        return self._safely(work, (0, 0))

    def close(self) -> None:
        """Close the file."""
        with self.busy:
            self._db.close()

    def rest(self) -> None:
        """Close the file until it is used again."""
        self._rests = True
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def _shrink(self) -> None:
        (total,) = self._db.execute("SELECT CAST(bytes AS INTEGER) FROM total").fetchone()
        if total <= self.max_bytes:
            return
        goal = int(self.max_bytes * _FULL)
        while total > goal:
            oldest = self._db.execute(
                "SELECT rowid, CAST(bytes AS INTEGER) FROM answers ORDER BY used, rowid LIMIT 500"
            ).fetchall()
            if not oldest:  # the sum was none of them
                self._db.execute("UPDATE total SET bytes = 0")
                break
            gone = []
            for row, size in oldest:
                if total <= goal:
                    break
                gone.append((row,))
                total -= size
            self._db.executemany("DELETE FROM answers WHERE rowid = ?", gone)
        self._db.execute("PRAGMA incremental_vacuum(2000)").fetchall()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _safely(self, work: Callable[[], T], otherwise: T) -> T:
        with self.busy:
            for attempt in (1, 2):
                try:
                    if self._rests:
                        self._db, self._inode = self._open()
                        self._rests = False
                    return work()
                except (OSError, sqlite3.Error) as error:
                    if attempt == 1 and _is_damage(error):
                        if self._replaced(error):
                            continue
                    else:
                        self._tell(error)
                    return otherwise
        return otherwise

    def _tell(self, error: Exception) -> None:
        """Log, once, that nothing can be written."""
        if not self._told:
            self._told = True
            _log.warning("%s: %s; answers are not cached as long as that is so", self.path, error)

    def _replaced(self, error: Exception) -> bool:
        inode = self._inode
        self._db.close()
        try:
            self._replace(error, inode)
        except (OSError, sqlite3.Error) as trouble:
            _log.warning("%s is damaged (%s) and cannot be replaced: %s; delete it", self.path, error, trouble)
            self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._db.executescript(SCHEMA)
            return False
        return True

    def _replace(self, error: Exception, inode: int | None) -> None:
        """Set the damaged file aside, unless another process has done so since it was opened, and begin a new one."""
        if inode is not None and _inode(self.path) == inode:
            aside = _free_name(self.path)
            _log.warning("the cache %s is damaged (%s); it is kept as %s and a new one begun", self.path, error, aside)
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                move(self.path, aside)
            for suffix in ("-wal", "-shm"):  # they belong to the damaged file, and would damage the new one
                with contextlib.suppress(FileNotFoundError):
                    move(f"{self.path}{suffix}", f"{aside}{suffix}")
        self._db, self._inode = self._open()
        self._rests = False

    def _open(self) -> tuple[sqlite3.Connection, int | None]:
        end = time.monotonic() + _PATIENCE
        new = not self.path.exists()
        while True:
            db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                if new:
                    with contextlib.suppress(OSError):  # some file systems know no rights
                        os.chmod(self.path, 0o600)  # answers are nobody else's business
                refuse_foreign(db)
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only a file without tables takes it
                db.execute("PRAGMA journal_mode = WAL").fetchone()
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute("PRAGMA journal_size_limit = 16777216")
                db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
                return db, _inode(self.path)
            except sqlite3.OperationalError as error:
                db.close()
                # Several processes that begin one new file get in each other's way without SQLite waiting for them.
                if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
            except BaseException:
                db.close()
                raise


def _is_damage(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, sqlite3.DatabaseError) and code is not None and code & 0xFF in _DAMAGED


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:  # it is not there, or cannot be: opening it says which
        return None


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    return aside
