"""Callbacks told about events, one event at a time and in order, whichever threads events come from.

NOTE [Who tells]
    A callback is code of the user's. It may read a value, which comes by the event-loop thread; so that thread waits
    for no callback. Where one is at it, it leaves its event to the thread that is, and goes on. Any other thread waits
    until its event was told. Whoever finds nobody at it tells all there is, its own event and those that were left; but
    the event-loop thread leaves the events of others to them, as they may be answered by reading a value.

    A run folder promises that a completion is on disk before the answer is used. A callback that names itself
    `at_once` is therefore told on the thread of the event before anybody else, under a lock; it must never wait for a
    value.

    An exception of a callback is raised where the event came from, or by whoever told it if nobody waits there; but
    `StopTraining` is noted only, as the thread of a call is no place to end a run.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from contextvars import Context, copy_context

from textgrad_engine.dispatch import LOOK_UP_SECONDS, in_loop_thread
from textgrad_engine.train.events import Callback, Event, RunEnded, StopTraining


class Audience:
    """The callbacks of a run.

    Args:
        callbacks: in the order in which they are told about an event, but for those `at_once`, which are first.

    Attributes:
        wants_to_stop: whether one of them has raised `StopTraining`.
    """

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        every = tuple(callbacks)
        self.wants_to_stop = False
        self._at_once = tuple([each for each in every if getattr(each, "at_once", False)])
        self._others = tuple([each for each in every if not getattr(each, "at_once", False)])
        self._order = threading.Lock()
        self._left: deque[_Told] = deque()
        self._told = threading.Condition()
        self._teller: int | None = None

    def tell(self, event: Event) -> None:
        """Tell all callbacks about an event.

        Raises:
            BaseException: whatever a callback raised.
        """
        self.settle(self.enter(event))

    def enter(self, event: Event) -> _Told:
        """Give an event its place in the order; `settle` has it told."""
        with self._order:
            for callback in self._at_once:
                self._call(callback, event)
            told = _Told(event)
            self._left.append(told)
        return told

    def settle(self, told: _Told) -> None:
        """Have an event told that was entered.

        Raises:
            BaseException: whatever a callback raised.
        """
        me = threading.get_ident()
        with self._told:
            while not told.done and self._teller is not None:
                if told.of_loop or self._teller == me:
                    return
                told.waited_for = True
                self._told.wait(LOOK_UP_SECONDS)
            if not told.done:
                self._teller = me
        if self._teller == me:
            try:
                self._tell_all(told)
            finally:
                with self._told:
                    if self._teller == me:
                        self._end()
        if told.error is not None:
            raise told.error

    def _end(self) -> None:
        self._teller = None
        self._told.notify_all()

    def _tell_all(self, own: _Told) -> None:
        """Tell what there is; what goes wrong with an event that nobody waits for goes wrong with one's own."""
        while True:
            with self._told:
                if not self._left or (own.of_loop and not self._left[0].of_loop):
                    self._end()  # under this lock, so that nobody leaves anything more
                    return
                told = self._left.popleft()
            try:
                for callback in self._others:
                    if told is own:
                        self._call(callback, told.event)
                    else:
                        told.context.run(self._call, callback, told.event)
            except Exception as error:
                to = told if told.waited_for else own
                to.error = to.error or error
            finally:
                with self._told:
                    told.done = True
                    self._told.notify_all()

    def _call(self, callback: Callback, event: Event) -> None:
        try:
            callback.on_event(event)
        except StopTraining:
            self.wants_to_stop = True
        except Exception as error:
            if callback not in self._at_once:  # a run folder says itself what is wrong with it
                note = f"raised by the callback {type(callback).__name__}, told of {type(event).__name__}"
                if isinstance(event, RunEnded):
                    note += f"; the program holds the best texts of the run: {event.result}"
                error.add_note(note)
            raise


class _Told:
    """An event on its way to the callbacks."""

    __slots__ = ("context", "done", "error", "event", "of_loop", "waited_for")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.context: Context = copy_context()
        self.of_loop = in_loop_thread()
        self.done = self.waited_for = False
        self.error: BaseException | None = None
