from __future__ import annotations

import asyncio
import functools
import gc
import json
import math
import operator
import re
import sys
import threading
import warnings
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import Variable, dispatch, ops
from textgrad_engine.errors import AutogradError, MalformedResponse, ScoreError
from textgrad_engine.fences import fence
from textgrad_engine.llm import RetryPolicy, resolve
from textgrad_engine.llm.response import Completion
from textgrad_engine.ops import evaluators, exact_match
from textgrad_engine.ops.evaluators import outputs_in_words
from textgrad_engine.testing import FunctionModel, ScriptedModel

from ..values import said

MESSAGES = [{"role": "user", "content": "Judge {prediction}."}]


def wanting(data: Any) -> Variable:
    return Variable(data, role="queue", requires_grad=True)


def judged(answer: Any, prediction: Variable | None = None, **options: Any) -> tuple[Variable, Variable]:
    """The verdict of a judge that gives this answer, as it is."""
    script = [answer if isinstance(answer, dict) else Completion(text=answer)]
    model = resolve(ScriptedModel(script), policy=RetryPolicy(answer_attempts=1))
    return ops.judge(prediction or Variable("a"), "Is it kind?", model=model, **options)


class Scalar:
    """A number as numpy and torch have them: no int or float of Python, but one can be made of it."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return float(self.value)


class Whole(Scalar):
    def __index__(self) -> int:
        return int(self.value)


class Text(str):
    __slots__ = ()

    def __float__(self) -> float:
        return 1.0


class Several:
    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements cannot be a number")


@pytest.mark.parametrize("given", [Scalar(0.5), (Scalar(0.5), "why")])
def test_a_metric_may_return_a_number_of_another_library(given: Any) -> None:
    """What is kept is a number of Python."""
    score, explanation = ops.deterministic_evaluator(Variable("a"), "b", lambda got, wanted: given, "likeness")
    assert (score.data, type(score.data)) == (0.5, float)
    assert explanation.data
    score, explanation = ops.deterministic_evaluator(Variable("a"), "b", lambda got, wanted: Whole(1), "likeness")
    assert (score.data, type(score.data), explanation.data) == (1, int, "")


def test_a_reduction_may_make_a_number_of_another_library() -> None:
    """Such as `numpy.mean` of a batch's scores; what is none is named."""
    both, targets = Variable(["a", "b"]), ["a", "c"]
    score, _ = ops.exact_match_evaluator(both, targets, reduction_fn=lambda scores: Scalar(sum(scores) / 2))
    assert (score.data, type(score.data)) == (0.5, float)
    with pytest.raises(TypeError, match=r"reduction_fn makes one number .* gave dict"):
        _ = ops.exact_match_evaluator(both, targets, reduction_fn=lambda scores: {"mean": 0.5})[0].data


@pytest.mark.parametrize(
    "outcome",
    [
        *("good", None, ["1"], (None, "why"), float("nan"), float("inf"), (1, "why", 2), Text("1"), Several()),
        *(pytest.param(made(10**400), id=f"{made.__name__} of 10**400") for made in (int, Whole, Fraction)),
        *(Variable(1), (1, 0.5), {"right": 1, "short": 0.5}),  # a second objective would be a remark, or lost
    ],
)
def test_a_metric_that_gives_no_number_is_an_error(outcome: Any) -> None:
    """No bug of a metric becomes a score of zero, and NaN is not a score to select by."""
    score, _ = ops.deterministic_evaluator(Variable("a"), "b", lambda got, wanted: outcome, "likeness")
    with pytest.raises(TypeError, match="the metric 'likeness' must return a number") as caught:
        _ = score.data
    assert caught.value.__notes__[0] == "in the metric 'likeness': the prediction 'a' and the target 'b'"
    assert ("Several scores" in str(caught.value)) is isinstance(outcome, tuple | list | dict)


class Judged(Scalar):
    """What metrics of DSPy give: score and words in one object, which by itself is the score."""

    def __init__(self, score: float, **words: str) -> None:
        super().__init__(score)
        self.score = score
        vars(self).update(words)


def test_a_metric_that_gives_a_variable_is_told_that_its_data_is_the_score() -> None:
    """As one that asks a judge of the library inside; a loss that hands a Variable on is a module."""
    outcome = Variable(0.5, role="score of the judge")
    for found in (outcome, (outcome, "why")):
        score, _ = ops.deterministic_evaluator(Variable("a"), "b", lambda got, wanted, it=found: it, "likeness")
        with pytest.raises(ScoreError, match=r"got .*Variable.* Return its \.data; or write the loss as an nn\.Module"):
            _ = score.data


@pytest.mark.parametrize(("outcome", "repair"), [
    (Judged(0.5, feedback="Too long."), "(it.score, it.feedback)"),
    ({"score": 0.5, "feedback": "Too long."}, '(it["score"], it["feedback"])'),
])  # fmt: skip
def test_words_beside_a_score_in_one_object_are_not_lost(outcome: Any, repair: str) -> None:
    """Who brings a metric of GEPA along would train without its feedback, and nothing would say so."""
    score, _ = ops.deterministic_evaluator(Variable("a"), "b", lambda got, wanted: outcome, "likeness")
    with pytest.raises(ScoreError, match=re.escape(f". Of such an object return {repair}")):
        _ = score.data
    score, _ = ops.deterministic_evaluator(Variable("a"), "b", lambda got, wanted: Judged(0.5), "likeness")
    assert score.data == 0.5  # there are no words


