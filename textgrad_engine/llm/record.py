"""Cassettes: what models were asked and what they answered, written to a file and played back without any model."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from textgrad_engine.errors import BudgetExceeded, ModelError, RequestRefused, RunError, Stopped
from textgrad_engine.llm.answers import (
    Answer,
    Answers,
    Equal,
    belongs,
    difference,
    digest,
    distance,
    entry_of,
    error_from_json,
    error_to_json,
)
from textgrad_engine.llm.attachments import without_attachments
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.lines import append_line
from textgrad_engine.llm.model import Model, Wrapper, innermost
from textgrad_engine.llm.places import numbering_places
from textgrad_engine.llm.prices import price
from textgrad_engine.llm.redact import redacted, secrets_named, secrets_of, without_password
from textgrad_engine.llm.request import Purpose, Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.stop import check_stop
from textgrad_engine.llm.toolcalls import (
    ToolCall,
    ToolOnRecord,
    ToolRecord,
    ToolResult,
    ToolsOnRecord,
    are_observed,
    given_again,
    giving_ids,
    id_of,
    inside,
    is_run_again,
    tell_of,
    tool_from_json,
    tool_to_json,
)
from textgrad_engine.llm.usage import call_item, call_place, call_tool, mark, next_moment, under_way, usage_of

__all__ = [
    "Absent",
    "Player",
    "Recording",
    "Replay",
    "Taped",
    "playing",
    "record",
    "replay",
    "replayed_model",
    "tool_result",
]

_FORMAT = {"cassette": 1}


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
        self.path = Path(path).absolute()
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
            append_line(self._fd, _line(_FORMAT))
        except OSError as error:
            raise RunError(f"{self.path}: the cassette cannot be written: {error.strerror or error}") from None

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
            raise RunError(f"{self.path}: the cassette cannot be written: {error.strerror or error}") from error

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r}, {self.answers} answers)"


class Replay:
    """A cassette that is played back.

    The n-th equal request gets the n-th answer, whatever is asked in between; of equal requests for different examples,
    or items of a `pmap`, each gets the answers of its own.

    Args:
        path: the file.

    Raises:
        RunError: there is no such file, or it is damaged; the message names the line.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self.outer: Player | None = None
        self._lock = threading.Lock()
        self._all, tools = _read(self.path)
        self.tools = ToolsOnRecord(tools)
        ordered = sorted(self._all, key=lambda each: each.nth)
        self._answers = Answers(ordered, belongs)
        self._first_unknown: str | None = None  # what was said of the first unknown request

    @property
    def left(self) -> int:
        """How many recorded answers have not been asked for yet."""
        return len(self._answers)

    async def answer(self, model: Budgeted, request: Request) -> Completion:
        """What was recorded for a request; the budgets around it are charged as they were then.

        Raises:
            BudgetExceeded: they have no room for the call.
            RequestRefused: it was not recorded, or not as often; the message names the nearest one and the difference
                (of the first that was not recorded, as the others mostly differ in the same).
            ModelError: what the recorded request failed with.
        """
        entry = entry_of(model, request)
        name = None if isinstance(innermost(model), Absent) else entry["model"]

        def rank(each: Answer) -> Any:
            if name not in (None, each.model):
                return None
            return each.example != entry["example"], *distance(each, entry), each.nth, each.line

        equal = self._answers.equal_to(entry)
        taken = self._answers.take(equal, rank, entry["example"], elsewhere=True)
        if taken is not None:
            return await self._answers.play(taken, model, request)

        def refuse() -> Completion:
            raise mark(RequestRefused(self._refusal(entry, equal, name)), sent=False)

        return await model.play(request, refuse)

    async def tool(self, call: ToolCall) -> ToolRecord | None:
        """What a tool gave when that was recorded; None where it was not, as in a cassette of before."""
        taken = self.tools.take(call, elsewhere=True)
        if taken is None:
            return None
        return await given_again(call, taken, self.tools, self._answers, self._answers.play)

    def model_name(self, purpose: Purpose) -> str:
        """The name of the model that was asked for a purpose, else of the first that was asked at all."""
        names = [taken.model for taken in self._all if taken.purpose == purpose] or [each.model for each in self._all]
        return names[0] if names else "replayed"

    def _refusal(self, entry: dict[str, Any], equal: Equal | None, name: str | None) -> str:
        what = f"a {entry['request']['purpose']} request to {entry['model']!r}"
        if equal is not None:
            if name is not None and name not in equal.models:
                models = ", ".join(map(repr, sorted(equal.models)))
                return f"{self.path}: {what} was recorded with {models} only; record it anew"
            times = "once" if equal.count == 1 else f"{equal.count} times"
            return f"{self.path}: {what} was recorded {times}, and is asked once more; record it anew"
        return f"{self.path}: {what} was not recorded; {self._unlike(entry['request'])}"

    def _unlike(self, request: dict[str, Any]) -> str:
        """What an unknown request differs from, and in what; of further ones, what the first of them did.

        A prompt that was changed makes all requests unknown, and to compare two of them takes a while.
        """
        with self._lock:
            if self._first_unknown is not None:
                return f"nor was one that was asked before it, of which {self._first_unknown}"
            self._first_unknown = "the cassette is empty"
            if self._all:
                advice = "If the change is meant, record the cassette anew."
                self._first_unknown = f"{difference(self._all, request)}\n{advice}"
            return self._first_unknown

    def __repr__(self) -> str:
        return f"Replay({str(self.path)!r}, {self.left} of {len(self._all)} answers left)"


