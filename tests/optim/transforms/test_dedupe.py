from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms import Gathered, dedupe


def item(text: str, *examples: str, answer: str = "") -> FeedbackItem:
    return FeedbackItem(text, 1, answer, examples)


def test_equal_texts_become_one_with_all_their_examples() -> None:
    """White space and case aside, in the words and the place of the first."""
    other = item("Cafe\u0301"), item("CAF\u00c9")
    assert [each.times for each in dedupe().apply(Gathered(other)).items] == [2]
    before = Gathered((item("Be brief.", "t2", answer="long"), item("Other"), item(" be\nBRIEF. ", "t1")), ("past",), 4)
    assert dedupe().apply(before) == Gathered(
        (FeedbackItem("Be brief.", 2, "", ("t2", "t1")), item("Other")), ("past",), 4
    )


def test_what_was_said_once_keeps_its_answer() -> None:
    """It is shown beside the feedback."""
    before = Gathered((item("Be brief.", "t2", answer="long"),))
    assert dedupe().apply(before) == before


@given(st.lists(st.sampled_from(["a", "A", " a", "b c", "B\tc", "ß", "SS", ""])))
def test_twice_is_as_once(texts: list[str]) -> None:
    """Law: what is different stays different, and nothing is left to do."""
    once = dedupe().apply(Gathered(tuple(map(item, texts))))
    assert dedupe().apply(once) == once
    assert len(once.items) == len({" ".join(text.split()).casefold() for text in texts})
