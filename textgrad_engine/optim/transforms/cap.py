"""`cap`: feedback within a budget of tokens, in whole items, of which long cases are shortened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm import tokens
from textgrad_engine.llm.context import fit
from textgrad_engine.ops.shortening import CASES_AT_LEAST, fitted_case
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms.base import Gathered, Stateless


@dataclass(frozen=True)
class Cap(Stateless):
    """See `cap`."""

    max_tokens: int

    def apply(self, gathered: Gathered) -> Gathered:
        """Leave out what does not fit."""
        items = self._shortened(gathered.items)
        order = sorted(range(len(items)), key=lambda n: (-items[n].times, n))
        kept = fit(list(map(_cost, items)), self.max_tokens, order)
        return replace(
            gathered,
            items=tuple(items[n] for n in kept or order[:1]),
            left_out=gathered.left_out + max(0, len(items) - max(1, len(kept))),
        )

    def _shortened(self, items: tuple[FeedbackItem, ...]) -> tuple[FeedbackItem, ...]:
        """Where there is no room for all, cases that would take that of several others, without their middles."""
        if sum(map(_cost, items)) <= self.max_tokens:
            return items
        share = max(1, self.max_tokens // min(CASES_AT_LEAST, len(items)))
        return tuple(replace(item, text=fitted_case(item.text, share)) if item.case else item for item in items)


def _cost(item: FeedbackItem) -> int:
    return tokens.count(item.text) + tokens.count(item.answer)


def cap(max_tokens: int) -> Cap:
    """Items beyond a budget are left out whole, and counted.

    Args:
        max_tokens: the budget for the texts and answers of all items together, counted as `llm.tokens.count` does.
            Items that were said most often go first, then those that stand first; one that does not fit by itself is
            passed over. Where none fits, the first one is kept all the same. A case that is shown as it was, where no
            critic is asked, takes a quarter of the budget at most where not all items fit: of its long passages the
            middles are left out, and of many messages those in the middle, which is said where they stood.

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
