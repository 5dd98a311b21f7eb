"""What the log tells of an endpoint that is silent: one that only refuses, and one that says nothing at all."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


class Silence:
    """Tells of a silence when it has lasted a while, and again each time that one is twice as long as the last told of.

    So a model that takes long for each answer is told of once or twice, and not with every answer.

    Args:
        seconds: from so many on it is told of.

    Attributes:
        due: the next one that is told of has to last so many seconds.

    Example:
        >>> silence = Silence(30)
        >>> silence.tell(10, "hangs"), silence.due
        (None, 30)
    """

    def __init__(self, seconds: float) -> None:
        self.due = seconds

    def tell(self, seconds: float, message: str, *values: object) -> None:
        """Log a warning where a silence has lasted for long enough.

        Args:
            seconds: for which it lasts, the time until the next attempt included.
            message: what to say, in the form that `logging` takes.
            values: what is put into it.
        """
        if seconds >= self.due:
            self.due = 2 * seconds
            _log.warning(message, *values)
