"""The feedback on a parameter as an optimizer sees it: each thing once, whole, within a token budget."""

from __future__ import annotations

from collections.abc import Iterable

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.feedback import FeedbackItem, item_of
from textgrad_engine.optim.transforms.base import Gathered
from textgrad_engine.optim.transforms.cap import cap
from textgrad_engine.optim.transforms.dedupe import dedupe

__all__ = ["FeedbackItem", "collect", "gather"]


def collect(gradient: Iterable[Variable]) -> Gathered:
    """The items of a gradient, one for each piece of feedback that says anything, in order: where transforms begin.

    Example:
        >>> [item.text for item in collect([Variable("Be brief."), Variable(" "), Variable("Be brief.")]).items]
        ['Be brief.', 'Be brief.']
    """
    items = map(item_of, gradient)
    return Gathered(tuple(item for item in items if item.text))


def gather(gradient: Iterable[Variable], max_tokens: int) -> tuple[list[FeedbackItem], int]:
    """The items of a gradient: equal texts become one, and what passes the budget is left out whole.

    Args:
        gradient: the feedback Variables, in order.
        max_tokens: the budget, as `transforms.cap` has it.

    Returns:
        The items in the order of the gradient, and how many were left out.
    """
    gathered = cap(max_tokens).apply(dedupe().apply(collect(gradient)))
    return list(gathered.items), gathered.left_out
