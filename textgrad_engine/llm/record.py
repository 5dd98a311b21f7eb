"""Cassettes that are written: what models were asked and what they answered, and what tools gave."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from textgrad_engine.blocks import block
from textgrad_engine.checks import check
from textgrad_engine.errors import ModelError, RunError
from textgrad_engine.homes import expanded
from textgrad_engine.llm.answers import entry_of, error_to_json
from textgrad_engine.llm.ids import digest, giving_ids
from textgrad_engine.llm.lines import append_line
from textgrad_engine.llm.model import Model, innermost
from textgrad_engine.llm.places import numbering_places
from textgrad_engine.llm.redact import redacted, secrets_named, secrets_of, without_password
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.toolcalls import ToolRecord, tool_to_json
from textgrad_engine.llm.usage import call_tool
from textgrad_engine.reasons import reason_of
from textgrad_engine.scoped import setting

FORMAT = {"cassette": 1}


class Recording:
    """A cassette that is being written: one JSON object a line, each on disk before its answer is handed on.

    Args:
        path: the file; it must not exist.

    Attributes:
        answers: how many answers and failures it holds.

    Raises:
        RunError: the file exists, or cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check(Recording.__init__, locals())
        self.path = expanded(path).absolute()
        self.answers = 0
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, str, tuple[int, ...], str], int] = {}
        self._tools = itertools.count()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        if self.path.exists():
            raise RunError(f"{self.path}: a cassette is not recorded over; delete it or name another file")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, flags, 0o600)
            self._close = weakref.finalize(self, os.close, self._fd)
            append_line(self._fd, _line(FORMAT))
        except OSError as error:
            raise RunError(f"{self.path}: the cassette cannot be written: {reason_of(error)}") from None

    def begin(self, model: Model, request: Request) -> dict[str, Any]:
        """The entry of a request that is asked now, without its answer."""
        entry = entry_of(model, request)
        core = innermost(model)
        if (address := getattr(core, "base_url", None)) is not None:
            entry["endpoint"] = without_password(str(address))
        equal = (entry["model"], entry["example"], tuple(entry.get("item", ())), digest(entry["request"]))
        with self._lock:
            entry["nth"] = self._asked.get(equal, 0)
            self._asked[equal] = entry["nth"] + 1
        if tool := call_tool.get():
            entry["tool"] = tool
        return entry

    def end(self, entry: dict[str, Any], model: Model, outcome: Completion | ModelError) -> None:
        """Write an entry down with what came of it.

        Raises:
            RunError: the disk is full, or the file is gone.
        """
        if isinstance(outcome, Completion):
            answer = outcome.model_copy(update={"latency": 0.0}).model_dump(mode="json", exclude_defaults=True)
            body: dict[str, Any] = {"completion": redacted(answer, secrets_of(model))}
        else:
            body = {"error": redacted(error_to_json(outcome), secrets_of(model))}
        self._append({**entry, **body})
        self.answers += 1

    def begin_tool(self) -> int:
        """The number of a call of a tool that begins now."""
        return next(self._tools)

    def end_tool(self, nth: int, record: ToolRecord) -> None:
        """Write down what a tool gave.

        Args:
            nth: the number of its call.
            record: what it gave.

        Raises:
            RunError: the disk is full, or the file is gone.
        """
        secrets = secrets_named(key.get_secret_value() for key in record.keys)
        self._append({"nth": nth, **redacted(tool_to_json(record), secrets)})

    def _append(self, entry: Mapping[str, Any]) -> None:
        try:
            with self._lock:
                append_line(self._fd, _line(entry))
        except OSError as error:
            raise RunError(f"{self.path}: the cassette cannot be written: {reason_of(error)}") from error

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r}, {self.answers} answers)"


@block
@contextlib.contextmanager
def record(path: str | os.PathLike[str]) -> Iterator[Recording]:
    """Inside the block, every call is written to a cassette, with its answer or its failure; so is what tools give.

    API keys and what looks like one are taken out, of answers too, but for keys that are words, as local servers have.
    Text of prompts and answers is written as it is; of images and the like there is a name that tells them apart.

    Args:
        path: the file; it must not exist.

    Raises:
        RunError: the file exists, or cannot be made.

    Example:
        >>> import os, tempfile
        >>> with record(os.path.join(tempfile.mkdtemp(), "run.jsonl")) as recording:
        ...     recording.answers
        0
    """
    made = Recording(path)
    with setting(cassettes, (*cassettes.get(), made)), numbering_places(), giving_ids():
        yield made


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


cassettes: ContextVar[tuple[Recording, ...]] = ContextVar("textgrad_engine_recordings", default=())
"""Those that are recorded around a call."""
