"""Orders of feedback: what stands first is read first, and `cap` keeps it first among what was said equally often."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms.base import Gathered, Stateless


@dataclass(frozen=True)
class WorstFirst(Stateless):
    """See `worst_first`."""

    def apply(self, gathered: Gathered) -> Gathered:
        """Sort by score."""
        return replace(gathered, items=tuple(sorted(gathered.items, key=_mean_score)))


@dataclass(frozen=True)
class NewestFirst(Stateless):
    """See `newest_first`."""

    def apply(self, gathered: Gathered) -> Gathered:
        """Turn the order round."""
        return replace(gathered, items=gathered.items[::-1])


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
