"""The test set of a run: closed while there is anything left to choose, and each opening of it is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SealedTest:
    """Test examples that cannot be had before training is over.

    A run holds its test set only like this, so that nothing that trains, chooses or stops early can look at it by
    mistake.

    Args:
        rows: the test examples.

    Attributes:
        openings: how often they were opened.

    Example:
        >>> sealed = SealedTest([{"q": "1 + 1?", "target": "2"}])
        >>> sealed.end_training()
        >>> len(sealed.open()), sealed.openings
        (1, 1)
    """

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = rows
        self._training = True
        self.openings = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"SealedTest({len(self)} examples, opened {self.openings} times)"

    def end_training(self) -> None:
        """From now on nothing is trained or chosen any more."""
        self._training = False

    def open(self) -> Sequence[dict[str, Any]]:
        """The examples; this is counted.

        Raises:
            RuntimeError: training is not over.
        """
        if self._training:
            raise RuntimeError(
                "the test set is sealed until training is over; what is looked at while one still chooses is a "
                "validation set"
            )
        self.openings += 1
        return self._rows
