"""The phases of a run: numbered, told in order, ended whatever happens, and known to the calls inside them."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from textgrad_engine import dispatch
from textgrad_engine.dispatch import scope
from textgrad_engine.train.events import (
    CallEnded,
    Event,
    PhaseAdvanced,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunStarted,
    current_phase,
)
from textgrad_engine.train.phases import RunPhases
from textgrad_engine.train.telling import Audience


class Told:
    """Hears of phases; with ``fails``, it fails so at each unit of one."""

    def __init__(self, *, fails: type[BaseException] | None = None) -> None:
        self.events: list[Event] = []
        self.fails = fails
        self.phases = RunPhases(Audience([self]))

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        if self.fails is not None and isinstance(event, PhaseAdvanced):
            raise self.fails("no space left")


@pytest.mark.parametrize("kind", [OSError, SystemExit, KeyboardInterrupt])
def test_a_callback_that_fails_is_raised_when_the_phase_is_over(kind: type[BaseException]) -> None:
    """Not where a unit is done, which may be on the thread of the event loop; the end is told before."""
    told, before, gone_on = Told(fails=kind), current_phase.get(), []
    with pytest.raises(kind, match="no space left"), told.phases.phase("validate", 1, 1) as advance:
        gone_on.append(advance())
    assert gone_on
    assert told.events[-1] == PhaseEnded(1)
    assert current_phase.get() == before


def test_what_a_phase_waits_for_in_vain_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once: else a call that never ends, and that nobody reads, holds a run up without a word."""
    monkeypatch.setattr(scope, "_PATIENCE", 0.0)
    said = threading.Event()
    watch = logging.Handler()
    watch.emit = lambda record: said.set()  # type: ignore[method-assign]
    logging.getLogger("textgrad_engine.dispatch").addHandler(watch)
    try:
        told = Told()
        with told.phases.phase("validate", 1, 0):
            asked = [dispatch.submit(lambda: asyncio.to_thread(said.wait, 60), label=f"answer {n}") for n in (1, 2)]
    finally:
        logging.getLogger("textgrad_engine.dispatch").removeHandler(watch)
    assert [call.result() for call in asked] == [True, True]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("the phase 'validate' has what it needs, and waits for what was asked for")
    assert "answer " in line
    assert line.endswith(", and 1 more; Ctrl-C ends it")
    assert told.events[-1] == PhaseEnded(1)


def test_a_phase_does_not_wait_for_the_calls_of_a_proposal_that_it_begins() -> None:
    """How far the others are would decide when a search goes on, by who is quicker, and lanes would stand idle."""
    told, gate = Told(), threading.Event()
    with told.phases.phase("score", 1, 0), told.phases.proposal(1):
        late = dispatch.submit(lambda: asyncio.to_thread(gate.wait, 60))
    assert told.events[-1] == PhaseEnded(1)
    assert not late.done
    gate.set()
    assert late.result() is True


def test_a_phase_that_nobody_could_be_told_of_has_not_begun() -> None:
    """What runs afterwards, such as the next run of a notebook, does not belong to it."""

    class Full:
        def on_event(self, event: Event) -> None:
            raise OSError("no space left")

    before = current_phase.get()
    with pytest.raises(OSError, match="no space left"), RunPhases(Audience([Full()])).phase("validate", 1, 1):
        pytest.fail("the phase has begun")
    assert current_phase.get() == before


def test_nothing_is_told_of_a_phase_that_is_over() -> None:
    """An answer may come when a run was interrupted; and the phase ended with its error, too."""
    told = Told()
    advances = []

    def interrupted() -> None:
        with told.phases.phase("forward", 1, 3) as advance:
            advances.append(advance)
            advance()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    advances[0]()
    assert told.events == [PhaseStarted(1, "forward", 1, 3), PhaseAdvanced(1, 1), PhaseEnded(1)]


def test_the_phase_of_a_proposal_goes_on_behind_its_block() -> None:
    """It ends when it is decided about, or dropped; once, and nothing is told of what was no proposal."""
    told, before = Told(), current_phase.get()
    inside = []
    for number in (1, 2, 3):
        with told.phases.proposal(number):
            inside.append(current_phase.get())
    assert (inside, current_phase.get(), told.phases.last) == ([1, 2, 3], before, 3)
    told.events.clear()
    for number in (2, 2, 9):
        told.phases.end_proposal(number)
    assert told.events == [PhaseEnded(2)]
    for _ in range(2):
        told.phases.end_proposals()
    assert told.events == [PhaseEnded(2), PhaseEnded(1), PhaseEnded(3)]


def test_events_come_in_order_and_one_at_a_time(world: Any, rows: Any) -> None:
    """A phase's events lie between its start and end, only backward runs inside forward, and every unit is told."""
    here = world("HALF", "SHOUT")
    listener = world.listener()
    here.fit(rows("bee", "dog", "fox"), rows("ant", "hen"), rows("gnu"), max_epochs=2, callbacks=[listener])
    events = [event for event in listener.events if not isinstance(event, CallEnded)]
    assert isinstance(events[0], RunStarted)
    assert (events[0].train, events[0].val, events[0].test, events[0].steps) == (3, 2, 1, 4)
    assert isinstance(events[-1], RunEnded)
    opened: list[PhaseStarted] = []
    done: dict[int, int] = {}
    for event in events:
        if isinstance(event, PhaseStarted):
            assert [phase.phase for phase in opened] == (["forward"] if event.phase == "backward" else [])
            opened.append(event)
            done[event.number] = 0
        elif isinstance(event, PhaseAdvanced):
            assert event.number in [phase.number for phase in opened]
            assert event.done == done[event.number] + 1
            done[event.number] += 1
        elif isinstance(event, PhaseEnded):
            last = opened.pop()
            assert (event.number, done[last.number]) == (last.number, last.total)
        else:
            assert opened == []
    started = listener.of(PhaseStarted)
    assert [event.number for event in started] == list(range(1, len(started) + 1))
    assert [(event.phase, event.step) for event in started][:6] == [
        ("validate", 0), ("forward", 1), ("backward", 1), ("optimize", 1), ("validate", 1), ("forward", 2),
    ]  # fmt: skip
    assert {event.phase for event in started[-2:]} == {"test"}


def test_calls_know_their_phase(world: Any, rows: Any) -> None:
    """Every call is reported once, under the phase that made it, with its example."""
    here = world("SHOUT")
    listener = world.listener()
    here.fit(rows("bee"), rows("ant", "cat"), callbacks=[listener])
    phases = {event.number: event.phase for event in listener.of(PhaseStarted)}
    calls = listener.of(CallEnded)
    assert len(calls) == len(here.model.requests)
    found = [(phases[call.phase], call.record.purpose, call.record.key) for call in calls]
    val = [("validate", "forward", "ant"), ("validate", "forward", "cat")]
    assert (sorted(found[:2]), sorted(found[5:7]), sorted(found[7:])) == (val, val, val)
    assert found[2:5] == [
        ("forward", "forward", "bee"),
        ("backward", "backward", "bee"),
        ("optimize", "optimizer", "step"),
    ]
