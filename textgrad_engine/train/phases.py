"""The phases of a run: numbered as they begin, and told to its callbacks, with how far each is."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from textgrad_engine.train.events import Phase, PhaseAdvanced, PhaseEnded, PhaseStarted, current_phase
from textgrad_engine.train.telling import Audience

__all__ = ["RunPhases"]


class RunPhases:
    """The phases of one run.

    Args:
        audience: is told of them.

    Attributes:
        last: the number of the one that began last.
    """

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._proposals: dict[int, int] = {}  # the phase of each that goes on, by the proposal's number
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
        failures: list[Exception] = []

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
            except Exception as error:  # raised below: on the event-loop thread it would only be lost
                failures.append(error)
            if last:
                complete.set()

        self._audience.tell(PhaseStarted(number, phase, step, total))
        token = current_phase.set(number)
        try:
            yield advance
            if total:  # a value can be read a moment before its callbacks have run
                complete.wait(1.0)
        finally:
            current_phase.reset(token)
            with lock:
                over = True
            self._audience.tell(PhaseEnded(number))
        if failures:
            raise failures[0]

    @contextlib.contextmanager
    def proposal(self, number: int) -> Iterator[None]:
        """The phase of a search's proposal, which goes on after the block; what begins in the block belongs to it."""
        self.last += 1
        self._proposals[number] = self.last
        self._audience.tell(PhaseStarted(self.last, "search", number, 0))
        token = current_phase.set(self.last)
        try:
            yield
        finally:
            current_phase.reset(token)

    def end_proposal(self, number: int) -> None:
        """A proposal was decided about; of one that has no phase, nothing is told."""
        if (phase := self._proposals.pop(number, None)) is not None:
            self._audience.tell(PhaseEnded(phase))

    def end_proposals(self) -> None:
        """Those that are left were dropped."""
        for phase in self._proposals.values():
            self._audience.tell(PhaseEnded(phase))
        self._proposals.clear()