def test_an_exception_of_a_metric_is_raised_where_it_is_read() -> None:
    """A bug in user code stays visible, with the place it was asked for."""

    def broken(got: str, wanted: str) -> float:
        raise KeyError("no such key")

    score, explanation = ops.deterministic_evaluator(Variable("a"), "b", broken, "likeness")
    with pytest.raises(KeyError, match="no such key") as caught:
        _ = score.data
    asked, where = caught.value.__notes__
    assert asked == "in the metric 'likeness': the prediction 'a' and the target 'b'"
    assert "test_evaluators.py" in where
    with pytest.raises(KeyError):
        _ = explanation.data


def test_a_batch_needs_a_target_for_each_entry() -> None:
    """Predictions are never silently paired with other targets, nor left out."""
    with pytest.raises(ValueError, match="3 predictions has 2 targets"):
        ops.exact_match_evaluator(Variable(["a", "b", "c"]), ["a", "b"])


def test_a_target_that_is_in_a_field_of_a_json_answer_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise a classifier with a schema scores 0 for ever, and nobody says why; once, as all answers are so."""
    exact_match._tell_of_field.cache_clear()
    for got in ('{"why": "x", "label": "billing"}', '{"label": "billing"}', '{"label": "other"}', "{broken"):
        assert ops.exact_match_evaluator(Variable(got), "billing")[0].data == 0
    (told,) = caplog.messages
    assert told.startswith("exact match compares whole answers, and the target of a JSON answer was in its field")
    assert told.endswith("have the program return that field, answer['label']")


def test_a_wrong_answer_that_is_json_nested_without_end_is_a_wrong_answer() -> None:
    """One answer of three kilobytes would end a run, and each time that it is resumed."""
    for depth in (100, 700, 980, 20_000):
        got = '{"a":' * depth + "1" + "}" * depth
        assert ops.exact_match_evaluator(Variable(got), "billing")[0].data == 0


def test_exact_match_without_a_target_is_an_error() -> None:
    """A missing label is no label 'None' that every answer gets wrong."""
    with pytest.raises(TypeError, match="needs a target"):
        ops.exact_match_evaluator(Variable("a"), None)


@pytest.mark.parametrize(
    ("prediction", "target", "score"),
    [
        ("re\u0301sume\u0301", "r\u00e9sum\u00e9", 1),
        ("\uac00", "\u1100\u1161", 1),
        ("\u30ac", "\u30ab\u3099", 1),
        ("\ufeffbilling\u200b ", "billing", 1),
        ("\u05e9\u05dc\u05d5\u05dd\u200f", "\u05e9\u05dc\u05d5\u05dd", 1),
        ("bil\u200bling", "billing", 0),
        ("r\u00e9sum\u00e9", "resume", 0),
        ("\uff11\uff12", "12", 0),
        ("\u00e9" + 1_000_000 * " " + "x", "\u00e9", 0),
        ("\u00e9" + 500_000 * " \u200b", "\u00e9", 1),
        ("\u2067\u05e9\u05dc\u05d5\u05dd\u2069", "\u05e9\u05dc\u05d5\u05dd", 1),
        ("\u202a+49 30 123\u202c", "+49 30 123", 1),
        ("Dear Ann,\nyes.", "Dear Ann,\r\nyes.\r\n", 1),
        ("\u00e9\r\u00e8", "e\u0301\n\u00e8", 1),
        ("a\n\nb", "a\r\nb", 0),
    ],
    ids=range(15),
)
def test_texts_that_are_one_to_unicode_match(prediction: str, target: str, score: int) -> None:
    """Data from one program spells a letter with two characters, models with one, and nobody can see which.

    An answer that is spaces without end is compared in a time that goes with its length.
    """
    assert ops.exact_match_evaluator(Variable(prediction), target)[0].data == score


def test_what_cannot_be_seen_is_named() -> None:
    """Feedback that shows the same text twice can be acted on by nobody."""
    said = ops.exact_match_evaluator(Variable("a\u00a0b"), "a b")[1].data
    assert said.endswith("characters that cannot be seen: none in what is expected, U+00A0 in the answer.")
    for got, wanted, names in [
        ("\u2764\ufe0f", "\u2764", "none in what is expected, U+FE0F in the answer."),
        ("yes", "yes\0", "U+0000 in what is expected, none in the answer."),
        ("a b", "a\tb", "U+0009 in what is expected, none in the answer."),
    ]:
        assert ops.exact_match_evaluator(Variable(got), wanted)[1].data.endswith(names)
    assert "look alike" not in ops.exact_match_evaluator(Variable("\u00e9 b"), "a b")[1].data
    assert "look alike" not in ops.exact_match_evaluator(Variable("a  b"), "a b")[1].data


@pytest.mark.parametrize(
    ("target", "what"),
    [({"order": "A1"}, "a dict"), (["a", "b"], "a list"), ([], "a list")],
)
def test_exact_match_refuses_a_target_that_can_be_written_in_many_ways(target: Any, what: str) -> None:
    """The one that Python writes is not the right one; the example is named."""
    with (
        tg.autograd.example("orders:7"),
        pytest.raises(TypeError, match=rf"compares texts, and the target of example 'orders:7' is {what}: .*JSONMatch"),
    ):
        ops.exact_match_evaluator(Variable('{"order": "A1"}'), target)


@pytest.mark.parametrize("entry", [{"order": "A1"}, ["a"], None])
def test_exact_match_refuses_such_a_target_in_a_batch(entry: Any) -> None:
    """Among others that are texts."""
    with pytest.raises(TypeError, match="compares texts, and the target is"):
        ops.exact_match_evaluator(Variable(["a", "b"]), ["a", entry])


@pytest.mark.parametrize(
    ("target", "right", "expected"),
    [(True, "true", "true"), (False, "false", "false"), (3, "3", "3"), (3.0, "3.0", "3.0"), (1e16, "1e+16", "1e+16")],
)
def test_targets_that_are_no_text_are_compared_and_shown_as_they_are_written(
    target: Any, right: str, expected: str
) -> None:
    """Truth values as JSON has them, not as Python; also in a batch."""
    assert ops.exact_match_evaluator(Variable(right), target)[0].data == 1
    assert ops.exact_match_evaluator(Variable([right, "x"]), [target, target])[0].data == 1
    score, explanation = ops.exact_match_evaluator(wanting(right.upper() + "!"), target)
    assert score.data == 0
    assert f"Expected exactly `{expected}`, got" in explanation.data


def test_a_metric_shows_the_critic_its_target_as_json() -> None:
    """A model that is taught Python's way to write it never gets back to the right one."""
    given = []
    target = {"order": "A1", "gift": True}
    _, explanation = ops.deterministic_evaluator(
        Variable("x"), target, lambda got, wanted: given.append(wanted) or 0, "equal orders"
    )
    assert '>\n{"order": "A1", "gift": true}\n</expected-' in explanation.data
    assert given == [target]


