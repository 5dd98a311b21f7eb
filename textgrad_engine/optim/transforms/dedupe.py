"""`dedupe`: what was said in the same words is said once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from textgrad_engine.data.casefold import folded
from textgrad_engine.optim.feedback import FeedbackItem, joined
from textgrad_engine.optim.transforms.base import Gathered, Stateless


@dataclass(frozen=True)
class Dedupe(Stateless):
    """See `dedupe`."""

    def apply(self, gathered: Gathered) -> Gathered:
        """Equal texts become one item."""
        found: dict[str, list[FeedbackItem]] = {}
        for item in gathered.items:
            found.setdefault(" ".join(folded(item.text).split()), []).append(item)
        return replace(gathered, items=tuple(joined(items) for items in found.values()))


def dedupe() -> Dedupe:
    """Items with equal texts become one that remembers how often and where it was said.

    White space, case, and the ways to encode a letter make no difference.

    It stands where the first of them stood, in the words of that one.

    Example:
        >>> from textgrad_engine.optim.feedback import FeedbackItem
        >>> said = FeedbackItem("Be brief.", 1, "", ("t1",)), FeedbackItem("be  brief.", 1, "", ("t2",))
        >>> dedupe().apply(Gathered(said)).items
        (FeedbackItem(text='Be brief.', times=2, answer='', examples=('t1', 't2'), scores=(), direct=False),)
    """
    return Dedupe()
