"""What is not quoted again beside the text itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from textgrad_engine import Variable, nn, templates
from textgrad_engine.ops.parts import without_repeat


def said_of(answer: str, wanted: str) -> str:
    prediction = Variable(answer, role="answer", requires_grad=True)
    nn.ExactMatch()(prediction, wanted).backward()
    (feedback,) = prediction.grad
    return str(feedback.data)


def test_an_answer_that_is_shown_is_not_quoted_again_at_the_end_of_an_evaluators_sentence() -> None:
    """Also where an answer has spaces around it, or there is none."""
    for answer in ("Oslo", " Oslo ", ""):
        said = f"In part 2: {said_of(answer, 'Rome')}"
        assert without_repeat(said, answer, "answer") == "In part 2: The answer is wrong. Expected exactly `Rome`."
    assert without_repeat(said_of("Oslo", "Rome"), "Bergen", "answer") == said_of("Oslo", "Rome")


@pytest.mark.parametrize(
    "said",
    [
        "For the question, got `Oslo` although the text says Rome.",
        "Expected `Rome`, got `Oslo` instead of it.",
        "For `Norway`, got `Oslo`.",
    ],
)
def test_what_others_say_in_such_words_stays_as_it_is(said: str) -> None:
    """A metric's own sentence would say something else without the middle: "Expected `Rome` instead of it"."""
    assert without_repeat(said, "Oslo", "answer") == said


def test_an_empty_answer_takes_nothing_from_a_block_of_code() -> None:
    said = "Expected JSON, got ```text```."
    assert without_repeat(said, "", "answer") == said


@pytest.mark.parametrize("own", ["", ", got that", "; it was `{{ text }}`"])
def test_the_words_may_be_somebodys_own(tmp_path: Path, own: str) -> None:
    """What ends the sentence is a prompt, which may be empty, or not quote the answer."""
    shipped = templates.load("got")
    header = f"---\nname: got\npurpose: {shipped.purpose}\nversion: 1\nslots: text\n---\n# User\n"
    (tmp_path / "got.md").write_text(header + own)
    with templates.use_prompts(tmp_path):
        said = without_repeat(said_of("Oslo", "Rome"), "Oslo", "answer")
    assert ("`Oslo`" in said, "Rome" in said) == (False, True)