@pytest.mark.parametrize(
    ("got", "wanted", "shown"),
    [(12.0, 12.0, "12"), (12.0, 12, "12"), (12, 12.0, "12"), (1e16, 1e16, "1e+16"), (0.5, 0.5, "0.5")],
)
def test_a_metric_shows_the_critic_one_number_as_one(got: float, wanted: float, shown: str) -> None:
    """Else the critic sees a point that is missing, or too much, and has it taught."""
    _, explanation = ops.deterministic_evaluator(Variable(got), wanted, lambda got, wanted: 0, "equal sums")
    assert f'Expected: "{shown}"\nGot:\n{fence(shown, "got")}' in explanation.data


def each_way(prediction: Any, target: Any) -> list[tuple[Variable, Variable]]:
    """The verdicts of exact match and of a metric that is the same."""
    return [
        ops.exact_match_evaluator(prediction, target),
        ops.deterministic_evaluator(prediction, target, lambda got, wanted: int(got == wanted), "likeness"),
    ]


UNKIND = {"score": 0, "explanation": "No."}
CRITICAL = {"criticism": "No.", "nothing_wrong": False}


@pytest.mark.parametrize("prediction", ["billing", Variable("billing")])
@pytest.mark.parametrize(
    "loss",
    [
        lambda got, wanted: ops.exact_match_evaluator(got, wanted)[0],
        lambda got, wanted: ops.deterministic_evaluator(got, wanted, lambda a, b: 0.0, "equal")[1],
        lambda got, wanted: ops.judge(got, "Is it kind?", target=wanted, model=ScriptedModel([UNKIND]))[0],
        lambda got, wanted: ops.text_loss(got, "Is it kind?", target=wanted, model=ScriptedModel([CRITICAL])),
    ],
)
def test_a_loss_says_nothing_to_a_target_in_the_place_of_the_prediction(loss: Any, prediction: Any) -> None:
    """What is wrong with a prediction is no feedback on the target; the message asks whether the two are swapped."""
    target = wanting("shipping")
    lost = loss(prediction, target)
    assert lost.data in (0, "No.") or "shipping" in lost.data
    with pytest.raises(AutogradError, match=r"does not require grad.*is it loss\(prediction, target\), in that order"):
        lost.backward()
    assert said(target) == []


def test_a_list_of_variables_is_a_batch_and_each_gets_its_own_feedback() -> None:
    """A list with one, too; a plain text among them needs none."""
    for number in range(2):
        first, second, third = wanting("a"), wanting("b"), wanting("c")
        score, _ = each_way([first, second, "d", third], ["a", "x", "d", "y"])[number]
        score.backward()
        assert (score.data, score.role) == (2, "score of the queue")
        assert [len(said(variable)) for variable in (first, second, third)] == [0, 1, 1]
        assert "x" in said(second)[0]
        assert "y" in said(third)[0]
        alone = wanting("a")
        each_way([alone], ["x"])[number][0].backward()
        (only,) = said(alone)
        assert isinstance(only, str)


def test_the_work_of_feedback_on_a_batch_grows_with_the_batch_and_no_faster() -> None:
    """Each entry gets its own without a look at the others."""
    steps = []
    for count in (50, 100, 200):
        entries = [wanting("a") for _ in range(count)]
        score, _ = ops.exact_match_evaluator(entries, "b")
        called = 0

        def count_call(frame: Any, event: str, arg: object) -> None:
            nonlocal called
            called += event == "call"

        sys.setprofile(count_call)
        try:
            score.backward()
        finally:
            sys.setprofile(None)
        steps.append(called)
    assert steps[2] - steps[1] < 2.2 * (steps[1] - steps[0])


def test_a_list_of_variables_may_still_be_on_its_way() -> None:
    """As a program gives them that was called in a loop."""
    with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        for number in range(2):
            answers = [ops.chat_completion(None, [{"role": "user", "content": text}]) for text in "ab"]
            assert each_way(answers, ["a", "x"])[number][0].data == 1


