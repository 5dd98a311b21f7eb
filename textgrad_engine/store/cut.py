"""How far a run had come that was cut, as its events tell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from textgrad_engine.store.reader import Run
from textgrad_engine.train.events import TimeIsUp

_OF_STEPS = ("backward", "optimize", "search", "score")
"""The phases in which critics and optimizers are asked."""


def whole_phases(events: Iterable[Mapping[str, Any]]) -> dict[int, tuple[str, int]]:
    """The phases of one sitting that asked critics and optimizers all that they had to ask: their names and steps.

    Only those of a step that came to its end, as events of an older version do not say that a phase lacks calls.
    """
    begun: dict[int, tuple[str, int]] = {}
    ended: dict[int, tuple[str, int]] = {}
    found: dict[int, tuple[str, int]] = {}
    for event in events:
        kind, number = event.get("event"), int(event.get("number", 0))
        if kind == "PhaseStarted" and event.get("phase") in _OF_STEPS:
            begun[number] = event["phase"], event["step"]
        elif kind == "PhaseEnded" and number in begun and not event.get("lacking"):
            ended[number] = begun[number]
        elif kind == "StepEnded":
            found |= {number: of for number, of in ended.items() if of[1] == event.get("step")}
    return found


def time_is_up(events: Iterable[Mapping[str, Any]]) -> TimeIsUp | None:
    """The last event of a run that says that its time is up; None where there is none, or the search went on behind it.

    Example:
        >>> time_is_up([{"event": "TimeIsUp", "steps": 3, "minutes": 5.0}, {"event": "RunEnded"}])
        TimeIsUp(steps=3, minutes=5.0)
    """
    found = None
    for event in events:
        if event.get("event") == "TimeIsUp":
            found = TimeIsUp(int(event["steps"]), event["minutes"])
        elif event.get("event") == "StepEnded" and found is not None and event.get("step", 0) > found.steps:
            found = None
    return found


def validated_in(events: Iterable[Mapping[str, Any]]) -> float:
    """How many seconds the first validation took, in the sitting that took longest: to play it back takes none."""
    longest, number, begun = 0.0, None, ""
    for event in events:
        kind = event.get("event")
        if kind == "RunStarted":
            number = None
        elif (kind, event.get("phase"), event.get("step")) == ("PhaseStarted", "validate", 0) and number is None:
            number, begun = event.get("number"), event.get("time", "")
        elif kind == "PhaseEnded" and number is not None and event.get("number") == number:
            with contextlib.suppress(TypeError, ValueError):  # no time, or none that anybody can read
                taken = datetime.fromisoformat(event.get("time", "")) - datetime.fromisoformat(begun)
                longest = max(longest, taken.total_seconds())
    return longest


def has_event(run: Run, *what: object) -> bool:
    """Whether there was an event of a kind and a phase, and maybe of a step."""
    events = ((event.get("event"), event.get("phase"), event.get("step")) for event in (*run.earlier, *run.events))
    return any(event[: len(what)] == what for event in events)


def begun_with(run: Run) -> Mapping[str, Any]:
    """What the last event says with which the run was begun; nothing where there is none."""
    begun = [event for event in (*run.earlier, *run.events) if event.get("event") == "RunStarted"]
    return begun[-1] if begun else {}


def has_validated(run: Run) -> bool:
    """Whether all is on record that the validation of the seed texts asks for; see NOTE [A phase ends with its calls]
    in `train.phases`.
    """
    seed: object = None
    lacking: set[object] = set()
    for event in (*run.earlier, *run.events):
        number = event.get("number")
        if event.get("event") == "PhaseEnded":
            (lacking.add if event.get("lacking") else lacking.discard)(number)
        elif (event.get("event"), event.get("phase"), event.get("step")) == ("Evaluated", "validate", 0):
            seed = number if seed is None else seed  # another one is of the end of a search that came to no step
            if number == seed and number not in lacking:
                return True
    return False


def drawn(events: Iterable[Mapping[str, Any]]) -> int:
    """How many test examples a sitting has drawn."""
    begun = (event for event in events if (event.get("event"), event.get("phase")) == ("PhaseStarted", "test"))
    return int(next((event["total"] for event in begun), 0))
