from __future__ import annotations

from textgrad_engine import Variable
from textgrad_engine.autograd import Source
from textgrad_engine.optim.feedback import FeedbackItem, item_of, joined


def feedback(text: str, **source: object) -> Variable:
    variable = Variable(text)
    variable.source = Source(**source)  # type: ignore[arg-type]
    return variable


def test_an_item_has_what_its_source_has() -> None:
    """Example, answer and score reach the optimizer; a score of zero is one."""
    item = item_of(feedback(" Be brief.\n", example="t1", output="long", score=0.0))
    assert item == FeedbackItem("Be brief.", 1, "long", ("t1",), (0.0,))
    assert item_of(feedback("x")) == item_of(Variable("x")) == FeedbackItem("x", 1, "", (), ())


def test_an_id_with_a_comma_stays_one_id() -> None:
    """Ids are the user's, and may read 'Smith, John'."""
    assert item_of(feedback("x", example="Smith, John")).examples == ("Smith, John",)


def test_a_long_answer_is_shortened_and_says_so() -> None:
    """The feedback itself is never cut; the answer beside it is, with how much is missing."""
    text = "feedback " * 300
    item = item_of(feedback(text, output="x" * 1500))
    assert item.text == text.strip()
    assert item.answer == "x" * 400 + " […1,100 more characters]"
    item = item_of(feedback(text, output="x" * 399 + "e\u0301" + "x" * 600))
    assert item.answer == "x" * 399 + " […602 more characters]"  # a letter is not cut


def test_joined_items_keep_everything_but_the_answers() -> None:
    """Each example is named once, and each score kept, for the same example may be scored again."""
    one = FeedbackItem("a", 2, "", ("t1", "t2"), (0.5, 0.0))
    two = FeedbackItem("b", 1, "said", ("t2",), (1.0,))
    assert joined([one, two]) == FeedbackItem("a", 3, "", ("t1", "t2"), (0.5, 0.0, 1.0))
    assert joined([one, two], "c").text == "c"
    assert joined([two]) == two
    assert joined([two], "c") == FeedbackItem("c", 1, "said", ("t2",), (1.0,))


def test_equal_cases_are_a_case_and_words_for_them_are_none() -> None:
    """Reports name what was said of the answer; an optimizer is told to look for the lesson in cases alone."""
    one = FeedbackItem("messages and an answer", 1, "", ("t1",), (0.0,), case=True, said="Expected Rome.")
    both = joined([one, one])
    assert (both.case, both.times, both.evidence.text) == (True, 2, "Expected Rome.")
    for items in ([one], [one, one]):
        merged = joined(items, "Name the capital.")
        assert (merged.case, merged.evidence.text) == (False, "Name the capital.")


def test_of_a_long_log_a_line_remembers_the_ends() -> None:
    """A run folder had 250 kB for each edit, and `show --line` printed them; what a critic says is short, and whole."""
    log = "FAILED test_a\n" + "assert 1 == 2\n" * 4000 + "1 failed"
    for item in (
        FeedbackItem(log, 1, "", ("e1",), direct=True),
        FeedbackItem("a case", 1, "", ("e1",), case=True, said=log),
    ):
        told = item.evidence.text
        assert (told[:13], told[-8:], len(told) < 2100) == ("FAILED test_a", "1 failed", True)
        assert "more characters …]" in told
    assert FeedbackItem(log, 1, "", ("e1",)).evidence.text == log