class Player(Protocol):
    """What answers calls in the place of their model, or asks it.

    Attributes:
        outer: what answers in the place of the model where this one has no answer; None where that asks the model.
        tools: what is on record of tools.
    """

    outer: Player | None
    tools: ToolsOnRecord

    async def answer(self, model: Budgeted, request: Request) -> Completion:
        """The answer to a request.

        Args:
            model: the model, ``.inner``, and the way to charge the budgets for what is played back.
            request: what is asked.
        """
        ...

    async def tool(self, call: ToolCall) -> ToolRecord | None:
        """What a call of a tool had given; None where that is not known, and the tool is run."""
        ...


async def tool_result(call: ToolCall, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
    """What a call of a tool gives, or gave where it is played back; cassettes and observers around are told of it.

    See NOTE [Tools that are played back] in `llm.toolcalls`.

    Args:
        call: the call.
        run: runs the tool.

    Raises:
        Stopped: the run was stopped; the tool was not run.
        TextgradError: what `run` raised, or a budget has no room for what was asked inside of the tool.
    """
    check_stop()
    player = _player.get()
    if player is None and not _recordings.get() and not are_observed():
        with under_way():
            return await run()
    started, began = next_moment(), time.perf_counter()
    numbered = [(recording, recording.begin_tool()) for recording in _recordings.get()]
    record = None if player is None else await player.tool(call)
    if record is None:
        name = id_of(call, () if player is None else player.tools.ids)
        with under_way(), inside(name):
            result = await run()
        record = ToolRecord(
            call.name,
            call.arguments,
            result,
            name,
            call.also,
            call.turn.example,
            call_item.get(),
            call_tool.get(),
            started,
            time.perf_counter() - began,
            call.turn.keys,
            call_place.get(),
        )
    else:
        if is_run_again(call, record):
            with under_way(), inside(record.id):
                record = replace(record, result=await run())
        item, tool, place = call_item.get(), call_tool.get(), call_place.get()
        record = replace(record, item=item, tool=tool, place=place, started=started, keys=call.turn.keys)
    for recording, nth in numbered:
        recording.end_tool(nth, record)
    tell_of(record)
    return record.result


class Taped(Wrapper):
    """Writes calls to the cassettes that are recorded around them, or has what is played back there answer.

    What says something about the run, and not about the request, is not recorded: that it was stopped, and that a
    budget had no room for a call. In a replay, budgets say so themselves.
    """

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._charging = Budgeted(inner)

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Pass the request on and record what came of it, or play it back."""
        player, recordings = _player.get(), _recordings.get()
        if player is None and not recordings:
            return self.inner.complete(request)
        return self._taped(request, player, recordings)

    async def _taped(self, request: Request, player: Player | None, recordings: tuple[Recording, ...]) -> Completion:
        entries = [(each, each.begin(self.inner, request)) for each in recordings]
        try:
            if player is not None:
                completion = await player.answer(self._charging, request)
            else:
                completion = await self.inner.complete(request)
        except ModelError as error:
            if isinstance(error, Stopped) or (isinstance(error, BudgetExceeded) and usage_of(error) is None):
                raise
            for recording, entry in entries:
                recording.end(entry, self.inner, error)
            raise
        for recording, entry in entries:
            recording.end(entry, self.inner, completion)
        return completion


class Absent:
    """Stands where a model would stand, when a cassette is replayed and no model was named.

    Args:
        name: of the model that was recorded.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def free(self) -> bool:
        """Whether nothing is known of what it costs but what was recorded."""
        return price(self.name, Usage()) is None

    async def complete(self, request: Request) -> Completion:
        """Never answers.

        Raises:
            RequestRefused: always; the cassette answers before a request comes here.
        """
        raise mark(RequestRefused(f"{self.name!r} was recorded, and is not here to answer"), sent=False)

    def __repr__(self) -> str:
        return f"Absent({self.name!r})"


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
        >>> import tempfile
        >>> with record(Path(tempfile.mkdtemp()) / "run.jsonl") as recording:
        ...     recording.answers
        0
    """
    made = Recording(path)
    token = _recordings.set((*_recordings.get(), made))
    try:
        with numbering_places(), giving_ids():
            yield made
    finally:
        _recordings.reset(token)


@contextlib.contextmanager
def replay(path: str | os.PathLike[str]) -> Iterator[Replay]:
    """Inside the block, calls are answered from a cassette; none is sent, and no model need be named.

    Tools that models call (`ops.chat_completion`) are not run: what they gave was recorded, and is given again. Where
    it was not, as in cassettes of before, they are run.

    Usage is reported as it was recorded, and charged to the budgets around a call as it was then: what a program
    decides by what is left of them comes out the same. For limits in tokens or dollars, name the models as they were
    named then: the most that a call may need depends on their ``max_tokens`` and prices. Attempts that failed at
    unknown cost, as by a timeout, held some of a budget then and hold nothing now. What was never recorded raises
    `RequestRefused`.

    Args:
        path: the file that `record` wrote.

    Raises:
        RunError: there is no such file, or it is damaged.
    """
    made = Replay(path)
    with playing(made), numbering_places():
        yield made


@contextlib.contextmanager
def playing(player: Player) -> Iterator[None]:
    """Inside the block, `player` answers calls; its `outer` is who did so around the block."""
    player.outer = _player.get()
    token = _player.set(player)
    try:
        yield
    finally:
        _player.reset(token)


def replayed_model(purpose: Purpose) -> Absent | None:
    """What stands for the model of a purpose while a cassette is replayed; None while none is."""
    player = _player.get()
    while player is not None and not isinstance(player, Replay):
        player = player.outer
    return None if player is None else Absent(player.model_name(purpose))


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _read(path: Path) -> tuple[list[Answer], list[ToolOnRecord]]:
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise RunError(f"{path}: the cassette cannot be read: {(error.strerror or str(error)).lower()}") from None
    if not lines or _parsed(lines[0]) != _FORMAT:
        raise RunError(f"{path}:1: this is no cassette of this version; record it anew with llm.record")
    found: list[Answer] = []
    tools: list[ToolOnRecord] = []
    for number, line in enumerate(lines[1:], 2):
        entry = _parsed(line)
        if entry is None and not line.endswith(b"\n"):
            break  # the recording was killed while it wrote its last line
        try:
            if entry is None:
                raise ValueError("it is no JSON object")
            if "id" in entry:
                tools.append(ToolOnRecord(tool_from_json(entry), int(entry.get("nth", len(tools)))))
                continue
            completion = entry.get("completion")
            outcome = error_from_json(entry["error"]) if completion is None else Completion.model_validate(completion)
            request = without_attachments(entry["request"])  # those of before have the bytes
            place = (entry["model"], request["purpose"], entry["example"], entry["nth"], number)
            within = {"item": tuple(entry.get("item", ())), "tool": entry.get("tool", "")}
            within["place"] = tuple(entry.get("place", ()))
            found.append(Answer(*place, digest(request), outcome, entry.get("asked"), request, **within))
        except (ValidationError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path}:{number}: the line is damaged: {error}; record the cassette anew") from None
    return found, tools


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


_recordings: ContextVar[tuple[Recording, ...]] = ContextVar("textgrad_engine_recordings", default=())
_player: ContextVar[Player | None] = ContextVar("textgrad_engine_replay", default=None)
