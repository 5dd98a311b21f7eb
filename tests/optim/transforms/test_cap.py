from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.fences import fence
from textgrad_engine.llm import tokens
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.transforms import Gathered, cap


def item(text: str, times: int = 1, answer: str = "") -> FeedbackItem:
    return FeedbackItem(text, times, answer, ())


def test_what_is_left_out_is_left_out_whole_and_added_up() -> None:
    """A chain may leave things out twice."""
    small, big = item("short"), item("word " * 20)
    assert cap(4).apply(Gathered((small, big), ("past",), 2)) == Gathered((small,), ("past",), 3)


def test_a_long_item_does_not_take_the_room_of_those_that_fit() -> None:
    """A log of ten thousand lines stands first and says least."""
    small, big = item("short"), item("word " * 20, times=2)
    assert cap(4).apply(Gathered((big, small))) == Gathered((small,), (), 1)


def test_at_least_one_item_is_kept() -> None:
    """A budget that is too small does not turn feedback into none."""
    longer, big = item("word " * 30), item("word " * 20)
    assert cap(4).apply(Gathered((longer, big))) == Gathered((longer,), (), 1)


def test_answers_cost_too() -> None:
    """They are shown beside the feedback, within the same budget."""
    with_answer = item("short", answer="word " * 20)
    assert cap(9).apply(Gathered((item("short"), with_answer))).items == (item("short"),)


def test_long_cases_are_shortened_where_not_all_is_shown() -> None:
    """One that takes the room of the others would be the only one; a short one, and words of a critic, stay whole."""
    long = f"user message:\n{fence('word ' * 3000, 'message')}"
    cases = tuple(FeedbackItem(f"{n} {long}", 1, "", (), case=True) for n in range(6))
    words, short = item("word " * 100), FeedbackItem("short", 1, "", (), case=True)
    after = cap(2000).apply(Gathered((short, words, *cases)))
    assert after.items[:2] == (short, words)
    assert [each.text[0] for each in after.items[2:]] == ["0", "1", "2"]
    assert after.left_out == 3
    assert all("more characters …]" in each.text and tokens.count(each.text) <= 500 for each in after.items[2:])
    assert cap(2000).apply(after) == replace(after, left_out=3)
    assert cap(8000).apply(Gathered(cases[:2])).items == cases[:2]


sizes = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(0, 3)), max_size=9)


@given(sizes, st.integers(1, 12))
def test_whole_items_within_the_budget(sizes: list[tuple[int, int, int]], budget: int) -> None:
    """Law: a subsequence of the items as they are, at least one, within the budget unless it is a single one."""
    items = [item(f"{n}" + "word " * size, times, "a " * answer) for n, (size, times, answer) in enumerate(sizes)]
    after = cap(budget).apply(Gathered(tuple(items)))
    kept = [items.index(each) for each in after.items]
    assert kept == sorted(set(kept))
    assert bool(kept) is bool(items)
    assert len(kept) + after.left_out == len(items)
    cost = sum(tokens.count(each.text) + tokens.count(each.answer) for each in after.items)
    assert len(kept) <= 1 or cost <= budget
    fitting = [each for each in items if tokens.count(each.text) + tokens.count(each.answer) <= budget] or items
    if items:
        assert max(each.times for each in after.items) == max(each.times for each in fitting)
    assert cap(budget).apply(after) == after
