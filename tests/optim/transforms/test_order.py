from __future__ import annotations

import asyncio

from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms import Context, FeedbackTransform, Gathered, newest_first, worst_first


def order(transform: FeedbackTransform, *items: FeedbackItem) -> list[str]:
    after, _ = asyncio.run(transform.update(Gathered(items), transform.init(), Context("", "", None, 1)))
    return [item.text for item in after.items]


def test_the_worst_answers_come_first() -> None:
    """By the mean of an item's scores; equal ones keep their order, and what has no score comes last."""
    nan = float("nan")
    items = [
        FeedbackItem("none", 1, "", ()),
        FeedbackItem("half", 2, "", (), (0.0, 1.0)),
        FeedbackItem("also half", 1, "", (), (0.5, nan)),
        FeedbackItem("no number", 1, "", (), (nan,)),
        FeedbackItem("worst", 1, "", (), (-1.0,)),
    ]
    assert order(worst_first(), *items) == ["worst", "half", "also half", "none", "no number"]


def test_the_newest_come_first() -> None:
    """The reverse of the gradient."""
    assert order(newest_first(), *[FeedbackItem(text, 1, "", ()) for text in "abc"]) == ["c", "b", "a"]
