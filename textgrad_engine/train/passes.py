"""Minibatches going backward: what is lost on the way is passed over, and where nothing can be heard it is said."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from textgrad_engine.autograd import Node, Variable, backward
from textgrad_engine.autograd.forgiving import forgiving
from textgrad_engine.errors import UNANSWERED, AutogradError

__all__ = ["BackwardPasses", "roots_of"]


class BackwardPasses:
    """The backward passes of a run, or of a search."""

    def __init__(self) -> None:
        self._leads_back = False  # whether any loss so far has led back to a text

    def through(self, losses: Sequence[Variable], inputs: Sequence[Variable] | None = None) -> list[str]:
        """Take a minibatch's losses backward.

        Args:
            losses: of those that require grad, each goes as soon as it is there.
            inputs: the texts that feedback is wanted on; None for all leaves.

        Returns:
            The answers of the critic that were not to be had, in words.

        Raises:
            ModelError: the models cannot be asked at all, or the budget is spent.
        """
        problems: list[str] = []
        if roots := roots_of(losses):
            with forgiving(functools.partial(_note_lost, problems)):
                backward(roots, inputs=inputs)
        return problems

    def check(self, losses: Sequence[Variable], scores: Sequence[float | None]) -> None:
        """Refuse to go on when no loss leads back to a text: nothing would ever be heard about it.

        Args:
            losses: of a minibatch.
            scores: what they gave; None where that was not to be had.

        Raises:
            AutogradError: neither does one of an earlier minibatch, and some example has a score.
        """
        self._leads_back = self._leads_back or bool(roots_of(losses))
        known = [score for score in scores if score is not None]
        if known and not self._leads_back:
            raise AutogradError(
                f"none of the {len(known)} losses of this minibatch requires grad, so no feedback would reach the "
                "texts. The program must return the Variable that it computes from its parameters, not its .data, a "
                "new Variable or what .detach() gives, and not under no_grad(); the loss must use it."
            )


def roots_of(losses: Sequence[Variable]) -> list[Variable]:
    """Those that feedback can go back from."""
    return [loss for loss in losses if loss.requires_grad]


def _note_lost(problems: list[str], node: Node, error: BaseException) -> bool:
    """Pass over a lost answer of the critic, or an example whose own answer was lost (it has no score).

    Args:
        problems: gets the lost answers of the critic, in words.
        node: whose rule failed.
        error: what it raised.

    Returns:
        Whether it is passed over.
    """
    if not isinstance(error, UNANSWERED):
        return False
    if node.call is not None and node.call.failed:
        return True
    problems.append(f"no feedback from {node.name()}: {type(error).__name__}: {error}")
    return True
