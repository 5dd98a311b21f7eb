"""`cap`: feedback within a budget of tokens, in whole items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.llm import tokens
from textgrad_engine.optim.transforms.base import Context, Gathered, Stateless

__all__ = ["Cap", "cap"]


@dataclass(frozen=True)
class Cap(Stateless):
    """See `cap`."""

    max_tokens: int

    async def update(
        self, gathered: Gathered, state: dict[str, Any], context: Context
    ) -> tuple[Gathered, dict[str, Any]]:
        """Leave out what does not fit."""
        return self.apply(gathered), state

    def apply(self, gathered: Gathered) -> Gathered:
        """`update` for those who have no event loop."""
        items = gathered.items
        kept: set[int] = set()
        spent = 0
        for number in sorted(range(len(items)), key=lambda n: (-items[n].times, n)):
            cost = tokens.count(items[number].text) + tokens.count(items[number].answer)
            if kept and spent + cost > self.max_tokens:
                continue
            kept.add(number)
            spent += cost
        return replace(
            gathered,
            items=tuple(items[n] for n in sorted(kept)),
            left_out=gathered.left_out + len(items) - len(kept),
        )


def cap(max_tokens: int) -> Cap:
    """Items beyond a budget are left out whole, and counted.

    Args:
        max_tokens: the budget for the texts and answers of all items together, counted as `llm.tokens.count` does.
            Items that were said most often go first, then those that stand first; at least one is kept.

    Raises:
        ValueError: the budget is below 1.

    Example:
        >>> from textgrad_engine.optim.feedback import FeedbackItem
        >>> said = FeedbackItem("Give reasons.", 1, "", ()), FeedbackItem("Be brief.", 2, "", ())
        >>> left = cap(3).apply(Gathered(said))
        >>> [item.text for item in left.items], left.left_out
        (['Be brief.'], 1)
    """
    if max_tokens < 1:
        raise ValueError(f"cap: max_tokens must be at least 1, got {max_tokens}")
    return Cap(max_tokens)
