"""`cap`: feedback within a budget of tokens, in whole items."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm import tokens
from textgrad_engine.llm.context import fit
from textgrad_engine.ops.as_it_was import shortened
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms.base import Gathered, Stateless


@dataclass(frozen=True)
class Cap(Stateless):
    """See `cap`."""

    max_tokens: int

    def apply(self, gathered: Gathered) -> Gathered:
        """Leave out what does not fit."""
        items = [_within(item, self.max_tokens) for item in gathered.items]
        order = sorted(range(len(items)), key=lambda n: (-items[n].times, n))
        kept = fit([_cost(item) for item in items], self.max_tokens, order)
        return replace(
            gathered,
            items=tuple(items[n] for n in kept or order[:1]),
            left_out=gathered.left_out + max(0, len(items) - max(1, len(kept))),
        )


def _cost(item: FeedbackItem) -> int:
    return tokens.count(item.text) + tokens.count(item.answer)


def _within(item: FeedbackItem, most: int) -> FeedbackItem:
    """An item; of a case that is longer than the whole budget so much of its messages that it takes half of that."""
    if not item.case or (cost := _cost(item)) <= most:
        return item
    text, shown = item.text, len(item.text)
    while cost > most // 2 and shown > _LEAST:
        shown = max(_LEAST, min(shown * 3 // 4, shown * most // (2 * cost)))
        text = shortened(item.text, shown)
        cost = tokens.count(text)
    return replace(item, text=text)


_LEAST = 400
"""Characters of each message that are shown of a case in any event."""


def cap(max_tokens: int) -> Cap:
    """Items beyond a budget are left out whole, and counted.

    Of a case (`FeedbackItem.case`) that does not fit by itself the middle of its long messages is left out, which is
    said there, so that two of them fit.

    Args:
        max_tokens: the budget for the texts and answers of all items together, counted as `llm.tokens.count` does.
            Items that were said most often go first, then those that stand first; one that does not fit by itself is
            passed over. Where none fits, the first one is kept all the same.

    Raises:
        ValueError: the budget is below 1.

    Example:
        >>> from textgrad_engine.optim.feedback import FeedbackItem
        >>> said = FeedbackItem("Give reasons.", 1, "", ()), FeedbackItem("Be brief.", 2, "", ())
        >>> left = cap(3).apply(Gathered(said))
        >>> [item.text for item in left.items], left.left_out
        (['Be brief.'], 1)
    """
    check(cap, locals(), at_least(1, "max_tokens"))
    return Cap(max_tokens)
