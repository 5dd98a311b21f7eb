"""Since when a call may have been worked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm.turns import Turns


def test_a_call_that_is_alone_counts_from_its_sending():
    turns = Turns()
    assert turns.since(turns.begin(3.0)) == 3.0


def test_only_an_answer_to_a_call_that_was_sent_before_counts():
    turns = Turns()
    first, second, third = (turns.begin(0.0) for _ in range(3))
    turns.answered(second, 5.0)
    turns.end(second)
    assert [turns.since(first), turns.since(third)] == [0.0, 5.0]


def test_an_answer_from_before_a_call_was_sent_does_not_count():
    turns = Turns()
    first = turns.begin(0.0)
    turns.answered(first, 5.0)
    turns.end(first)
    assert turns.since(turns.begin(9.0)) == 9.0


@given(st.lists(st.one_of(st.just("send"), st.integers(0, 50)), max_size=200))
def test_it_is_what_a_look_at_all_answers_would_give(steps):
    """Whatever is answered in whatever order, and whatever was pruned."""
    turns, sent, answered = Turns(), {}, []
    for now, step in enumerate(steps):
        if step == "send":
            sent[turns.begin(float(now))] = float(now)
        elif sent:
            number = list(sent)[step % len(sent)]
            turns.answered(number, float(now))
            turns.end(number)
            del sent[number]
            answered.append((number, float(now)))
        for number, began in sent.items():
            assert turns.since(number) == max([began, *(at for other, at in answered if other < number)])


def test_what_no_call_needs_is_forgotten():
    """Twenty thousand answers in a row leave nothing behind."""
    turns = Turns()
    waiting = turns.begin(0.0)
    for now in range(20_000):
        number = turns.begin(float(now))
        turns.answered(number, float(now))
        turns.end(number)
    assert turns.since(waiting) == 0.0
    assert len(turns._numbers) < 100
