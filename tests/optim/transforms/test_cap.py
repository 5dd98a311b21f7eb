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


def case_of(document: str, answer: str = "no") -> FeedbackItem:
    text = (
        f"user message:\n{fence(document, 'message')}\n\nThe model's answer:\n{fence(answer, 'answer')}\n\nFeedback:\n"
    )
    return replace(item(text + fence("It was: yes.", "feedback")), case=True, said="It was: yes.")


def test_of_a_case_that_is_longer_than_all_the_middle_is_left_out() -> None:
    """It would be passed over, and where all are so long the request would be refused; two of them fit."""
    long = case_of("Begin. " + "a long page " * 5000 + "End.", "B" * 9000 + "E")
    short = case_of("a short one")
    kept = cap(2000).apply(Gathered((long, short, replace(long, examples=("another",)))))
    assert (kept.items[1], kept.left_out, len(kept.items)) == (short, 0, 3)
    for each in (kept.items[0], kept.items[2]):
        assert tokens.count(each.text) <= 1000
        assert "Begin. a long page" in each.text
        assert each.text.count("more characters …]") == 2
        assert "a long page End.\n</message-" in each.text
        assert "BE\n</answer-" in each.text
        assert each.text.endswith(short.text[short.text.index("Feedback:") :])
        assert (each.said, each.case) == (long.said, True)
    assert cap(2000).apply(kept) == kept
    assert cap(100_000).apply(Gathered((long,))).items == (long,)


def test_of_a_case_whose_answer_is_to_be_long_the_middle_of_that_is_left_out_too() -> None:
    """Such as a translation: what was expected is as long as the answer, and what was said of it stays."""
    wanted = fence("Begin. " + "a long page " * 5000 + "End.", "expected")
    case = case_of("a short one", "B" * 9000)
    said = case.text.replace(
        "It was: yes.", f"The answer is wrong. Expected exactly:\n{wanted}\nGot:\nthe answer above"
    )
    (kept,) = cap(2000).apply(Gathered((replace(case, text=said),))).items
    assert tokens.count(kept.text) <= 2000
    assert kept.text.count("more characters …]") == 2
    assert "The answer is wrong. Expected exactly:\n<expected-" in kept.text
    assert "a long page End.\n</expected-" in kept.text
    assert "\nGot:\nthe answer above\n</feedback-" in kept.text


def test_what_a_critic_says_is_shown_whole_or_not_at_all() -> None:
    """The middle of a thought is most of it."""
    long = replace(case_of("a long page " * 5000), case=False)
    assert cap(2000).apply(Gathered((long, item("short")))) == Gathered((item("short"),), (), 1)


def test_where_nothing_fits_the_first_thought_is_shown_without_its_middle() -> None:
    """A step without any feedback would be lost; within the budget, so that the request is not refused."""
    long = item("Begin. " + "a long thought " * 5000 + "End.")
    found = cap(2000).apply(Gathered((long, replace(long, times=1))))
    (kept,) = found.items
    assert found.left_out == 1
    assert 1900 < tokens.count(kept.text) <= 2000
    begin, _, end = kept.text.partition("more characters …]")
    assert begin.startswith("Begin. a long")
    assert end.endswith("thought End.")


def test_of_long_logs_the_ends_are_shown_beside_each_other() -> None:
    """What tests printed of a program that is trained itself: the last line says what is wrong."""
    logs = [replace(item(f"log {n}\n" + "a frame\n" * 9000 + f"{n} failed"), direct=True) for n in range(3)]
    found = cap(2000).apply(Gathered((*logs, item("short"))))
    assert found.left_out == 0
    assert [each.text.split("\n")[0] for each in found.items] == ["log 0", "log 1", "log 2", "short"]
    assert [each.text.split("\n")[-1] for each in found.items] == ["0 failed", "1 failed", "2 failed", "short"]
    assert sum(tokens.count(each.text) for each in found.items) <= 2000
    assert cap(100_000).apply(Gathered((logs[0],))).items == (logs[0],)


@given(st.text(alphabet="<>/mesag-0123abcdf\n", max_size=3000), st.integers(20, 400))
def test_no_document_breaks_out_of_a_case(document: str, budget: int) -> None:
    """It may hold marks as those around it, and long lines of them: what stands outside of it stays as it was."""
    whole = case_of(document * 3, "the answer")
    (kept,) = cap(budget).apply(Gathered((whole,))).items
    assert kept.text.startswith("user message:\n<message-")
    tag = kept.text.split("<", 1)[1].split(">", 1)[0]
    inside, _, after = kept.text.partition(f"\n</{tag}>\n")
    assert after == whole.text.partition("\n</" + whole.text.split("<", 1)[1].split(">", 1)[0] + ">\n")[2]
    assert inside.count(f"</{tag}>") == 0
