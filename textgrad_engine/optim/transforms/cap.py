"""`cap`: feedback within a budget of tokens, in whole items, of which long ones are shortened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm import tokens
from textgrad_engine.llm.context import fit
from textgrad_engine.ops.shortening import CASES_AT_LEAST, fitted_case, fitted_text
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
        kept = tuple(items[n] for n in fit(list(map(_cost, items)), self.max_tokens, order))
        if not kept and items:
            kept = (_fitted(items[order[0]], self.max_tokens),)
        return replace(gathered, items=kept, left_out=gathered.left_out + len(items) - len(kept))

    def _shortened(self, items: tuple[FeedbackItem, ...]) -> tuple[FeedbackItem, ...]:
        """Where there is no room for all, what would take that of several others without its middle, but for thoughts.

        The middle of what a critic says is most of it. A case, or what a test printed, is known by its ends.
        """
        if sum(map(_cost, items)) <= self.max_tokens:
            return items
        share = max(1, self.max_tokens // min(CASES_AT_LEAST, len(items)))
        return tuple(_fitted(item, share) if item.case or item.direct else item for item in items)


def _fitted(item: FeedbackItem, most: int) -> FeedbackItem:
    return replace(item, text=(fitted_case if item.case else fitted_text)(item.text, most))


def _cost(item: FeedbackItem) -> int:
    return tokens.count(item.text) + tokens.count(item.answer)


def cap(max_tokens: int) -> Cap:
    """Items beyond a budget are left out whole, and counted.

    Args:
        max_tokens: the budget for the texts and answers of all items together, counted as `llm.tokens.count` does.
            Items that were said most often go first, then those that stand first; one that does not fit by itself is
            passed over. Where none fits, the first one is kept without its middle. Where not all fit, what evaluators
            said of the text itself, such as a log of its tests, takes a quarter of the budget at most, and so does a
            case that is shown as it was, where no critic is asked: the middles of long passages are left out, and of
            many messages those in the middle, which is said where they stood.

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
