from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import Variable
from textgrad_engine.autograd import Source
from textgrad_engine.llm import tokens
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.gather import Heard, collect
from textgrad_engine.optim.gather import gather as gather_all
from textgrad_engine.optim.transforms import Context, Gathered


def item(text: str, example: str = "", output: str = "") -> Variable:
    variable = Variable(text)
    variable.source = Source(example=example, output=output)
    return variable


def gather(gradient: list[Variable], limit: int) -> tuple[list[FeedbackItem], int]:
    """What is shown of one parameter's feedback within a budget, and how many items are left out."""
    (found,) = gather_all([Heard(gradient, Context("Sort.", "prompt", None, 1), lambda history: limit)])
    assert isinstance(found, Gathered)
    return list(found.items), found.left_out


def test_an_item_that_does_not_fit_is_left_out_whole_and_counted() -> None:
    """Nothing is cut in the middle, and what is missing is known."""
    first, big, small = "word " * 10 + "end", "word " * 20, "short"
    kept, left_out = gather([item(first), item(big), item(small)], tokens.count(first) + tokens.count(small))
    assert ([each.text for each in kept], left_out) == ([first, small], 1)


def test_at_least_one_item_is_shown() -> None:
    """A budget that is too small does not turn feedback into none."""
    kept, left_out = gather([item("word " * 50), item("word word word")], 1)
    assert (len(kept), left_out) == (1, 1)


def test_what_was_said_most_often_goes_first_but_the_order_stays() -> None:
    """The budget goes by weight; what is shown is in the order of the gradient."""
    items = [item("one"), item("two"), item("three"), item(" three\n"), item("four")]
    kept, left_out = gather(items, tokens.count("three") + tokens.count("one"))
    assert ([(each.text, each.times) for each in kept], left_out) == ([("one", 1), ("three", 2)], 2)


def test_equal_texts_are_one_item_with_all_their_examples() -> None:
    """White space aside; the answer is shown only where there is one."""
    kept, _ = gather(
        [item("Be brief.", "t2", "long"), item(" Be\nbrief. ", "t1", "longer"), item("Be brief.", "t2")], 99
    )
    (only,) = kept
    assert (only.text, only.times, only.answer, only.examples) == ("Be brief.", 3, "", ("t2", "t1"))


def test_blank_items_are_none() -> None:
    """White space says nothing."""
    assert gather([item(" "), item("\n")], 99) == ([], 0)


def test_collecting_joins_and_drops_nothing_that_was_said() -> None:
    """Where a chain of transforms begins: each piece of feedback is an item, in the order of the gradient."""
    assert collect([item("b", "t1"), item(" "), item("a"), item("b", "t2")]) == Gathered(
        (FeedbackItem("b", 1, "", ("t1",)), FeedbackItem("a", 1, "", ()), FeedbackItem("b", 1, "", ("t2",)))
    )


@given(st.lists(st.sampled_from(["a", "b b", "c c c", " ", "a "])), st.integers(1, 9))
def test_nothing_is_lost_uncounted(texts: list[str], limit: int) -> None:
    """Law: each different text is either shown or counted as left out, and the budget is kept."""
    kept, left_out = gather([item(text) for text in texts], limit)
    assert len(kept) + left_out == len({text.strip() for text in texts if text.strip()})
    assert len(kept) <= 1 or sum(tokens.count(each.text) for each in kept) <= limit
