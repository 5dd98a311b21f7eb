"""The embedded model where it is asked to merge feedback, so that what asks for that can be tried offline."""

from __future__ import annotations

import asyncio

from textgrad_engine import use_models
from textgrad_engine.llm import Message, Request
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.llm.simulated.model import kind_of
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms import Gathered, summarise
from textgrad_engine.optim.transforms.base import Context

SAID = (
    "Gift cards go to account.",
    "Be careful.",
    "Say that gift cards belong in account.",
    "Refunds go to billing.",
    "Look closer.",
)


def left(most: int) -> list[FeedbackItem]:
    items = tuple(FeedbackItem(text, 1, "", (f"t{number}",)) for number, text in enumerate(SAID, 1))
    with use_models(forward=TicketsModel()):
        found, _ = asyncio.run(summarise(most).update(Gathered(items), {}, Context("Sort.", "prompt", None, 1)))
    return list(found.items)


def test_pieces_of_one_rule_become_one() -> None:
    """What asks for the same is one piece in the words of the first, and what says nothing is another."""
    assert [(item.text, item.examples) for item in left(3)] == [
        ("Gift cards go to account.", ("t1", "t3")),
        ("Refunds go to billing.", ("t4",)),
        ("Be careful.", ("t2", "t5")),
    ]


def test_no_piece_is_lost_where_few_may_be_left() -> None:
    """The last one stands for all that is over."""
    first, last = left(2)
    assert first.text == "Gift cards go to account."
    assert last.text == "Refunds go to billing. Be careful."
    assert last.examples == ("t2", "t4", "t5")
    (only,) = left(1)
    assert only.times == len(SAID)


def test_it_is_known_by_its_words_without_a_schema() -> None:
    """As an endpoint without structured output is asked."""
    text = '[1]\n\n<feedback-0a1b2c3d>\nBe brief.\n</feedback-0a1b2c3d>\n\nGive at most 1 piece:\n{"items": []}'
    assert kind_of(Request(messages=(Message(role="user", content=text),))) == "reduce"