def test_targets_may_be_a_list_of_variables() -> None:
    """A metric is given their data, as it is the data of one."""
    given = []
    targets = [Variable("a"), Variable("x")]
    scores = [score.data for score, _ in each_way(Variable(["a", "b"]), targets)]
    assert scores == [1, 1]
    score, _ = ops.deterministic_evaluator(
        Variable(["a", "b"]), targets, lambda got, wanted: given.append(wanted) or 1, "-"
    )
    assert score.data == 2
    assert sorted(given) == ["a", "x"]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_entries_of_a_batch_are_scored_at_the_same_time(asynchronous: bool) -> None:
    """Each waits until all others have begun."""
    begun: list[str] = []
    everybody = asyncio.Event()
    together = threading.Barrier(3, timeout=30)

    async def later(got: str) -> int:
        begun.append(got)
        if len(begun) == 3:
            everybody.set()
        await asyncio.wait_for(everybody.wait(), 30)
        return int(got == "b")

    def at_once(got: str) -> int:
        together.wait()
        return int(got == "b")

    score, _ = ops.deterministic_evaluator(
        Variable(["a", "b", "c"]), None, later if asynchronous else at_once, "b", reduction_fn=None
    )
    assert score.data == [0, 1, 0]


def test_the_error_of_the_first_entry_is_raised_and_says_how_many_more_there_are() -> None:
    """Whichever was first to fail; nothing of the others is left for the garbage collector to complain about."""
    failed = asyncio.Event()

    async def broken(got: str) -> int:
        if got == "a":
            return 1
        if got == "b":
            await failed.wait()
        failed.set()
        raise SystemExit(f"{got} is broken") if got == "c" else ValueError(f"{got} is broken")

    score, _ = ops.deterministic_evaluator(Variable(["a", "b", "c"]), None, broken, "likeness")
    with pytest.raises(ValueError, match="b is broken") as caught:
        _ = score.data
    assert caught.value.__notes__[:2] == [
        "in the metric 'likeness': the prediction 'b'",
        "so did 1 more of 3 entries, next SystemExit('c is broken')",
    ]
    assert ops.deterministic_evaluator(Variable("a"), None, broken, "likeness")[0].data == 1  # the loop goes on


@pytest.mark.parametrize("score", [1.01, -0.01, 10])
def test_a_judge_must_keep_to_the_scale(score: float) -> None:
    """A 10 on a scale to 1 is no very good answer."""
    with pytest.raises(MalformedResponse, match=rf"\$\.score: expected at (most 1|least 0), got the number {score:g}"):
        _ = judged(f'{{"score": {score}, "explanation": "fine"}}')[0].data


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: ops.judge(Variable("a"), "Is it kind?", scale=(1, 5), model=model),
        lambda model: ops.lm_judge_evaluator(model, MESSAGES, Variable("a"), scale=(1, 5)),
    ],
)
def test_a_score_outside_of_the_scale_is_sent_back_and_never_remembered(ask: Any, tmp_path: Path) -> None:
    """It is as wrong as a score in words: the judge is told once, and what it says then is what the cache holds."""
    script = [Completion(text=f'{{"score": {score}, "explanation": "Name it."}}') for score in (4, 80)]
    model = FunctionModel(lambda request: script.pop())
    model.cache_key, model.free = "judge", False  # type: ignore[attr-defined]
    for _ in range(2):
        score, _ = ask(resolve(model, cache=tmp_path))
        assert score.data == 4
    assert "expected at most 5, got the number 80" in model.requests[1].messages[-1].text


def test_a_scale_without_an_end_limits_the_other_one() -> None:
    """JSON has no infinity, so nothing is said of it."""
    assert judged('{"score": 1e9, "explanation": "fine"}', scale=(0, float("inf")))[0].data == 1e9
    with pytest.raises(MalformedResponse, match="expected at least 0"):
        _ = judged('{"score": -1, "explanation": "fine"}', scale=(0, float("inf")))[0].data


@pytest.mark.parametrize("score", ["1e400", "9" * 400])
def test_a_judge_whose_scale_has_no_end_gives_no_number_that_is_too_large_for_one(score: str) -> None:
    """An answer is asked for again, and in the end lost; it ended the evaluation with an OverflowError."""
    with pytest.raises(MalformedResponse):
        _ = judged(f'{{"score": {score}, "explanation": "fine"}}', scale=(0, float("inf")))[0].data


def test_a_judge_with_a_scale_that_runs_downwards_is_refused() -> None:
    """No score would be on it; nothing is sent."""
    with pytest.raises(ValueError, match=r"from the lowest to the highest score, got \(5, 1\)"):
        judged({"score": 3, "explanation": "fine"}, scale=(5, 1))


@pytest.mark.parametrize("text", ["8/10", '{"score": "high"}', '{"score": 1}', '{"score": NaN, "explanation": ""}'])
def test_a_judge_that_does_not_answer_as_asked_gives_no_score(text: str) -> None:
    """Nothing is guessed out of prose."""
    with pytest.raises(MalformedResponse):
        _ = judged(text)[0].data


def test_exact_match_scores_and_explains() -> None:
    """Right is 1 and says nothing; wrong is 0 and shows what was expected and what came."""
    right, nothing = ops.exact_match_evaluator(Variable(" billing\n"), "billing")
    wrong, words = ops.exact_match_evaluator(Variable("Billing"), "billing")
    assert (right.data, nothing.data, wrong.data) == (1, "", 0)
    assert words.data == "The answer is wrong. Expected exactly `billing`, got `Billing`."
    _, words = ops.exact_match_evaluator(Variable("It`s two\nlines"), "billing")
    assert words.data.index("Expected exactly:\n<expected-") < words.data.index("Got:\n<got-")


