"""What a backward pass waits for: forwards, what rules give, and the text of that.

Calls end on the event-loop thread; the thread of the pass hears of it here, one visit after the other.
"""

from __future__ import annotations

import functools
import queue
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from textgrad_engine import dispatch
from textgrad_engine.autograd.walk import SETTLED, Visit
from textgrad_engine.dispatch import Call

BEGIN: Any = object()
"""The outcome when a node's forward is done, so that it may begin."""


class Waiting:
    """The nodes of a pass that wait for calls.

    Attributes:
        visits: those that the pass still waits for; of others it does not matter any more what they come to.
        events: those whose call has ended, in the order of time.
        tell: puts one there.
    """

    def __init__(self) -> None:
        self.visits: set[Visit] = set()
        self.events: queue.SimpleQueue[Visit] = queue.SimpleQueue()
        self.tell: Callable[[Visit], None] = self.events.put
        self._taken: deque[Visit] = deque()

    def for_forward(self, visit: Visit, call: Call) -> None:
        """A node waits for its own forward; the outcome is `BEGIN`."""
        self.visits.add(visit)
        call.on_done(functools.partial(self._may_begin, visit))

    def _may_begin(self, visit: Visit, _: Call) -> None:
        visit.outcome, visit.error = BEGIN, None
        self.tell(visit)

    def for_rule(self, visit: Visit, call: Call) -> None:
        """A node waits for what its rule gives, which is the outcome."""
        self.visits.add(visit)
        call.on_done(functools.partial(self._has_returned, visit))

    def _has_returned(self, visit: Visit, call: Call) -> None:
        visit.outcome, visit.error = call._value, call._error
        self.tell(visit)

    def for_texts(self, visit: Visit, pending: Iterable[Call]) -> None:
        """A node waits for the text of what its rule gave, in several calls; the outcome is `SETTLED`."""
        calls = list(dict.fromkeys(pending))
        left = iter(range(len(calls) - 1, -1, -1))  # counts down atomically: calls end on another thread
        self.visits.add(visit)

        def one_done(_: Call) -> None:
            if next(left) == 0:
                visit.outcome = SETTLED
                visit.error = next((call._error for call in calls if call._error is not None), None)
                self.tell(visit)

        for call in calls:
            call.on_done(one_done)

    def take_in(self) -> None:
        """Take an event out of the queue while rules are still to begin.

        It has its turn when all have begun, so that their order does not depend on how quick an answer was; but what is
        answered is taken over, so that the call behind it need not stay in memory.
        """
        visit = self.events.get()
        if visit.outcome is SETTLED and visit.error is None:
            for items in visit.returned:
                for item in items:
                    if item._layer is None:
                        item._settle()
        self._taken.append(visit)

    def next(self) -> Visit:
        """The next whose call has ended, waited for."""
        if self._taken:
            return self._taken.popleft()
        if self.events.empty():
            dispatch.nudge()
        while True:
            try:
                return self.events.get(timeout=dispatch.LOOK_UP_SECONDS)
            except queue.Empty:
                continue
