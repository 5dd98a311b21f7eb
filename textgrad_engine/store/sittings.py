"""The sittings of a run: what it wrote down from when it began, or began anew, until its end, and how far it came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from textgrad_engine.errors import RunError
from textgrad_engine.store.files import read_lines, read_object
from textgrad_engine.store.paid import aside, numbers_aside
from textgrad_engine.store.records import FORMAT, event_from_json, result_from_json, use_that_version
from textgrad_engine.train.events import Evaluated, RunStarted, StepEnded
from textgrad_engine.train.result import TrainResult


class Reach(NamedTuple):
    """How far a run has come, by what there is to be told of it; the farther, the greater.

    One that is resumed begins anew (`store.paid`), and knows less for a while than what was put aside. So the folder
    tells what that told, until the run has come as far.

    Attributes:
        steps: how many of its steps are over.
        ended: whether there is a result.
        evaluations: on the validation and test sets.
    """

    steps: int = 0
    ended: bool = False
    evaluations: int = 0


@dataclass(frozen=True)
class Sitting:
    """What a run wrote down from when it began, or began anew, until its end."""

    events: tuple[dict[str, Any], ...]
    steps: tuple[StepEnded, ...]
    evaluations: tuple[Evaluated, ...]
    result: TrainResult | None

    @property
    def reach(self) -> Reach:
        """How far the run had come."""
        return Reach(len(self.steps), self.result is not None, len(self.evaluations))


def sittings_of(path: Path, notes: list[str]) -> list[Sitting]:
    """Those that are kept, in order; a result is put aside before the events that it belongs to."""
    found: list[Sitting] = []
    results: list[Path] = []
    for number in numbers_aside(path):
        results.insert(0, aside(path, "result.json", number))
        if (events := aside(path, "events.jsonl", number)).is_file():
            found.append(_sitting(events, results, []))
            results = []
    return [*found, _sitting(path / "events.jsonl", [path / "result.json", *results], notes)]


def _sitting(path: Path, results: Sequence[Path], notes: list[str]) -> Sitting:
    """One of them, with the first result that is there when its events have been read: it may just be ending."""
    events = tuple(read_lines(path, notes))
    parsed = [_parsed(path, number, event) for number, event in enumerate(events, 1)]
    return Sitting(
        events,
        tuple(event for event in parsed if isinstance(event, StepEnded)),
        tuple(event for event in parsed if isinstance(event, Evaluated)),
        next(filter(None, map(_result, results)), None),
    )


def overtaken(last: Sitting) -> str:
    """What is to be known of a run that was resumed and has not come as far as before."""
    what = "the run was resumed, but is not yet as far as before; this shows how far it was then"
    error = error_of(last.events).partition("\n")[0]
    return f"{what}; it ended with an error: {error}" if error else what


def _parsed(path: Path, number: int, event: dict[str, Any]) -> RunStarted | Evaluated | StepEnded | None:
    try:
        return event_from_json(event)
    except RunError as error:
        raise RunError(f"{path}:{number}: the event was damaged: {error}; restore the file") from None


def _result(path: Path) -> TrainResult | None:
    body = read_object(path)
    if body is None:
        return None
    try:
        return result_from_json(body)
    except RunError as error:
        other = body.get("format") not in (None, FORMAT)  # whoever deleted it would lose what the newer version found
        repair = use_that_version(body) if other else "restore the file, or delete it to see what the events say"
        raise RunError(f"{path}: cannot be used: {error}; {repair}") from None


def error_of(events: Iterable[dict[str, Any]]) -> str:
    """What a sitting ended with, class and message first, a note a line; "" where it ended otherwise, or not yet."""
    failed = next((event for event in events if event.get("event") == "RunFailed"), None)
    if failed is None:
        return ""
    notes = failed.get("notes")
    return "\n".join(map(str, [failed.get("error", "unknown"), *(notes if isinstance(notes, list) else [])]))
