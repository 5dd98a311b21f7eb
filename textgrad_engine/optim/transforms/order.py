"""Orders of feedback: what stands first is read first, and `cap` keeps it first among what was said equally often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms.base import Context, FeedbackTransform, Gathered

__all__ = ["NewestFirst", "WorstFirst", "newest_first", "worst_first"]


@dataclass(frozen=True)
class WorstFirst(FeedbackTransform):
    """See `worst_first`."""

    async def update(
        self, gathered: Gathered, state: dict[str, Any], context: Context
    ) -> tuple[Gathered, dict[str, Any]]:
        """Sort by score."""
        return replace(gathered, items=tuple(sorted(gathered.items, key=_mean_score))), state


@dataclass(frozen=True)
class NewestFirst(FeedbackTransform):
    """See `newest_first`."""

    async def update(
        self, gathered: Gathered, state: dict[str, Any], context: Context
    ) -> tuple[Gathered, dict[str, Any]]:
        """Turn the order round."""
        return replace(gathered, items=gathered.items[::-1]), state


def worst_first() -> WorstFirst:
    """Items about the answers with the lowest scores first; of several scores the mean counts.

    Items with equal scores keep their order; those whose source has no score come last.
    """
    return WorstFirst()


def newest_first() -> NewestFirst:
    """Items in the reverse order: what was said last first."""
    return NewestFirst()


def _mean_score(item: FeedbackItem) -> float:
    known = [score for score in item.scores if score == score]  # not a number is no score
    return sum(known) / len(known) if known else float("inf")