@pytest.mark.parametrize(
    ("prediction", "target", "score"),
    [
        (12.0, 12, 1),
        (12, "12.0", 1),
        (12.0, "1.2e1", 1),
        ("12.00", 12, 1),
        (-0.0, 0, 1),
        (10**30, "1e30", 1),
        (12.0, " 12\n", 1),
        (json.loads("0.12345678901234567890"), "0.12345678901234567890", 1),
        ("0.12345678901234567890", 0.12345678901234568, 1),
        (2**53 + 1, str(2**53), 0),
        (0.1, "0.10000000000000003", 0),
        (math.inf, "1e400", 0),
        ("12.0", "12", 0),
        (7, "007", 0),
        (1200, "1,200", 0),
        (0.1 + 0.2, 0.3, 0),
        (1, True, 0),
        (True, 1, 0),
        ("true", True, 1),
        (1, "true", 0),
        (0, False, 0),
        (0, "", 0),
        ("null", "", 0),
        (3, "1e99999999999999999999", 0),
        ("\N{ARABIC-INDIC DIGIT THREE}", 3, 0),
        ("12", Decimal("12.00"), 1),
        (0.1, Decimal("0.10"), 1),
        ("12.01", Decimal("12.00"), 0),
        ("NaN", Decimal("NaN"), 1),
        (1, Decimal("NaN"), 0),
    ],
)
def test_numbers_are_compared_by_their_value_and_texts_as_they_are_written(
    prediction: Any, target: Any, score: int
) -> None:
    """A CSV has texts alone, an answer that is JSON has numbers, a database decimals; a truth value is no number."""
    assert ops.exact_match_evaluator(Variable(prediction), target)[0].data == score


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 3))
def test_a_number_is_itself_however_json_writes_it(number: float, zeros: int) -> None:
    """As a field of an answer, and as a column of any table."""
    written = json.dumps(number)
    if isinstance(number, int):
        written += "." + "0" * zeros if zeros else ""
    for prediction, target in ((number, written), (written, number), (number, number)):
        assert ops.exact_match_evaluator(Variable(prediction), target)[0].data == 1
    assert ops.exact_match_evaluator(Variable(number), f"{number}0x")[0].data == 0


def test_a_number_matches_its_text() -> None:
    """Targets out of CSV and JSON are of different types."""
    assert ops.exact_match_evaluator(Variable("4"), 4)[0].data == 1


@pytest.mark.parametrize("start", [0, 1])
def test_a_success_sends_a_true_zero(start: int) -> None:
    """From score or explanation: what is right hears nothing."""
    prediction = wanting("billing")
    ops.exact_match_evaluator(prediction + "", "billing")[start].backward()
    assert prediction.grad == []


@pytest.mark.parametrize("start", [0, 1])
def test_a_failure_sends_its_explanation_once(start: int) -> None:
    """A pass may begin at either output, without a gradient of the user's."""
    prediction = wanting("Billing")
    outputs = ops.exact_match_evaluator(prediction + "", "billing")
    outputs[start].backward()
    assert said(prediction) == [outputs[1].data]
    assert prediction.grad[0].source.score == 0.0


def test_both_outputs_together_say_it_once() -> None:
    """Beginning at both is one pass through one node."""
    prediction = wanting("Billing")
    tg.backward(list(ops.exact_match_evaluator(prediction + "", "billing")))
    assert len(prediction.grad) == 1


def test_words_of_the_users_come_behind_the_explanation() -> None:
    """What is said about the loss itself is not lost."""
    prediction = wanting("Billing")
    ops.exact_match_evaluator(prediction + "", "billing")[0].backward("mind the case")
    assert said(prediction)[1:] == ["mind the case"]


def test_a_batch_is_reduced_and_explained_entry_by_entry() -> None:
    """The score is one number, the explanation one text for each entry, empty where it was right."""
    score, explanation = ops.exact_match_evaluator(Variable(["a", "b", "c"]), ["a", "x", "c"], reduction_fn=max)
    assert score.data == 1
    assert [bool(text) for text in explanation.data] == [False, True, False]
    assert ops.exact_match_evaluator(Variable(["a", "b"]), "a")[0].data == 1


def test_a_batch_that_is_all_right_is_a_zero() -> None:
    """A list of empty texts is no feedback."""
    prediction = wanting(["a", "b"])
    ops.exact_match_evaluator(prediction.clone(), ["a", "b"])[0].backward()
    assert prediction.grad == []


def test_a_metric_runs_off_the_event_loop_and_the_callers_thread() -> None:
    """A slow metric holds up neither the calls in flight nor the loop over the examples."""
    threads: list[str] = []

    def metric(got: str, wanted: str) -> tuple[float, str]:
        threads.append(threading.current_thread().name)
        return 0.5, f"{got} is not {wanted}"

    score, explanation = ops.deterministic_evaluator(Variable("a"), "b", metric, "likeness")
    assert score.data == 0.5
    assert threads[0] not in (threading.main_thread().name, "textgrad_engine")
    assert "scored 0.5 (1 is full marks) by a check of likeness" in explanation.data
    assert "a is not b" in explanation.data


def test_a_stop_iteration_of_a_metric_is_raised_where_it_is_read() -> None:
    """A look for a line that is not there must not hang the run."""

    def metric(got: str, wanted: str) -> float:
        return float(next(line for line in got.splitlines() if line.startswith("Answer:")) == wanted)

    score, _ = ops.deterministic_evaluator(Variable("a"), "b", metric, "likeness")
    with pytest.raises(RuntimeError, match="give next\\(\\) a default") as caught:
        _ = score.data
    assert caught.value.__notes__[0].startswith("in the metric 'likeness'")


def test_metrics_that_wait_for_other_metrics_do_not_run_out_of_threads() -> None:
    """However many of them there are."""

    def short(got: str, wanted: str) -> float:
        return float(len(got) < 5)

    def both(got: str, wanted: str) -> float:
        return ops.deterministic_evaluator(Variable(got), wanted, short, "length")[0].data / 2

    scores = [ops.deterministic_evaluator(Variable("a"), "a", both, "likeness")[0] for _ in range(200)]
    assert [score.data for score in scores] == [0.5] * 200


