from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import dispatch
from textgrad_engine.train.events import Event, PhaseEnded, StopTraining
from textgrad_engine.train.telling import Audience


class Told:
    """Notes the number of each event, on which thread it came, and does something about it."""

    def __init__(self, then: Callable[[int], Any] = lambda number: None) -> None:
        self.numbers: list[int] = []
        self.on_loop: list[bool] = []
        self.then = then
        self._busy = threading.Lock()

    def on_event(self, event: Event) -> None:
        assert isinstance(event, PhaseEnded)
        assert self._busy.acquire(blocking=False), "two events at once"
        try:
            self.numbers.append(event.number)
            self.on_loop.append(dispatch.in_loop_thread())
            self.then(event.number)
        finally:
            self._busy.release()


class Journal(Told):
    at_once = True


def on_the_loop(work: Callable[[], Any]) -> Any:
    """What a function gives on the event-loop thread; waits for it."""
    return dispatch.submit(work).result()


def test_the_event_loop_thread_leaves_its_events_to_who_is_telling() -> None:
    """It goes on at once, and they come behind the one that is told, in order."""

    def then(number: int) -> None:
        if number == 1:
            for later in (2, 3):
                on_the_loop(lambda later=later: audience.tell(PhaseEnded(later)))
            assert told.numbers == [1]

    told = Told(then)
    audience = Audience([told])
    audience.tell(PhaseEnded(1))
    assert (told.numbers, told.on_loop) == ([1, 2, 3], [False] * 3)


def test_a_journal_has_an_event_before_the_loop_goes_on() -> None:
    """Whatever other callbacks are at, and wherever it stands among them."""
    written: list[list[int]] = []

    def then(number: int) -> None:
        if number == 1:
            on_the_loop(lambda: audience.tell(PhaseEnded(2)))
            written.append(list(journal.numbers))

    journal, told = Journal(), Told(then)
    audience = Audience([told, journal])
    audience.tell(PhaseEnded(1))
    assert (written, told.numbers) == ([[1, 2]], [1, 2])


def test_the_event_loop_thread_tells_no_event_of_another_thread() -> None:
    """That may be answered by reading a value, for which the loop is needed."""
    told = Told()
    audience = Audience([told])
    mine = audience.enter(PhaseEnded(1))
    on_the_loop(lambda: audience.tell(PhaseEnded(2)))
    assert told.numbers == []
    audience.settle(mine)
    assert (told.numbers, told.on_loop) == ([1, 2], [False, False])


def test_another_thread_goes_on_when_its_event_was_told() -> None:
    """A run that has ended has told so."""
    reached, go_on = threading.Event(), threading.Event()

    def then(number: int) -> None:
        if number == 1:
            reached.set()
            assert go_on.wait(60)

    told = Told(then)
    audience = Audience([told])
    loop = dispatch.submit(lambda: audience.tell(PhaseEnded(1)))
    assert reached.wait(60)
    seen: list[list[int]] = []

    def other() -> None:
        audience.tell(PhaseEnded(2))
        seen.append(list(told.numbers))

    thread = threading.Thread(target=other)
    thread.start()
    go_on.set()
    thread.join(60)
    loop.result()
    assert (seen, told.on_loop) == ([[1, 2]], [True, False])


def test_an_error_about_an_event_that_was_left_is_raised_by_who_told_it() -> None:
    """The thread that left it is gone; the events behind it are told all the same."""

    def then(number: int) -> None:
        if number == 1:
            for later in (2, 3):
                on_the_loop(lambda later=later: audience.tell(PhaseEnded(later)))
        if number == 2:
            raise OSError("disk full")

    told = Told(then)
    audience = Audience([told])
    with pytest.raises(OSError, match="disk full"):
        audience.tell(PhaseEnded(1))
    assert told.numbers == [1, 2, 3]


def test_an_error_about_an_event_is_raised_to_who_waits_for_it() -> None:
    """Not to the thread that happens to tell it."""
    reached = threading.Event()
    entered: list[Any] = []
    raised: list[BaseException] = []

    def then(number: int) -> None:
        if number == 1:
            thread.start()
            assert reached.wait(60)
            while not entered[0].waited_for:
                pass
        else:
            raise OSError("disk full")

    def other() -> None:
        entered.append(audience.enter(PhaseEnded(2)))
        reached.set()
        with pytest.raises(OSError, match="disk full") as caught:
            audience.settle(entered[0])
        raised.append(caught.value)

    told = Told(then)
    audience = Audience([told])
    thread = threading.Thread(target=other)
    audience.tell(PhaseEnded(1))
    thread.join(60)
    assert len(raised) == 1


def test_after_a_keyboard_interrupt_in_a_callback_events_are_told_again() -> None:
    """The first to come tells what was left."""

    def then(number: int) -> None:
        if number == 1:
            on_the_loop(lambda: audience.tell(PhaseEnded(2)))
            raise KeyboardInterrupt

    told = Told(then)
    audience = Audience([told])
    with pytest.raises(KeyboardInterrupt):
        audience.tell(PhaseEnded(1))
    audience.tell(PhaseEnded(3))
    assert told.numbers == [1, 2, 3]


def test_a_callback_that_tells_is_told_in_its_turn() -> None:
    """It does not wait for itself."""

    def then(number: int) -> None:
        if number == 1:
            audience.tell(PhaseEnded(2))

    told = Told(then)
    audience = Audience([told])
    audience.tell(PhaseEnded(1))
    assert told.numbers == [1, 2]


def test_an_error_of_a_callback_names_it_and_what_it_was_told_of() -> None:
    """On the way out it passes the call that it was told of, which is not to blame."""

    def then(number: int) -> None:
        raise ConnectionError("the tracker is down")

    with pytest.raises(ConnectionError, match="the tracker is down") as caught:
        Audience([Told(then)]).tell(PhaseEnded(1))
    assert caught.value.__notes__ == ["raised by the callback Told, told of PhaseEnded"]


def test_a_callback_that_has_seen_enough_stops_nobody_else() -> None:
    """It may say so on any thread; those behind it are told all the same, and nothing is raised."""

    def then(number: int) -> None:
        raise StopTraining

    stops, told = Told(then), Told()
    audience = Audience([stops, told])
    on_the_loop(lambda: audience.tell(PhaseEnded(1)))
    assert (told.numbers, audience.wants_to_stop) == ([1], True)
