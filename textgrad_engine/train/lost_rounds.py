"""When lost answers end a run: not single ones, but a critic or an optimizer that never answers."""

from __future__ import annotations

from collections.abc import Sequence

from textgrad_engine.errors import ModelError
from textgrad_engine.optim import Optimizer

__all__ = ["MOST_LOST_ROUNDS", "LostRounds"]

MOST_LOST_ROUNDS = 3
"""So many rounds in a row without an answer of the critic or the optimizer end a run; mostly a round is one step."""


class LostRounds:
    """The rounds of steps in a row that came to nothing.

    Proposals that were made at the same time are lost together, so it is rounds of them that are counted: those in
    which all that there were of one kind were lost.

    Args:
        optimizer: whose steps they are.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._count = 0
        self._round: dict[str, list[str]] = {}  # why steps were lost since a round began ("": not), by kind

    def check(self, heard: bool, problems: Sequence[str], number: int, *, kind: str = "", more: bool = False) -> None:
        """Count a step, lost or not.

        Args:
            heard: whether what the step goes by was to be had: feedback, where its optimizer reads any.
            problems: answers that were not to be had, in words.
            number: of the step.
            kind: of the step.
            more: whether more steps of its round follow.

        Raises:
            ModelError: the last `MOST_LOST_ROUNDS` rounds all lost their answers.
        """
        lost = bool(problems) and (not heard or not self._optimizer.changes)
        self._round.setdefault(kind, []).append(problems[0] if lost else "")
        if more:
            return
        steps, self._round = self._round, {}
        first = next((whys[0] for whys in steps.values() if all(whys)), "")
        self._count = self._count + 1 if first else 0
        if self._count >= MOST_LOST_ROUNDS:
            what = "steps" if sum(map(len, steps.values())) == 1 else "rounds of steps"
            raise ModelError(
                f"{self._count} {what} in a row came to nothing, step {number} being the last; "
                f"its first problem: {first}"
            )