def test_slow_metrics_leave_the_executor_of_the_loop_to_others() -> None:
    """Host names are looked up there, for every model that is asked meanwhile."""
    gate = threading.Event()
    scores = [
        ops.deterministic_evaluator(Variable("a"), "a", lambda *_: gate.wait(60), "patience")[0] for _ in range(80)
    ]
    assert dispatch.run(lambda: asyncio.to_thread(lambda: "found")) == "found"
    gate.set()
    assert all(score.data for score in scores)


def test_an_async_metric_is_awaited() -> None:
    """Also where `inspect` does not see that it is one."""

    async def metric(got: str, wanted: str, weight: float = 1.0) -> float:
        return weight * (got == wanted)

    for function in (metric, functools.partial(metric, weight=0.25), lambda got, wanted: metric(got, wanted, 0.25)):
        score, _ = ops.deterministic_evaluator(Variable("a"), "a", function, "likeness")
        assert score.data in (1.0, 0.25)


def test_a_metric_on_a_batch_is_called_for_each_entry() -> None:
    """Scores are reduced by the user's function; the metric never sees the list."""
    seen: list[Any] = []

    def metric(got: str, wanted: str) -> bool:
        seen.append((got, wanted))
        return got == wanted

    mean = ops.deterministic_evaluator(
        Variable(["a", "b"]), ["a", "c"], metric, "likeness", reduction_fn=lambda scores: sum(scores) / len(scores)
    )[0]
    assert mean.data == 0.5
    assert sorted(seen) == [("a", "a"), ("b", "c")]


def test_success_is_the_users_to_define() -> None:
    """A score that counts as success has no explanation and sends nothing; full marks may be no success."""
    prediction = wanting("abc")

    def evaluated(worth: float, least: float) -> tuple[Variable, Variable]:
        return ops.deterministic_evaluator(
            prediction + "", None, lambda got: worth * len(got), "length", success_fn=lambda length: length >= least
        )

    score, explanation = evaluated(0.1, 0.3)
    assert (round(score.data, 1), explanation.data) == (0.3, "")
    score.backward()
    assert prediction.grad == []
    score, explanation = evaluated(1, 4)
    assert (score.data, "scored 3" in explanation.data) == (3, True)
    score.backward()
    assert len(prediction.grad) == 1


@pytest.mark.parametrize("wanted", [lambda score: score >= 3, lambda scores: all(score >= 3 for score in scores)])
def test_a_success_fn_of_one_score_or_of_a_list_as_in_afnio(wanted: Any) -> None:
    """Where not all of a batch succeed, each is asked about by itself: feedback on it depends on its own score."""
    prediction = wanting(["abc", "ab"])
    evaluated = ops.deterministic_evaluator(prediction, None, len, "length", success_fn=wanted)
    assert [bool(text) for text in evaluated[1].data] == [False, True]
    model = ScriptedModel([{"score": 3, "explanation": "fine"}])
    score, explanation = ops.judge(wanting("x"), "Is it kind?", scale=(1, 5), success_fn=wanted, model=model)
    assert (score.data, explanation.data) == (3, "")


@pytest.mark.parametrize("how", ["metric", "judge", "messages"])
def test_a_success_fn_of_a_list_is_first_asked_about_the_whole_batch(how: str) -> None:
    """As afnio documents it: True skips the feedback on every entry, also on those that fail by themselves."""

    def evaluated(prediction: Variable, least: float) -> tuple[Variable, Variable]:
        def good_on_average(scores: list[float]) -> bool:
            return sum(scores) / len(scores) >= least

        if how == "metric":
            return ops.deterministic_evaluator(
                prediction, "a", lambda got, wanted: got == wanted, "equality", success_fn=good_on_average
            )
        model = FunctionModel(
            lambda request: {"score": int("wrong!" not in request.messages[-1].text), "explanation": "no"}
        )
        if how == "judge":
            return ops.judge(prediction, "Is it a?", success_fn=good_on_average, model=model)
        messages = [{"role": "user", "content": "{prediction}"}]
        return ops.lm_judge_evaluator(model, messages, prediction, success_fn=good_on_average)

    prediction = wanting(["a", "a", "wrong!", "a"])
    score, explanation = evaluated(prediction, 0.75)
    assert (score.data, explanation.data) == (3, [""] * 4)
    score.backward()
    assert prediction.grad == []
    score, explanation = evaluated(prediction, 0.8)
    assert [bool(text) for text in explanation.data] == [False, False, True, False]
    score.backward()
    assert [[bool(text) for text in item.data] for item in prediction.grad] == [[False, False, True, False]]


def test_a_success_fn_of_a_number_is_not_asked_about_a_list() -> None:
    """Each entry speaks for itself, though the function could take a list of scores, too."""
    prediction = wanting(["a", "x"])
    for evaluated in (
        ops.deterministic_evaluator(prediction, "a", lambda got, wanted: got == wanted, "equality", success_fn=bool),
        ops.judge(
            prediction,
            "Is it a?",
            success_fn=bool,
            model=ScriptedModel([{"score": 1, "explanation": ""}, {"score": 0, "explanation": "no"}]),
        ),
    ):
        assert [bool(text) for text in evaluated[1].data] == [False, True]


def test_words_on_a_batch_that_succeeds_still_arrive() -> None:
    """Success silences the evaluator, not what is said about its score."""
    prediction = wanting(["a", "a"])
    model = ScriptedModel([{"score": 1, "explanation": ""}, {"score": 1, "explanation": ""}])
    ops.judge(prediction, "Is it a?", model=model)[1].backward(["warmer", ""])
    assert said(prediction) == [["warmer", ""]]


