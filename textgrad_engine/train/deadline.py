"""Until when a run searches, so that its end comes in time.

NOTE [Time for the end]
    Who has an hour wants the best prompt that an hour finds, and to be told what it is worth. So no step is begun that
    would leave too little for the end: the best texts on the validation examples that they were not run on, and both
    prompts on the test set. An example is taken to last as long as those of the first validation did, one after the
    other, which is more than it takes where many are asked at a time; a step as long as the steps so far. Where a cache
    had answers for the first validation, an example takes as many calls, and each of them what one of the steps' took.
    What is under way is waited for, and controls come on top. So a run may last a little longer, or end a little early.

    How many steps that were is written down: a run that is played back must end where it ended, however long that
    takes. One that is resumed begins to count anew, unless its search was over. How long its first validation took is
    on record: to play that back takes no time, and the end does.
"""

from __future__ import annotations

import time

from textgrad_engine.llm.meters import Meter
from textgrad_engine.train.events import Earlier


class Deadline:
    """Until when a run searches; see NOTE [Time for the end].

    Args:
        minutes: from the beginning; None for no limit.
        earlier: what there is of the run from before; None of a new one.

    Attributes:
        in_words: why no further step is begun, once that is so; else "".
    """

    def __init__(self, minutes: float | None, earlier: Earlier | None) -> None:
        self.minutes = minutes
        self.in_words = ""
        self._ended = None if earlier is None else earlier.search_ended(minutes)
        self._lasted = 0.0 if earlier is None else earlier.validated_in
        self._began = self._validated = time.monotonic()
        self._example = 0.0
        self._calls = 0.0  # for an example, where the time of the first validation does not tell, as a cache answered
        self._used = Meter()
        self._used_before = 0

    def begin(self) -> None:
        """Count from now on."""
        self._began = self._validated = time.monotonic()

    def learn(self, examples: int, used: Meter) -> None:
        """The first validation is over, of so many examples.

        Args:
            examples: how many.
            used: counts the calls of the run, which has made none but those of the validation.
        """
        now = time.monotonic()
        self._example, self._validated = max(now - self._validated, self._lasted) / examples, now
        self._used, self._used_before = used, used.total.calls
        self._calls = (used.total.calls + used.cached) / examples if used.cached else 0.0

    def is_over(self, steps: int, to_come: int) -> bool:
        """Whether no further step is to be begun.

        Args:
            steps: so many were taken.
            to_come: examples that are run at the end.
        """
        if self._ended is not None:
            over = steps >= self._ended
        elif self.minutes is None:
            return False
        else:
            now = time.monotonic()
            example = self._time_of_example(now)
            step = (now - self._validated) / steps if steps else example
            over = now + step + example * to_come > self._began + 60 * self.minutes
        if over:
            limit = "" if self.minutes is None else f" of {self.minutes:g} minute{'' if self.minutes == 1 else 's'}"
            taken = f"{steps} step{'' if steps == 1 else 's'}"
            self.in_words = f"the search ended after {taken}, as its time{limit} was over with what the end takes"
        return over

    def _time_of_example(self, now: float) -> float:
        asked = self._used.total.calls - self._used_before
        return max(self._example, (now - self._validated) / asked * self._calls) if asked else self._example
