"""Cassettes that are written: what models were asked and what they answered, and what tools gave."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import weakref
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from textgrad_engine.checks import check
from textgrad_engine.errors import APIError, ModelError, RunError, is_by_the_request
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.answers import entry_of
from textgrad_engine.llm.cassette import FORMAT, parsed, read_cassette
from textgrad_engine.llm.disk_reserve import Room
from textgrad_engine.llm.errors_as_json import error_to_json
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.line_order import LineOrder
from textgrad_engine.llm.lines import append_line
from textgrad_engine.llm.locking import taken_soon
from textgrad_engine.llm.model import Model, innermost
from textgrad_engine.llm.redact import redacted, secrets_named, secrets_of, without_password
from textgrad_engine.llm.replace_file import move, remove
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.toolcalls import ToolRecord, tool_to_json
from textgrad_engine.llm.usage import call_key, call_tool, call_under_way
from textgrad_engine.untrusted_files import check_plain
from textgrad_engine.user_paths import expanded


class Begun(NamedTuple):
    """A call that was begun.

    Attributes:
        entry: its line, without what comes of it.
        number: where it comes among all calls of models and tools.
    """

    entry: dict[str, Any]
    number: int


class Recording:
    """A cassette that is being written: one JSON object a line, each on disk before its answer is handed on.

    Args:
        path: the file; it must not exist, unless it is gone on with.
        resume: go on with a cassette, where there is one. What it holds is to be played back, and is not written again.

    Attributes:
        answers: how many answers and failures it holds.
        resumed: whether it is gone on with, so that what is played back stands in it already.
        before: what it held.
        lost: how many calls came to nothing now because of the endpoint, so that another time there may be an answer.

    Raises:
        RunError: the file exists, is damaged, or cannot be made; or somebody else is recording it.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        check(Recording.__init__, locals())
        self.path = expanded(path).absolute()
        self.resumed = resume
        self.answers = self.lost = 0  # before anything fails: a test that ends there shows the recording
        self._lock = threading.Lock()
        if self.path.exists() and not resume:
            raise RunError(
                f"{self.path}: a cassette is not recorded over; delete it, name another file, or go on with it: "
                f"llm.record({self.path.name!r}, resume=True)"
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, _FOR_LINES | os.O_CREAT | (0 if resume else os.O_EXCL), 0o600)
            self._close = weakref.finalize(self, os.close, self._fd)
            check_plain(self.path)
            held = os.open(self.path, os.O_RDWR)
            self.release = weakref.finalize(self, os.close, held)
            if not taken_soon(held):
                raise RunError(f"{self.path}: another process, or block, is recording this cassette; wait for its end")
            if _is_unbegun(self.path):
                os.ftruncate(self._fd, 0)
                append_line(self._fd, _line(FORMAT))
            self.before = read_cassette(self.path)
            _end_line(self._fd)
        except OSError as error:
            raise RunError(f"{self.path}: the cassette cannot be written: {reason_of(error)}") from None
        self._room = Room(self.path.parent)
        self.answers = len(self.before.answers)
        sittings = *(each.source for each in self.before.answers), *(each.source for each in self.before.tools)
        self._sitting = 1 + max(sittings, default=-1)
        self._asked: dict[tuple[str, str, int, tuple[int, ...], str], int] = {}
        for each in self.before.answers:
            key = each.model, each.example, each.part, each.item, each.digest
            self._asked[key] = max(self._asked.get(key, 0), each.nth + 1)
        self._order, self._away = LineOrder(), False
        self._tools = itertools.count(max([each.nth + 1 for each in self.before.tools], default=0))

    def begin(self, model: Model, request: Request) -> Begun:
        """A request is asked now."""
        entry = entry_of(model, request)
        core = innermost(model)
        if (address := getattr(core, "base_url", None)) is not None:
            entry["endpoint"] = without_password(str(address))
        within = entry.get("part", 0), tuple(entry.get("item", ()))
        equal = (entry["model"], entry["example"], *within, digest(entry["request"]))
        with self._lock:
            entry["nth"] = self._asked.get(equal, 0)
            self._asked[equal] = entry["nth"] + 1
            number = self._order.begin(entry["example"])
        if tool := call_tool.get():
            entry["tool"] = tool
        return Begun(entry, number)

    def end(self, begun: Begun, model: Model, outcome: Completion | ModelError) -> None:
        """Write a request down with what came of it.

        Raises:
            RunError: the disk is full, or the file is gone.
        """
        if isinstance(outcome, Completion):
            raw = {name: value for name, value in (outcome.raw or {}).items() if name not in _OF_ONE_RESPONSE}
            kept = outcome.model_copy(update={"latency": 0.0, "raw": raw or None})
            answer = kept.model_dump(mode="json", exclude_defaults=True)
            body: dict[str, Any] = {"completion": redacted(answer, secrets_of(model))}
        else:
            body = {"error": redacted(error_to_json(outcome), secrets_of(model))}
            self.lost += isinstance(outcome, APIError) and not is_by_the_request(outcome)
        if (own := call_under_way.get()) is not None and own.sample is not None:
            body["sample"] = list(own.sample)
        self._append({**begun.entry, **body}, begun.number, answers=1)

    def discard(self) -> None:
        """Remove the file; what still comes is not written."""
        self._put_away(None)

    def move_to(self, path: Path) -> None:
        """Have the file elsewhere on the same disk, in the place of what is there; what still comes is not written."""
        self._put_away(path)

    def _put_away(self, path: Path | None) -> None:
        self.release()
        self._room.give_back()
        with self._lock:
            self._close()
            self._away = True
            if path is None:
                remove(self.path)
            else:
                move(self.path, path)
                self.path = path

    def begin_tool(self) -> Begun:
        """A call of a tool begins now."""
        with self._lock:
            return Begun({"nth": next(self._tools)}, self._order.begin(call_key.get()))

    def end_tool(self, begun: Begun, record: ToolRecord) -> None:
        """Write down what a tool gave.

        Args:
            begun: its call.
            record: what it gave.

        Raises:
            RunError: the disk is full, or the file is gone.
        """
        secrets = secrets_named(key.get_secret_value() for key in record.keys)
        self._append({**begun.entry, **redacted(tool_to_json(record), secrets)}, begun.number)

    def settle(self) -> None:
        """Put the lines into the order in which was asked; where the file cannot be replaced, they stay as they are.

        Nobody keeps the file open from then on, so that it can be deleted or replaced on Windows, too.
        """
        self._room.give_back()
        with self._lock, contextlib.suppress(OSError):
            if self._close.alive:
                self._close()
                if _LOCK_HINDERS:
                    self.release()
                self._order.put_right(self.path)

    def _append(self, entry: Mapping[str, Any], number: int, *, answers: int = 0) -> None:
        if self._sitting:
            entry = {**entry, "sitting": self._sitting}
        try:
            with self._lock:
                if not self._away:
                    self._room.write(lambda: self._write(entry, number, answers))
        except OSError as error:
            raise RunError(f"{self.path}: the cassette cannot be written: {reason_of(error)}") from error

    def _write(self, entry: Mapping[str, Any], number: int, answers: int) -> None:
        if self._close.alive:
            start = os.fstat(self._fd).st_size
            append_line(self._fd, _line(entry), self.path)
            self._order.add(entry["example"], number, start, os.fstat(self._fd).st_size)
        else:  # it was asked inside of the block, and answered behind its end
            fd = os.open(self.path, _FOR_LINES)
            try:
                append_line(fd, _line(entry), self.path)
            finally:
                os.close(fd)
        self.answers += answers

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r}, {self.answers} answers)"


