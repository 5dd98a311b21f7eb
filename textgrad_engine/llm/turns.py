"""Since when a call may have been worked at by an endpoint that takes the calls it is sent one after the other."""

from __future__ import annotations

from bisect import bisect_left


class Turns:
    """The order in which calls were sent, and when those sent earlier were answered.

    Example:
        >>> turns = Turns()
        >>> first, second = turns.begin(0.0), turns.begin(0.0)
        >>> turns.answered(first, 20.0)
        >>> turns.since(second)
        20.0
    """

    def __init__(self) -> None:
        self._next = 0
        self._sent: dict[int, float] = {}  # when, by the number of each call that is under way
        # The answers that may still be the latest to a call sent before some call: numbers and times, both ascending.
        self._numbers: list[int] = []
        self._times: list[float] = []

    def begin(self, now: float) -> int:
        """Number a call that is sent now; it must `end`."""
        number = self._next
        self._next += 1
        self._sent[number] = now
        return number

    def answered(self, number: int, now: float) -> None:
        """Take in that a call was answered. Times must not go back."""
        at = bisect_left(self._numbers, number)
        self._numbers[at:] = [number]  # an answer that is older, to a call that was sent later, tells less
        self._times[at:] = [now]

    def since(self, number: int) -> float:
        """When a call was sent, or the latest time that one sent before it was answered, if that is later."""
        at = bisect_left(self._numbers, number)
        sent = self._sent[number]
        return max(sent, self._times[at - 1]) if at else sent

    @property
    def under_way(self) -> int:
        """How many calls are under way."""
        return len(self._sent)

    @property
    def silent_since(self) -> float:
        """Since when calls are under way and none was answered, whichever; there must be one."""
        sent = next(iter(self._sent.values()))
        return max(sent, self._times[-1]) if self._times else sent

    def end(self, number: int) -> None:
        """Forget a call that is no longer under way."""
        del self._sent[number]
        if len(self._numbers) > 2 * len(self._sent) + 16:
            self._prune()

    def _prune(self) -> None:
        """Keep what tells something of a call that is under way, or of one that is still to be sent."""
        kept = sorted({at for number in (*self._sent, self._next) if (at := bisect_left(self._numbers, number)) > 0})
        self._numbers = [self._numbers[at - 1] for at in kept]
        self._times = [self._times[at - 1] for at in kept]
