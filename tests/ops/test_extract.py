"""The part of an answer that a regular expression finds."""

from __future__ import annotations

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.errors import ScoreError
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train.objective import Objective

ANSWER = r"Answer: (.*)"


def wanting(text: str) -> Variable:
    return Variable(text, role="solution", requires_grad=True)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", r"the pattern '\(' is no regular expression: missing \)"),
        ("(a)(b)", r"has 2 groups, and one says what is looked for; write the others as \(\?:\.\.\.\)"),
        (3, "a pattern is a regular expression, a text such as"),
        (None, "a pattern is a regular expression"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, why: str) -> None:
    """Before anything is asked, also where a loss is made."""
    with pytest.raises((TypeError, ValueError), match=f"^extract: .*{why}"):
        ops.extract(Variable("a"), pattern)
    with pytest.raises((TypeError, ValueError), match=f"^OnMatch: .*{why}"):
        nn.OnMatch(nn.ExactMatch(), pattern)


def test_it_is_found_in_one_variable() -> None:
    """Not in plain text, a batch, or several outputs."""
    with pytest.raises(TypeError, match=r"extract: finds a part of a Variable, got str 'a'"):
        ops.extract("a", ANSWER)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"extract: got a batch of 2 answers, .* or inside func\.vmap"):
        _ = ops.extract(Variable(["a", "b"]), ANSWER).data
    with pytest.raises(ScoreError, match=r"OnMatch: a part is found in one Variable, got a dict of said; .*OnField"):
        nn.OnMatch(nn.ExactMatch(), ANSWER)({"said": Variable("a")}, "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"extract: default is a text, got 3"):
        ops.extract(Variable("a"), ANSWER, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "pattern", "part"),
    [
        ("Answer: 3?\nNo.\nAnswer: 4 ", ANSWER, "4"),
        ("x #### 72", r"#### (-?[\d,]+)", "72"),
        ("12 and 13", r"\d+", "13"),
        ("```json\n[1]\n```", r"(?s)```json\n(.*?)```", "[1]"),
        ("ab", r"a(x)?", ""),
        ("nothing", ANSWER, "-"),
    ],
)
def test_the_last_match_counts(text: str, pattern: str, part: str) -> None:
    """Its group, or all of it; what stands for one that is not there is said by the user."""
    assert ops.extract(Variable(text), pattern, default="-").data == part


def test_an_answer_without_the_part_is_told_so() -> None:
    """It is wrong, and the critic hears what was looked for."""
    said = wanting("It is four.")
    loss = nn.OnMatch(nn.ExactMatch(), ANSWER)(said, "4")
    assert loss.data == 0
    loss.backward()
    (words,) = [item.data for item in said.grad]
    assert "matched by the regular expression `Answer: (.*)`, and there is none, so nothing stood for it." in words
    assert "Expected exactly `4`, got ``." in words
    other = wanting("It is four.")
    nn.OnMatch(nn.ExactMatch(), ANSWER, default="none")(other, "4").backward()
    assert "so this stood for it:\n<default-" in other.grad[0].data


def test_what_is_said_of_the_part_goes_to_the_answer() -> None:
    """With the pattern; a right part says nothing, whatever is around it."""
    said = wanting("Let me see.\nAnswer: 5")
    nn.OnMatch(nn.ExactMatch(), ANSWER)(said, "4").backward()
    (words,) = [item.data for item in said.grad]
    assert words.startswith("Of this answer the part counts that is last matched by the regular expression `Answer: ")
    right = wanting("Let me see.\nAnswer: 4")
    nn.OnMatch(nn.ExactMatch(), ANSWER)(right, "4").backward()
    assert right.grad == []


def test_a_target_with_the_reasoning_before_it_is_compared_by_its_part() -> None:
    """As GSM8K has it; inside of vmap, too, where a target is a Variable."""
    loss = nn.OnMatch(nn.ExactMatch(), r"#### (.*)")
    assert loss(Variable("Half of 144.\n#### 72"), "She sold 144 / 2 = 72.\n#### 72").data == 1
    score = func.vmap(lambda said, wanted: loss(said, wanted))
    assert score(["#### 72", "#### 7", "72"], ["so\n#### 72", "so\n#### 72", "72"]).data == [1, 0, 0]


def test_criteria_that_speak_of_the_part_are_no_such_part() -> None:
    """They had been cut to what stands behind "Answer: " in them, and the judge looked for that."""
    is_met = {"explanation": "", "met": True}
    model = FunctionModel(lambda request: {"1": is_met, "2": is_met})
    criteria = "It is short.\nIt stands behind 'Answer: ' in the end."
    loss = nn.OnMatch(nn.Rubric(model=model), ANSWER)
    assert loss(Variable("So.\nAnswer: 4"), criteria).data == 1
    assert func.vmap(lambda said, wanted: loss(said, wanted))(["Answer: 5"], [criteria]).data == [1]
    texts = [request.messages[-1].text for request in model.requests]
    assert all("\n1. It is short.\n2. It stands behind" in text for text in texts)
    assert ["\n4\n</answer-" in texts[0], "\n5\n</answer-" in texts[1]] == [True, True]


def test_any_loss_may_look_at_the_part() -> None:
    """In a field of JSON, or one that compares JSON in a fence."""
    block = nn.OnMatch(nn.JSONMatch(), r"(?s)```json\n(.*?)```")
    assert block(Variable('So:\n```json\n{"a": 1}\n```'), {"a": 1}).data == 1
    inner = nn.OnField(nn.OnMatch(nn.ExactMatch(), ANSWER), "text")
    assert inner(Variable('{"text": "Answer: 4"}'), "4").data == 1


def test_candidates_are_scored_the_same_together_and_by_themselves() -> None:
    """A search runs several at once through `vmap`."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="system prompt"))
    rows = [{"word": str(n), "target": f"so\n#### {n}" if n % 2 else str(n)} for n in range(4)]
    model = FunctionModel(
        lambda request: f"#### {request.messages[-1].text}" if "#" in request.messages[0].text else "no"
    )
    with tg.use_models(forward=model):
        made = Objective(program, nn.OnMatch(nn.ExactMatch(), r"#### (.*)"), rows)
        assert made.matrix([("Say it.",), ("Say # it.",)], range(4)) == [[0, 0, 0, 0], [1, 1, 1, 1]]


def test_the_critic_reads_the_whole_answer() -> None:
    """So it sees the reasoning that led to what is wrong."""

    def model(request: tg.llm.Request) -> object:
        if request.purpose == "backward":
            return feedback_for(request, "Check the sum.")
        return "Two and two are five.\nAnswer: 5"

    made = FunctionModel(model)
    program = nn.ChatCompletion("{q}", system=nn.Parameter("Solve it.", role="system prompt"))
    with tg.use_models(forward=made):
        nn.OnMatch(nn.ExactMatch(), ANSWER)(program(q="2 + 2?"), "4").backward()
    text = made.requests[-1].messages[-1].text
    assert "Two and two are five." in text
    assert text.count("`Answer: (.*)`") == 1