def test_a_success_fn_that_fails_says_why() -> None:
    """Its own error, whichever way it was asked."""
    score, _ = ops.deterministic_evaluator(wanting("abc"), None, len, "length", success_fn=lambda score: score < "x")
    with pytest.raises(TypeError, match="'<' not supported between instances of 'int' and 'str'"):
        _ = score.data


def test_the_judge_is_shown_what_it_judges() -> None:
    """Criteria, inputs, reference, answer and scale, fenced, in one request of purpose judge."""
    model = ScriptedModel([{"score": 3, "explanation": "be warmer"}])
    score, explanation = ops.judge(
        wanting("Go away."),
        "Is it kind?",
        target="Please come back later.",
        inputs={"question": Variable("May I come in?")},
        scale=(1, 5),
        model=model,
    )
    assert (score.data, explanation.data) == (3.0, "be warmer")
    (request,) = model.requests
    text = request.messages[-1].text
    assert request.purpose == "judge"
    words = ["Is it kind?", "question:", "May I come in?", "Please come back later.", "Go away.", "from 1 (worst) to 5"]
    assert [text.count(word) for word in words] == [1] * len(words)
    assert sorted(map(text.index, words)) == list(map(text.index, words))


def test_the_reason_of_a_judge_goes_to_the_prediction_alone() -> None:
    """Feedback goes to what was judged; the judge's own instructions hear nothing and no critic is paid."""
    criteria = Variable("Is it kind?", role="criteria", requires_grad=True)
    prediction = wanting("Go away.")
    model = ScriptedModel([{"score": 0, "explanation": "be warmer"}])
    with tg.use_models(forward=model):
        ops.judge(prediction + "", criteria)[0].backward()
    assert (said(prediction), said(criteria)) == (["be warmer"], [])
    assert len(model.requests) == 1


def test_full_marks_are_a_zero_whatever_the_judge_adds() -> None:
    """Praise is not feedback."""
    prediction = wanting("Welcome.")
    score, explanation = judged({"score": 1, "explanation": "Perfect, well done!"}, prediction + "")
    score.backward()
    assert (explanation.data, prediction.grad) == ("", [])


def test_a_bad_score_without_a_reason_still_says_something() -> None:
    """A failed example never looks like a success to backward."""
    prediction = wanting("Go away.")
    judged({"score": 2, "explanation": " "}, prediction + "", scale=(1, 5))[0].backward()
    assert said(prediction) == ["The judge gave 2 on a scale from 1 to 5, without a reason."]


def test_a_judge_of_ones_own_words() -> None:
    """Slots of the messages are filled; contents may be lists with Variables and braces survive."""
    model = ScriptedModel([{"score": 4, "explanation": "shorter"}])
    prediction = wanting("{target}")
    score, _ = ops.lm_judge_evaluator(
        model,
        [
            {"role": "system", "content": [Variable("Grade"), ' as {"score": 1}.']},
            {"role": "user", "content": "{question} -> {prediction} (not {target})"},
        ],
        prediction + "",
        "gold",
        {"question": "2 + 2?"},
        scale=(0, 10),
    )
    assert score.data == 4.0
    assert [message.text for message in model.requests[0].messages] == [
        'Grade as {"score": 1}.',
        "2 + 2? -> {target} (not gold)",
    ]
    score.backward()
    assert said(prediction) == ["shorter"]


def test_a_judge_of_ones_own_words_may_leave_slots_out() -> None:
    """Not every judge needs the reference."""
    model = ScriptedModel([{"score": 1, "explanation": ""}])
    messages = [{"role": "user", "content": "Kind? {prediction}"}]
    assert ops.lm_judge_evaluator(model, messages, Variable("hi"), "gold")[0].data == 1.0


@pytest.mark.parametrize(
    ("settings", "score", "said_so"),
    [
        ({"scale": (0, 10)}, 7, "scored 7 on a scale from 0 (worst) to 10 (best) by a check of tone."),
        ({}, 0.1 + 0.2, "scored 0.3 (1 is full marks) by a check of tone."),
        ({}, 0.9999999999, "scored 0.9999999999 (1 is full marks) by a check of tone."),
        (
            {"scale": (0, 2345678)},
            1234567,
            "scored 1234567 on a scale from 0 (worst) to 2345678 (best) by a check of tone.",
        ),
        ({"success_fn": lambda score: score < 0.1}, 0.1 + 0.2, "scored 0.3 by a check of tone; that does not pass."),
        (
            {"success_fn": lambda score: score > 8, "scale": (0, 10)},
            7.5,
            "scored 7.5 on a scale from 0 (worst) to 10 (best) by a check of tone; that does not pass.",
        ),
    ],
)
def test_a_score_is_said_with_its_scale(settings: dict[str, Any], score: float, said_so: str) -> None:
    """Seven of ten and seven of seven ask for different changes."""
    _, explanation = ops.deterministic_evaluator(Variable("hi"), None, lambda text: score, "tone", **settings)
    assert f"The answer was {said_so}\n" in explanation.data


@pytest.mark.parametrize(
    "score", [0.7 + 0.2 + 0.1, math.nextafter(1.0, 2.0), functools.reduce(operator.add, [0.02] * 50)]
)
@pytest.mark.parametrize("scale", [None, (0, 1)])
def test_full_marks_in_parts_are_full_marks(score: float, scale: tuple[int, int] | None) -> None:
    """Floats add up to a little less, or more: that is neither wrong nor beyond the scale, and nobody is asked."""
    answer = Variable("hi", role="answer", requires_grad=True)
    found, _ = ops.deterministic_evaluator(answer, None, lambda text: score, "tone", scale=scale)
    found.backward()
    assert score != 1
    assert (found.data, answer.grad) == (1, [])


