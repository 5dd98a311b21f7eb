"""How far a run had come that was cut: what its events say, of one sitting or of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.store.cut import (
    begun_with,
    drawn,
    has_event,
    has_validated,
    time_is_up,
    validated_in,
    whole_phases,
)
from textgrad_engine.store.reader import Run
from textgrad_engine.train.events import TimeIsUp

Events = list[dict[str, Any]]


def started(**more: Any) -> dict[str, Any]:
    return {"event": "RunStarted", **more}


def begins(number: int, phase: str, step: int, **more: Any) -> dict[str, Any]:
    return {"event": "PhaseStarted", "number": number, "phase": phase, "step": step, **more}


def ends(number: int, **more: Any) -> dict[str, Any]:
    return {"event": "PhaseEnded", "number": number, **more}


def step(number: int) -> dict[str, Any]:
    return {"event": "StepEnded", "step": number}


def up(steps: int, minutes: float = 5.0) -> dict[str, Any]:
    return {"event": "TimeIsUp", "steps": steps, "minutes": minutes}


def scored(number: int, phase: str = "validate", at: int = 0) -> dict[str, Any]:
    return {"event": "Evaluated", "number": number, "phase": phase, "step": at}


def run_of(*sittings: Events) -> Run:
    """A run of so many sittings, the last of which came farthest."""
    *before, last = sittings or ([],)
    earlier = tuple(event for sitting in before for event in sitting)
    return Run(Path("run"), None, None, {}, {}, tuple(last), (), (), (), earlier=earlier)


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([step(3), up(3)], TimeIsUp(3, 5.0)),
        ([step(3), up(3), step(1), step(2)], TimeIsUp(3, 5.0)),  # a sitting that was killed on its way there
        ([step(3), up(3), step(1), step(2), step(3)], TimeIsUp(3, 5.0)),  # one that was killed in the test
        ([step(3), up(3), step(3), step(4)], None),  # it was given more time
        ([step(3), up(3), step(4), up(4, 9.0)], TimeIsUp(4, 9.0)),
        ([step(3)], None),
    ],
)
def test_the_time_of_a_run_is_up_where_its_search_did_not_go_on(events: Events, found: TimeIsUp | None) -> None:
    """A sitting that plays its steps back is not given time by that."""
    assert time_is_up(events) == found


def clock(seconds: int) -> str:
    return f"2026-11-30T12:00:{seconds:02}+00:00"


def validated(seconds: int, number: int = 1) -> Events:
    """A sitting whose first validation took so long, and a later one, of the end of a search, longer."""
    return [
        started(),
        begins(number, "validate", 0, time=clock(1)),
        ends(number + 5, time=clock(50)),
        ends(number, time=clock(1 + seconds)),
        begins(number + 1, "validate", 0, time=clock(20)),
        ends(number + 1, time=clock(59)),
        begins(number + 2, "validate", 1, time=clock(0)),
        ends(number + 2, time=clock(59)),
    ]


def test_the_first_validation_took_as_long_as_in_the_sitting_that_paid_for_it() -> None:
    """By it a limit in minutes is kept: where it is played back it takes no time, and a later one tells nothing."""
    assert validated_in(validated(7)) == 7
    assert validated_in([*validated(7), *validated(0)]) == 7
    assert validated_in([*validated(2), *validated(7, number=2), *validated(1)]) == 7
    assert validated_in([started(), begins(1, "validate", 0, time=clock(1))]) == 0
    assert validated_in([started(), begins(1, "test", 0, time=clock(1)), ends(1, time=clock(9))]) == 0


@pytest.mark.parametrize("time", [None, "", "noon"])
def test_a_time_that_nobody_can_read_takes_no_time(time: Any) -> None:
    """As in a folder that was edited; the times of another sitting are read all the same."""
    broken = [started(), begins(1, "validate", 0, time=clock(1)), ends(1, time=time)]
    assert validated_in(broken) == 0
    assert validated_in([*broken, *validated(3)]) == 3


@pytest.mark.parametrize(
    ("sittings", "whole"),
    [
        ([], False),
        ([[started(), begins(1, "validate", 0), ends(1)]], False),  # most of its answers were lost, so it has no score
        ([[begins(1, "validate", 0), ends(1), scored(1)]], True),
        ([[begins(2, "validate", 0), ends(2, lacking=True), scored(2)]], False),  # what the program did not read
        ([[ends(2, lacking=True), scored(2)], [ends(2), scored(2)]], True),  # the next sitting asked for it
        ([[ends(2, lacking=True), scored(2)], [ends(2, lacking=True), scored(2)]], False),
        ([[ends(2), scored(2)], [ends(2, lacking=True)]], True),
        ([[ends(3), scored(3, "test")], [ends(4), scored(4, at=2)]], False),
        # a search that came to no step scores the seed texts again at its end, with all that it asks for
        ([[ends(2, lacking=True), scored(2), ends(5), scored(5)]], False),
    ],
)
def test_the_seed_texts_are_validated_where_all_that_it_asks_for_is_on_record(
    sittings: list[Events], whole: bool
) -> None:
    """By that a resumed run knows whether a request that is not on record is one of another program."""
    assert has_validated(run_of(*sittings)) is whole


def test_a_phase_is_whole_once_its_step_has_ended_and_nothing_lacks() -> None:
    """Only then is a request of it that is not on record one that has changed."""
    events = [
        *(begins(1, "validate", 0), ends(1)),
        *(begins(2, "forward", 1), begins(3, "backward", 1), ends(3), ends(2), begins(4, "optimize", 1), ends(4)),
        step(1),
        *(begins(5, "backward", 2), ends(5, lacking=True), begins(6, "optimize", 2), ends(6), ends(9)),
        step(2),
        *(begins(7, "backward", 3), ends(7)),  # cut before the end of the step
    ]
    assert whole_phases(events) == {3: ("backward", 1), 4: ("optimize", 1), 6: ("optimize", 2)}
    searching = [begins(1, "search", 1), begins(2, "search", 2), ends(1), ends(2), step(1)]
    assert whole_phases(searching) == {1: ("search", 1)}


def test_a_run_was_begun_with_what_its_farthest_sitting_says() -> None:
    """Nothing is known of one that was killed before."""
    assert begun_with(run_of([started(of=1)], [started(of=2), step(1)])) == started(of=2)
    assert begun_with(run_of([started(of=1)], [])) == started(of=1)
    assert begun_with(run_of()) == {}


def test_a_sitting_has_drawn_the_examples_of_its_first_test() -> None:
    """The texts of before are tested on as many as the best ones, by phases of their own."""
    tests = [begins(1, "validate", 0, total=9), begins(2, "test", 3, total=6), begins(3, "test", 3, total=6)]
    assert drawn(tests) == 6
    assert drawn(tests[:1]) == 0


def test_an_event_of_any_sitting_is_found_by_what_is_asked_of_it() -> None:
    """Of a kind and a phase, and of a step where one is named."""
    run = run_of([scored(1), step(1)], [scored(2, "test", at=4)])
    assert has_event(run, "Evaluated", "validate")
    assert has_event(run, "Evaluated", "test", 4)
    assert not has_event(run, "Evaluated", "test", 3)
    assert not has_event(run_of([scored(1)]), "Evaluated", "test")
