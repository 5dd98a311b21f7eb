"""The phases of a run: numbered as they begin, and told to its callbacks, with how far each is.

NOTE [A phase ends with its calls]
    A program may ask for what it does not read. Such a call is made and paid for as any other, so the phase that it was
    begun in waits for it: what comes after may use up the budget, and would decide by chance which of these calls are
    on record. Where one found no room in the budget all the same, or was given up at Ctrl-C, nobody may hear of it. The
    phase says then that it lacks some, so that a run which is resumed may ask for them.
    A phase that ends by an error waits for nothing: what is still to be sent then is not sent.
    A proposal of a search goes on beside the phases that begin it and decide about it. Its lane waits for its calls
    (`optim.search.lanes`), and they do not.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from textgrad_engine.dispatch import Scope, through_with
from textgrad_engine.errors import BudgetExceeded, CallCancelled, Stopped
from textgrad_engine.scoped import setting
from textgrad_engine.train.events import Phase, PhaseAdvanced, PhaseEnded, PhaseStarted, current_phase
from textgrad_engine.train.telling import Audience

_UNSENT = (BudgetExceeded, CallCancelled, Stopped)
"""What calls end with that are not on record, as far as nothing was paid for them."""


class RunPhases:
    """The phases of one run.

    Args:
        audience: is told of them.

    Attributes:
        last: the number of the one that began last.
        dropped: the proposals about which nothing was decided, so that it does not matter what they lack.
    """

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._proposals: dict[int, int] = {}  # the phase of each that goes on, by the proposal's number
        self.dropped: set[int] = set()
        self.last = 0

    @contextlib.contextmanager
    def phase(self, phase: Phase, step: int, total: int) -> Iterator[Callable[[], None]]:
        """A phase of the run; yields what to call when a unit of it is done."""
        self.last += 1
        number = self.last
        done = 0
        over = False
        lock = threading.Lock()
        complete = threading.Event()
        failures: list[BaseException] = []

        def advance() -> None:
            nonlocal done
            last = False
            try:
                with lock:  # numbered in the order in which they are told, and none behind the end
                    done += 1
                    last = done >= total
                    told = None if over else self._audience.enter(PhaseAdvanced(number, done))
                if told is not None:
                    self._audience.settle(told)
            except BaseException as error:  # raised below: on the event-loop thread it would only be lost
                failures.append(error)
            if last:
                complete.set()

        self._audience.tell(PhaseStarted(number, phase, step, total))
        calls = Scope()
        try:
            with setting(current_phase, number):
                with calls:
                    yield advance
                through_with(calls, f"the phase {phase!r}")
                if total:  # a value can be read a moment before its callbacks have run
                    complete.wait(1.0)
        finally:
            with lock:
                over = True
            lacking = any(issubclass(kind, _UNSENT) for kind in calls.failures)
            self._audience.tell(PhaseEnded(number, lacking))
        if failures:
            raise failures[0]

    @contextlib.contextmanager
    def proposal(self, number: int) -> Iterator[None]:
        """The phase of a search's proposal, which goes on after the block; what begins in the block belongs to it."""
        self.last += 1
        self._proposals[number] = self.last
        self._audience.tell(PhaseStarted(self.last, "search", number, 0))
        with setting(current_phase, self.last), Scope(background=True):  # the phase that begins it does not wait for it
            yield

    def end_proposal(self, number: int) -> None:
        """A proposal was decided about; of one that has no phase, nothing is told."""
        if (phase := self._proposals.pop(number, None)) is not None:
            self._audience.tell(PhaseEnded(phase))

    def end_proposals(self) -> None:
        """Those that are left were dropped."""
        for phase in self._proposals.values():
            self._audience.tell(PhaseEnded(phase))
        self.dropped.update(self._proposals)
        self._proposals.clear()