def is_recorded(path: Path) -> bool:
    """Whether somebody is recording a cassette now."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not taken_soon(fd)
    finally:
        os.close(fd)


def _is_unbegun(path: Path) -> bool:
    """Whether a file holds nothing, or a part of the first line of a cassette."""
    with path.open("rb") as file:
        return _line(FORMAT).startswith(file.readline())


def _end_line(fd: int) -> None:
    """Take away what a process that was killed has written of a last line; a whole one lacks its break alone."""
    size = os.fstat(fd).st_size
    begin, tail = size, b""
    while begin and b"\n" not in tail:
        begin = max(0, begin - _BLOCK)
        os.lseek(fd, begin, os.SEEK_SET)
        tail = os.read(fd, _BLOCK) + tail
    torn = tail.rpartition(b"\n")[2]
    if torn and parsed(torn) is None:
        os.ftruncate(fd, size - len(torn))
    elif torn:
        append_line(fd, b"")


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


_FOR_LINES = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)

_LOCK_HINDERS = os.name == "nt"
"""Whether the lock is given back before the file is replaced, as Windows replaces none that anybody has open; so who
goes on with the cassette in that moment is safe, too. Elsewhere nobody would be in the way, so the lock is kept."""

_OF_ONE_RESPONSE = ("id", "created", "created_at")
"""Fields of an endpoint's body that no two responses share; they and the time are all that would always differ."""

_BLOCK = 1 << 16
"""So many bytes are read at once to find the end of the last whole line."""

cassettes: ContextVar[tuple[Recording, ...]] = ContextVar("textgrad_engine_recordings", default=())
"""Those that are recorded around a call."""
