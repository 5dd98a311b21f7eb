"""A minibatch going backward: what is lost on the way is passed over."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from textgrad_engine.autograd import Node, Variable, backward
from textgrad_engine.autograd.forgiving import forgiving
from textgrad_engine.errors import UNANSWERED

__all__ = ["go_backward"]


def go_backward(roots: Sequence[Variable], inputs: Sequence[Variable] | None = None) -> list[str]:
    """Take a minibatch's losses backward, each as soon as it is there.

    Args:
        roots: the losses that require grad.
        inputs: the texts that feedback is wanted on; None for all leaves.

    Returns:
        The answers of the critic that were not to be had, in words.

    Raises:
        ModelError: the models cannot be asked at all, or the budget is spent.
    """
    problems: list[str] = []
    if roots:
        with forgiving(functools.partial(_note_lost, problems)):
            backward(roots, inputs=inputs)
    return problems


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
