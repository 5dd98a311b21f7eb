"""Demonstrations: what no text can hold is not shown, the rest as the program writes it, and long texts are cut."""

from __future__ import annotations

import array
import datetime
from decimal import Decimal

from textgrad_engine.llm.tokens import count
from textgrad_engine.optim.demos import Demo, demo_of, fitted_demo


def test_what_is_written_in_one_way_is_shown_so() -> None:
    """As the program was shown it, and as it is to answer: a date, and a number of numpy, had quotation marks."""
    day, sizes = datetime.date(2024, 2, 29), array.array("i", [1, 2])  # an array is as numpy's
    shown = demo_of("t1", {"day": day, "sum": Decimal("1.50"), "sizes": sizes}, day, day)
    assert shown.inputs == (("day", "2024-02-29"), ("sum", "1.50"), ("sizes", "[1, 2]"))
    assert (shown.answer, shown.label) == ("2024-02-29", "2024-02-29")


def test_what_is_no_text_is_shown_as_json() -> None:
    """Fields, answers and classes of numbers, lists and objects are written as a program that answers JSON does."""
    shown = demo_of("t5", {"mail": ["a", 1]}, {"n": 2}, 2)
    assert shown == Demo((("mail", '["a", 1]'),), '{"n": 2}', "2", "t5")
    assert demo_of("t2", {"mail": "Hi"}, "hello").label == ""


def test_a_long_demonstration_is_fitted_by_its_long_texts_alone() -> None:
    """Short ones stay whole, and so does all of it where there is room."""
    demo = demo_of("t1", {"page": "abcd " * 2000, "question": "Who pays?"}, "the tenant", "the tenant")
    fitted = fitted_demo(demo, 200)
    assert count(" ".join([*(text for _, text in fitted.inputs), fitted.answer])) <= 201
    assert fitted.inputs[1:] == (("question", "Who pays?"),)
    assert (fitted.answer, fitted.label) == ("the tenant", "the tenant")
    assert fitted_demo(demo, 3000) == demo


def test_a_long_answer_is_shown_without_its_middle_too() -> None:
    """A summary of a page may be longer than what it is made of; both have as much room."""
    fitted = fitted_demo(demo_of("c1", {"title": "Lease"}, "abcd" * 2000), 200)
    assert fitted.inputs == (("title", "Lease"),)
    assert "more characters" in fitted.answer
    assert count(fitted.answer) <= 201
