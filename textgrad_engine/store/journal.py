"""`RunFolder`: writes a run into a folder while it goes on, so that whatever was paid for is on disk."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from textgrad_engine.errors import BudgetExceeded, RunError, Stopped
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.attachments import Attachment, attachments_in
from textgrad_engine.llm.charged import costs_nothing
from textgrad_engine.llm.disk_reserve import Room
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.redact import redacted, secrets_among, secrets_named
from textgrad_engine.store.calls import Place, completion_to_json, tool_to_json
from textgrad_engine.store.files import file_name, inner_folder, typed, unwritable, write_atomically
from textgrad_engine.store.lines import Lines
from textgrad_engine.store.lock import LOCK, Lock
from textgrad_engine.store.reader import read_run
from textgrad_engine.store.records import FORMAT, dumps, event_to_json, result_to_json
from textgrad_engine.store.resume import Earlier
from textgrad_engine.store.sittings import Reach
from textgrad_engine.train.events import (
    CallEnded,
    Evaluated,
    Event,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunFailed,
    RunStarted,
    Status,
    StepEnded,
    ToolEnded,
)
from textgrad_engine.user_paths import expanded

_log = logging.getLogger("textgrad_engine.store")


class RunFolder:
    """A `train.events.Callback` that writes a run folder.

    Lines are appended as things happen, and each is with the operating system before the run goes on; other files are
    replaced as a whole. At the end the completions are put into an order that does not depend on time, so that two runs
    with one seed differ in nothing but their times.

    Secrets of the environment that an endpoint repeats are taken out of ``completions.jsonl``. Texts, events and the
    result stay as they are, for they are read again.

    Args:
        path: the folder; it must be new or empty.
        config: what to keep in ``config.json``, if anything.
        resume: take up the run that the folder holds, where it holds one: it begins anew, and what it asks for is
            answered by what was paid for (`store.paid` says how). It must be the same run: program, data, optimizer.
        anyway: ask also where the first requests of a run that is resumed were not recorded, or where recorded calls
            are gone.

    Attributes:
        earlier: what there is of a run that is resumed; None for a new one. See `train.events.Callback`.

    Raises:
        RunError: there is something in the folder, or no run that could be resumed; another process writes into it; or
            it cannot be written.

    Example:
        >>> import tempfile
        >>> folder = RunFolder(Path(tempfile.mkdtemp()) / "run", config={"seed": 0})
        >>> sorted(file.name for file in folder.path.glob("*.json*"))
        ['completions.jsonl', 'config.json', 'events.jsonl']
    """

    at_once = True
    """What was paid for is on disk before it is used; see `train.events.Callback`."""

    def __init__(
        self,
        path: str | Path,
        config: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
        anyway: bool = False,
    ) -> None:
        self.path = expanded(path)
        self._home = self.path.absolute()  # the program that is trained may change the working directory
        self._write = threading.Lock()
        self._places: dict[int, Place] = {}
        self._calls: Counter[int] = Counter()  # by phase
        self._tools: Counter[int] = Counter()  # likewise
        self._best: dict[str, str] = {}
        self._written: dict[str, str] = {}  # of these, what is in best/
        self._attached: set[str] = set()
        self._reach = Reach()
        self._secrets = secrets_named()
        self._encoded = [dumps(secret)[1:-1] for secret in self._secrets]
        self.earlier: Earlier | None = None
        self._undone = self._taken = False
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._begin(config, resume, anyway)
        except FileExistsError as error:
            if not self.path.is_dir():
                raise RunError(f"{unwritable(error, self.path)}; name another place") from None
            raise _in_use(self.path) from None
        except OSError as error:
            begun = resume and (self._home / "events.jsonl").is_file()
            repair = "the run is as it was, so resume it when that is mended" if begun else "name another place"
            raise RunError(f"{unwritable(error, self.path)}; {repair}") from None

    def _begin(self, config: Mapping[str, Any] | None, resume: bool, anyway: bool) -> None:
        """Take the folder, and open the journal; that of before is put aside, or left as it is where that fails."""
        found = not _is_unbegun(self.path)
        if found and not resume:
            raise _in_use(self.path)
        self._lock = Lock(self._home)
        opened: list[Lines] = []
        try:
            if found:
                check_resumable(self.path)
                self.earlier = Earlier(self._home, anyway=anyway)
                self.earlier.put_aside()
            self._room = Room(self._home)
            opened.append(Lines(self._home / "completions.jsonl", new=False))
            opened.append(Lines(self._home / "events.jsonl", new=self.earlier is None))  # from now on there is a run
            self._completions, self._events = opened
            self._tool_lines: Lines | None = None  # most runs have no tools
            if config is not None:
                write_atomically(self._home / "config.json", dumps({"format": FORMAT, **config}, indent=2) + b"\n")
        except BaseException:
            for lines in opened:  # Windows replaces no file that is open
                lines.close()
            if self.earlier is not None:
                with contextlib.suppress(OSError):
                    self.earlier.undo()
            self._lock.release()
            raise

    def for_run(self) -> Self:
        """It itself, for one run; see `train.events.Callback`.

        Raises:
            RunError: it was given to a run before.
        """
        if self._taken:
            raise RunError(f"{self.path}: a run folder is that of one run; give each run a RunFolder of its own")
        self._taken = True
        return self

    def on_end(self) -> None:
        """Let go of the folder, so that it can be resumed, moved or removed; later answers are still written down."""
        try:
            with self._write:  # Windows lets nobody replace a file that is open here
                for lines in self._opened():
                    lines.close()
            self._room.give_back()
        finally:  # Ctrl-C may come here, and a notebook's process goes on
            self._lock.release()

    def on_event(self, event: Event) -> None:
        """Write an event down.

        Raises:
            RunError: the disk is full, or the folder is gone.
        """
        if self._undone:
            return
        try:
            if isinstance(event, CallEnded):
                self._room.write(partial(self._on_call, event))
            elif isinstance(event, ToolEnded):
                self._room.write(partial(self._on_tool, event))
            elif not isinstance(event, PhaseAdvanced):
                self._on_other(event)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            repair = (
                "put the folder back as it was, and resume the run: what was paid for is in it"
                if gone
                else "when that is mended, resume the run: what was paid for is kept"
            )
            raise RunError(f"{unwritable(error, self._home)}; {repair}") from error

    def _on_call(self, event: CallEnded) -> None:
        error = event.record.error
        if isinstance(error, Stopped | BudgetExceeded | RunError) and costs_nothing(error):
            return  # it was never sent
        place = self._places.get(event.phase, Place(event.phase))
        entry = completion_to_json(event, place)
        line = dumps(entry)
        self._learn(secrets_among(key.get_secret_value() for key in event.record.keys))
        if self._tells(line):
            kept = redacted(entry, self._secrets)
            if kept["request"] != entry["request"]:
                kept["asked"] = digest({"purpose": entry["purpose"], **entry["request"]})
            line = dumps(kept)
        with self._write:
            for attached in attachments_in(event.record.request.messages):
                self._keep(attached)
            self._completions.append(line)
            self._calls[event.phase] += 1

    def _keep(self, attached: Attachment) -> None:
        """Have the bytes that a request names in their file."""
        if attached.name in self._attached:
            return
        file = self._home / attached.name
        inner_folder(self._home, file.parent.name)
        if not file.is_file():
            write_atomically(file, attached.content())
        self._attached.add(attached.name)

    def _on_tool(self, event: ToolEnded) -> None:
        entry = tool_to_json(event, self._places.get(event.phase, Place(event.phase)))
        self._learn(secrets_among(key.get_secret_value() for key in event.record.keys))
        line = self._without_secrets(entry)
        with self._write:
            for attached in attachments_in([event.record.result]):
                self._keep(attached)
            if self._tool_lines is None:
                self._tool_lines = Lines(self._home / "tools.jsonl", new=False)
            self._tool_lines.append(line)
            self._tools[event.phase] += 1

    def _opened(self) -> list[Lines]:
        """The files that it appends to."""
        return [each for each in (self._completions, self._events, self._tool_lines) if each is not None]

    def _learn(self, secrets: list[str]) -> None:
        """Know the keys of a model that was asked from now on; what came of its answers is written later."""
        if not set(secrets) <= set(self._secrets):
            with self._write:
                self._secrets = secrets_among((*secrets, *self._secrets))
                self._encoded = [dumps(secret)[1:-1] for secret in self._secrets]

    def _tells(self, text: bytes) -> bool:
        return any(secret in text for secret in self._encoded)

    def _without_secrets(self, entry: dict[str, Any], indent: int | None = None) -> bytes:
        text = dumps(entry, indent=indent)
        return dumps(redacted(entry, self._secrets), indent=indent) if self._tells(text) else text

    def _on_other(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            if self.earlier is not None:
                self.earlier.check_begun(event)
            self._best = dict(event.parameters)
            self._write_texts("seed", event.parameters)
            self._write_best()
        elif isinstance(event, Evaluated):
            self._reach = self._reach._replace(evaluations=self._reach.evaluations + 1)
            self._write_best()
            if self.earlier is not None:
                self.earlier.player.validation_ended()  # the first one is that of the seed texts
        elif isinstance(event, PhaseStarted):
            self._places[event.number] = Place(event.number, event.phase, event.step)
            if self.earlier is not None:
                self.earlier.phase_started(event)
        elif isinstance(event, StepEnded):
            if event.kept:
                self._best |= {change.name: change.after for change in event.changes if change.after != change.before}
            self._reach = self._reach._replace(steps=self._reach.steps + 1)
            self._write_best()
        if self.earlier is not None and self._brings_nothing(event, self.earlier):
            self._undo(self.earlier)
        elif isinstance(event, RunEnded):
            self._finish(event)
        else:
            counts = (self._calls[event.number], self._tools[event.number]) if isinstance(event, PhaseEnded) else ()
            self._events.append(self._without_secrets(event_to_json(event, time.time(), *counts)))

    def _finish(self, event: RunEnded) -> None:
        self._best |= event.result.best
        self._reach = self._reach._replace(ended=True)
        self._write_best(event.status)
        self._events.append(self._without_secrets(event_to_json(event, time.time())))
        found = self._without_secrets(result_to_json(event.result), indent=1)
        with self._write:  # before the result: a run that is killed here is one that goes on, and so comes here again
            for each in filter(None, (self._completions, self._tool_lines)):
                try:
                    each.sort()
                except OSError as error:  # such as no space for a second file; whoever waits for the result gets it
                    _log.warning("%s stays in the order of time: %s", each.path, reason_of(error))
        write_atomically(self._home / "result.json", found + b"\n")
        if self.earlier is not None and not self._is_behind(event.status):
            self.earlier.settle()

    def _brings_nothing(self, event: Event, earlier: Earlier) -> bool:
        """Whether a run ends that was refused before it asked for anything, or had no room in the budget for a call."""
        if isinstance(event, RunFailed):
            return earlier.refused
        return isinstance(event, RunEnded) and bool(event.result.shortage)

    def _undo(self, earlier: Earlier) -> None:
        """Have the folder as it was before this run, which has brought nothing."""
        with self._write:
            self._undone = True
            for lines in self._opened():
                lines.close()
            earlier.undo()

    def _is_behind(self, status: Status | None) -> bool:
        """Whether what was put aside tells more than what this run has come to.

        Args:
            status: how the run ended; None where it goes on.
        """
        return self.earlier is not None and self._reach < self.earlier.reach and status != "finished"

    def _write_best(self, status: Status | None = None) -> None:
        """Write what has changed of the best texts, unless those that the folder has are from farther on."""
        if self._is_behind(status):
            return
        changed = {name: text for name, text in self._best.items() if self._written.get(name) != text}
        self._write_texts("best", changed)
        self._written |= changed

    def _write_texts(self, folder: str, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            content = text.encode("utf-8", "backslashreplace")
            write_atomically(inner_folder(self._home, folder) / f"{file_name(name, self._best)}.txt", content)
            if folder == "best" and len(self._best) == 1:
                write_atomically(self._home / "best_prompt.txt", content)


def _is_unbegun(folder: Path) -> bool:
    """Whether a folder holds nothing, or what a process leaves that was killed before it had begun a run."""
    left = {file.name: file for file in folder.iterdir() if file.name != LOCK}
    completions = left.pop("completions.jsonl", None)
    return not left and (completions is None or completions.stat().st_size == 0)


def check_resumable(folder: Path) -> None:
    """Check that a folder holds a run that has not come to its end.

    Raises:
        RunError: it holds no run, or one that is finished.
    """
    if read_run(folder).finished:
        raise RunError(
            f"{folder}: the run is finished, so there is nothing to resume; `textgrad-engine show {typed(folder)}` "
            "prints its result"
        )


def _in_use(path: Path) -> RunError:
    if not (path / "events.jsonl").is_file():
        return RunError(f"{path}: a run folder must be new or empty, and this one holds files; name another one")
    python = not (path / "config.json").is_file()
    again = "tg.Trainer(run_dir=..., resume=True)" if python else f"`textgrad-engine resume {typed(path)}`"
    return RunError(
        f"{path}: a run folder must be new or empty, and this one holds a run; name another one, or go on with that "
        f"run if it is unfinished: {again}"
    )