def test_criticism_goes_to_the_prediction_as_it_is() -> None:
    """A text loss is words; nothing to criticize is a zero."""
    prediction = wanting("Go away.")
    model = ScriptedModel(
        [{"nothing_wrong": False, "criticism": " be warmer "}, {"nothing_wrong": False, "criticism": "  "}]
    )
    with tg.use_models(judge=model):
        ops.text_loss(prediction + "", "Is it kind?", target="Come in.").backward()
        loss = ops.text_loss(prediction + "", "Is it short?")
        loss.backward()
    assert said(prediction) == ["be warmer"]
    assert loss.data == ""
    assert "Come in." in model.requests[0].messages[-1].text
    assert "reference" not in model.requests[1].messages[-1].text


def test_a_criticism_that_says_that_nothing_is_wrong_is_a_zero() -> None:
    """Models say so in a sentence; taken for feedback, it would be handed on through the whole program."""
    prediction = wanting("4")
    said_so = {"nothing_wrong": True, "criticism": "Nothing is wrong; the answer is correct."}
    model = ScriptedModel([said_so, {"nothing_wrong": False, "criticism": "It is 5."}])
    with tg.use_models(judge=model):
        ops.text_loss(prediction + "", "Right?").backward()
        ops.text_loss(prediction + "", "Right?").backward()
    assert said(prediction) == ["It is 5."]


def test_an_unreadable_criticism_is_an_error() -> None:
    """Nothing is made of a broken answer."""
    model = resolve(ScriptedModel([Completion(text="rather rude")]), policy=RetryPolicy(answer_attempts=1))
    loss = ops.text_loss(wanting("x"), "Is it kind?", model=model)
    with pytest.raises(MalformedResponse):
        _ = loss.data


def test_a_plain_text_or_list_is_judged_as_a_variable_is() -> None:
    """A program without a prompt in it has no feedback to give, but a score."""
    for prediction, score, explained in (("a", 1, ""), (["a", "b"], 1, ["", None])):
        for evaluated in (
            ops.exact_match_evaluator(prediction, "a"),
            ops.deterministic_evaluator(prediction, "a", str.__eq__, "likeness"),
        ):
            assert evaluated[0].data == score
            assert evaluated[1].data == explained or (len(evaluated[1].data) == 2 and evaluated[1].data[1])


def test_the_explanation_says_where_it_came_from() -> None:
    """Its example and its node, also where no model stands between it and the leaf; and the score."""
    prediction = wanting("a")
    with tg.autograd.example("t7"):
        loss = ops.exact_match_evaluator(prediction, "c")[0]
    loss.backward()
    (item,) = prediction.grad
    assert item.source == tg.autograd.Source(example="t7", node="ExactMatchBackward", score=0.0, direct=True)


@pytest.mark.parametrize(("score", "said"), [(1 / 3, "0.3333"), (0.99996, "0.99996"), (12.3456789, "12.3457")])
def test_a_score_is_told_with_four_digits_and_never_as_full_marks_where_it_is_less(score: float, said: str) -> None:
    """Ten digits of a third say no more, and take the place of words."""
    _, explanation = ops.deterministic_evaluator(Variable("x"), None, lambda _: score, "a part", lambda _: False)
    assert f"scored {said} " in str(explanation)


def in_full(request: Any) -> dict[str, Any]:
    """What judges and text losses say, in either form."""
    said = {"score": 0, "explanation": "too long", "nothing_wrong": False, "criticism": "too long"}
    return {key: said[key] for key in request.config.response_format.json_schema["properties"]}


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda text, _: ops.exact_match_evaluator(text, "z" if text.data == "old" else ["z", "z"])[0],
        lambda text, _: ops.exact_match_evaluator(text, "z" if text.data == "old" else ["z", "z"])[1],
        lambda text, _: ops.deterministic_evaluator(text, text.detach(), lambda *both: 0, "sameness")[0],
        lambda text, model: ops.lm_judge_evaluator(model, MESSAGES, text)[0],
        lambda text, model: ops.judge(text, "Is it kind?", model=model)[0],
        lambda text, model: ops.text_loss(text, "Is it kind?", model=model),
    ],
)
@pytest.mark.parametrize(("old", "new"), [("old", "improved"), (["old", "older"], ["improved", "older"])])
def test_what_was_said_of_a_text_is_not_said_of_the_one_that_came_after_it(evaluate: Any, old: Any, new: Any) -> None:
    """Feedback on an answer that was improved in between would have it undo what is right by now."""
    text = wanting(old)
    loss = evaluate(text, FunctionModel(in_full))
    text.data = new
    with pytest.raises(AutogradError, match="'queue' was changed after it was used"):
        loss.backward()
    assert not text.grad


def test_what_a_program_gave_is_told_with_its_article() -> None:
    """Names of classes begin with vowels, too."""
    given = OrderedDict(answer=1), 3, (1, 2)
    assert [outputs_in_words(each) for each in given] == ["an OrderedDict of answer", "an int", "a tuple of 2"]


def test_a_metric_that_is_given_up_before_it_is_called_leaves_nothing_behind():
    """An error of another example ends the loop then; Python warned of a coroutine "never awaited" behind it."""

    async def given_up():
        forward = evaluators._Deterministic.forward
        asked = asyncio.ensure_future(forward(Variable("a"), "a", operator.eq, "equality", None, sum, None))
        await asyncio.sleep(0)  # it has begun, and what calls the metric has not
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(given_up())
        gc.collect()
    assert [str(each.message) for each in told] == []
