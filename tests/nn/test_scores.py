"""Losses made of losses: on a field, and several as one score."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, nn
from textgrad_engine.errors import DataError, MalformedResponse, ScoreError
from textgrad_engine.nn.scores import losses_in
from textgrad_engine.ops.score_parts import hearing_parts
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective
from textgrad_engine.train.grid import is_uniform

ANSWER = '{"why": "It is late.", "label": "late", "people": [{"name": "Ada"}]}'


def brief(text: str, _: Any = None) -> float:
    return 10 - len(text)


def answer(text: str = ANSWER) -> Variable:
    return Variable(text, role="answer", requires_grad=True)


@pytest.mark.parametrize("wrong", [(), (True,), (1.5,), (None,)])
def test_a_loss_on_no_field_is_refused_where_it_is_made(wrong: tuple[Any, ...]) -> None:
    """Else it would be refused on the first answer that is paid for."""
    with pytest.raises(TypeError, match=r"^OnField: "):
        nn.OnField(nn.ExactMatch(), *wrong)


@pytest.mark.parametrize("wrong", [3, nn.ExactMatch])
def test_what_is_no_loss_is_refused_where_a_loss_is_made_of_it(wrong: Any) -> None:
    """A class would be made anew with the answer, or asked for its scale."""
    said = {3: "got 3", nn.ExactMatch: r"got the class ExactMatch; give an instance of it: ExactMatch\(\.\.\.\)"}[wrong]
    with pytest.raises(TypeError, match=f"OnField: its loss must be a module or a function, {said}"):
        nn.OnField(wrong, "label")
    with pytest.raises(TypeError, match=f"Weighted: the loss 'a' must be a module or a function, {said}"):
        nn.Weighted({"a": wrong})


def test_an_answer_without_the_field_is_lost_or_scored_as_the_default() -> None:
    """As `ops.field` has it; the answer is told why."""
    with pytest.raises(MalformedResponse, match="has no field lable"):
        _ = nn.OnField(nn.ExactMatch(), "lable")(answer(), "late").data
    plain = answer("late")
    loss = nn.OnField(nn.ExactMatch(), "label", default="")(plain, "late")
    loss.backward()
    assert loss.data == 0
    assert "no JSON" in plain.grad[0].data


def test_the_target_s_own_field_is_compared() -> None:
    """One column of objects serves a metric for each field."""
    loss = nn.OnField(nn.ExactMatch(), "people", 0, "name")
    assert loss(answer(), {"people": [{"name": "Ada"}]}).data == 1
    assert loss(answer(), "Ada").data == 1
    with pytest.raises(TypeError, match=r"needs a target, got None: .* Where null is right, write it: \{'due': None\}"):
        loss(answer(), {"people": []})


def test_of_several_outputs_the_named_one_is_scored() -> None:
    """A program that gives its first answer, too, has it scored by itself."""

    @dataclass
    class Both:
        request: Variable
        letter: Variable

    request = answer("short")
    outputs = Both(request, answer())
    loss = nn.OnField(nn.Metric(brief, "length", scale=(0, 10)), "request")
    assert loss(outputs, None).data == loss({"request": request}, None).data == 5
    assert nn.OnField(nn.ExactMatch(), "letter", "label")(outputs, "late").data == 1
    with pytest.raises(ScoreError, match="no output 'reply' of the program; it gives request, letter"):
        nn.OnField(nn.ExactMatch(), "reply")(outputs, "late")
    with pytest.raises(ScoreError, match=r"'request' is read of one Variable, got a tuple of 2; .* a dict of several"):
        nn.OnField(nn.ExactMatch(), "request")((request, request), "late")
    loss(outputs, None).backward()
    assert len(request.grad) == 1
    assert outputs.letter.grad == []


@pytest.mark.parametrize(
    ("losses", "weights", "said"),
    [
        ({}, None, "each loss has a weight"),
        ({"a": nn.ExactMatch()}, {"b": 1}, r"got losses \['a'\] and weights \['b'\]"),
        ({"a": nn.ExactMatch()}, {"a": 0}, "the weight of 'a' is a number above 0, got 0"),
        ({"a": nn.ExactMatch()}, {"a": float("inf")}, "above 0"),
        ({"a": nn.ExactMatch()}, {"a": float("nan")}, "above 0"),
        ({"a": nn.ExactMatch()}, {"a": True}, "above 0"),
        ({"a": nn.ExactMatch(), "b": nn.Metric(brief, "length")}, None, "'b' does not say from where to where"),
        ({"b": nn.OnField(nn.Metric(brief, "length"), "why")}, None, "'b' does not say from where to where"),
        ({"b": nn.TextLoss("What is wrong?")}, None, "'b' is a TextLoss, which gives words and no score; take nn.Jud"),
        ({"b": nn.Metric(brief, "length")}, None, r"; give it scale=\(0, 1\), or what they are$"),
        ({"b": brief}, None, r"; nn\.Metric\(function, purpose, scale=\(0, 1\)\) makes a loss of a function"),
    ],
)
def test_scores_that_cannot_be_weighed_are_refused(losses: Any, weights: Any, said: str) -> None:
    """A score without a known end has no part of it."""
    with pytest.raises(ValueError, match=said):
        nn.Weighted(losses, weights)


@pytest.mark.parametrize(
    ("weights", "wanted"), [(None, 0.5), ({"right": 3, "long": 1}, 0.75), ({"right": 0.1, "long": 0.3}, 0.25)]
)
def test_the_score_is_the_mean_of_the_parts_of_the_scales(weights: Any, wanted: float) -> None:
    """Here 1 of 0 to 1, and -10 of -10 to 10."""
    losses = {"right": nn.ExactMatch(), "long": nn.Metric(lambda a, b: -10, "length", scale=(-10, 10))}
    assert nn.Weighted(losses, weights)(answer("late"), "late").data == pytest.approx(wanted)


@pytest.mark.parametrize("weights", [(0.1, 0.2, 0.7), (1, 1, 1), (3, 7, 11), (0.3, 0.3, 0.3)])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 5), (-0.3, 0.1), (0, 100)])
def test_full_marks_of_all_are_full_marks_to_the_last_digit(
    weights: tuple[float, ...], low: float, high: float
) -> None:
    """A right answer that lacks 1e-16 would be learned from again and again; and the lowest score is not below 0."""
    for marks, wanted in ((high, 1), (low, 0)):
        losses = {name: nn.Metric(lambda a, b, marks=marks: marks, "x", scale=(low, high)) for name in "abc"}
        assert nn.Weighted(losses, dict(zip("abc", weights)))(answer(), "late").data == wanted


def test_weights_are_those_of_their_names() -> None:
    """In whatever order they are given."""
    losses = {"right": nn.ExactMatch(), "long": nn.Metric(lambda a, b: 0, "length", scale=(0, 1))}
    assert nn.Weighted(losses, {"long": 1, "right": 3})(answer("late"), "late").data == 0.75


def test_a_score_of_several_goes_through_transforms() -> None:
    """As the library's other losses: each example has a score of its own."""
    loss = nn.Weighted(
        {"label": nn.OnField(nn.ExactMatch(), "label"), "brief": nn.Metric(lambda a, b: 1, "x", scale=(0, 2))}
    )
    found = tg.func.vmap(loss)([ANSWER, '{"label": "lost"}'], ["late", "late"])
    assert found.data == [0.75, 0.25]


def test_what_is_satisfied_is_silent() -> None:
    """Nobody is asked about it."""
    text = answer("late")
    losses = {"right": nn.ExactMatch(), "long": nn.Metric(brief, "LENGTH", scale=(0, 10))}
    nn.Weighted(losses)(text, "late").backward()
    assert len(text.grad) == 1
    assert "LENGTH" in text.grad[0].data


def test_each_loss_is_called_with_what_it_takes() -> None:
    """A function of the inputs, one of the target, and a judge."""
    seen: dict[str, Any] = {}
    by_inputs = nn.Metric(lambda text, inputs: bool(seen.update(inputs=dict(inputs))), "a", scale=(0, 1))
    by_target = nn.Metric(lambda text, wanted: bool(seen.update(target=wanted)), "b", scale=(0, 1))
    judge = nn.Judge("Is it kind?", model=FunctionModel(lambda asked: {"score": 1, "explanation": ""}))
    loss = nn.Weighted({"a": by_inputs, "b": by_target, "c": judge})
    program = nn.ChatCompletion("{mail}", model=FunctionModel(lambda asked: "late"))
    rows = [{"mail": "m", "target": "lost"}]
    assert tg.evaluate(program, rows, loss).scores == (pytest.approx(1 / 3),)
    assert seen == {"inputs": {"mail": "m"}, "target": "lost"}
    with pytest.raises(DataError, match="no field 'target'"):
        tg.evaluate(program, [{"mail": "m"}], loss)


def test_a_function_inside_gets_target_and_prediction_as_it_names_them() -> None:
    """As one of its own does in a run; the two came to it the other way round."""

    def starts(gold: str, pred: tg.Variable) -> tg.Variable:
        return tg.Variable(float(pred.data.startswith(gold)))

    def by_name(*, pred: tg.Variable, gold: str) -> tg.Variable:
        return starts(gold, pred)

    rows = [{"text": '{"label": "lately"}', "target": "late"}]
    for loss in (starts, by_name):
        assert tg.evaluate(lambda text: text, rows, nn.OnField(loss, "label")).scores == (1.0,)


def test_what_each_gave_can_be_heard_of_programs_that_wait_too() -> None:
    """Those are run in threads, which hear of it as well."""

    def program(mail: str) -> Variable:
        first = nn.ChatCompletion("{mail}", model=FunctionModel(lambda asked: "late"))(mail)
        return first + str(first.data)

    rows = [{"mail": str(n), "target": "latelate"} for n in range(9)]
    with hearing_parts() as heard:
        tg.evaluate(program, rows, nn.Weighted({"right": nn.ExactMatch()}))
    assert heard == []  # `evaluate` listens for each example by itself
    with hearing_parts() as heard:
        nn.Weighted({"inner": nn.Weighted({"right": nn.ExactMatch()})})(answer("late"), "late")
    assert [list(parts) for parts in heard] == [["right"], ["inner"]]


def test_many_candidates_are_run_at_once_where_all_losses_allow_it() -> None:
    """Else a search would be slower with two metrics than with one."""
    chat = nn.ChatCompletion("{mail}", system=nn.Parameter("Sort."))
    judge = nn.Judge("Is it kind?")
    assert is_uniform(chat, nn.Weighted({"a": nn.OnField(nn.ExactMatch(), "label"), "b": judge}))
    by_inputs = nn.Metric(lambda text, inputs: 1, "a", scale=(0, 1))
    assert not is_uniform(chat, nn.Weighted({"a": nn.OnField(by_inputs, "label"), "b": judge}))

    class Mine(nn.Weighted):
        pass

    assert not is_uniform(chat, Mine({"b": judge}))


def test_what_is_trained_in_a_loss_is_found_and_a_loss_can_be_pickled() -> None:
    """A judge's criteria may be a Parameter."""
    criteria = nn.Parameter("Is it kind?", role="criteria")
    loss = nn.Weighted({"a.b": nn.OnField(nn.Judge(criteria), "why"), "b": nn.ExactMatch()})
    assert [name for name, _ in loss.named_parameters()] == ["loss0.loss.instructions"]
    assert repr(loss).startswith("Weighted(\n  weights={")
    assert "loss0" not in repr(loss)
    again = pickle.loads(pickle.dumps(loss))
    assert (again.weights, again.scales) == (loss.weights, loss.scales)
    assert [type(each) for each in losses_in(again)] == [nn.Judge, nn.ExactMatch]


def test_weights_may_be_as_large_or_small_as_numbers_are() -> None:
    """Only how they compare counts, and no sum of them is too large; a whole number beyond all others is refused."""
    right, wrong = {"label": "late", "why": "x"}, {"label": "", "why": ""}
    for weight in (5e-324, 1.0, 1e308):
        losses = {name: nn.OnField(nn.ExactMatch(), name) for name in right}
        loss = nn.Weighted(losses, dict.fromkeys(losses, weight))
        assert [loss(answer(), target).data for target in (right, wrong)] == [0.5, 0.0]
    with pytest.raises(ValueError, match="the weight of 'a' is a number above 0"):
        nn.Weighted({"a": nn.ExactMatch()}, {"a": 10**400})


class Single:
    """A number of half the precision, as numpy's float32: beside one that it cannot hold it warns."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value

    def __abs__(self) -> Single:
        return Single(abs(self.value))

    def __add__(self, other: float) -> float:
        return self.value + other

    def __gt__(self, other: float) -> bool:
        return self.value > self._held(other)

    def __le__(self, other: float) -> bool:
        return self.value <= self._held(other)

    @staticmethod
    def _held(other: float) -> float:
        if other > 3.4e38:
            warnings.warn("overflow encountered in cast", RuntimeWarning, stacklevel=3)
        return other


def test_weights_may_be_numbers_of_another_library() -> None:
    """No warning of that library is shown to somebody who gave a weight like any other."""
    loss = nn.Weighted({"a": nn.ExactMatch(), "b": nn.JSONMatch()}, {"a": Single(3.0), "b": Single(1.0)})
    assert loss.weights == {"a": 3.0, "b": 1.0}


def test_a_field_that_is_null_is_expected_as_null() -> None:
    """What there is not to extract is an answer like others, and a function is given what it is given of an answer."""
    nothing, something = answer('{"phone": null}'), answer('{"phone": "12"}')
    loss = nn.OnField(nn.ExactMatch(), "phone")
    assert [loss(said, {"phone": None}).data for said in (nothing, something)] == [1, 0]
    assert [loss(said, {"phone": "12"}).data for said in (nothing, something)] == [0, 1]
    seen: list[Any] = []
    told = nn.Metric(lambda said, target: seen.append(target) or 1, "a")
    assert nn.OnField(told, "phone")(nothing, {"phone": None}).data == 1
    with pytest.raises(TypeError, match="needs a target"):
        nn.OnField(nn.ExactMatch(), "phone", "home", default="")(nothing, {"phone": None})
    with pytest.raises(TypeError, match="needs a target"):
        loss(nothing, {"fax": None})
    assert seen == ["null"]


def test_null_is_no_criteria() -> None:
    """It was one, in words: the judge looked whether an answer meets "null"."""
    model = FunctionModel(lambda asked: {"1": {"explanation": "", "met": True}})
    loss = nn.OnField(nn.Rubric(model=model), "label")
    with pytest.raises(TypeError, match="takes the criteria from the target, got None"):
        loss(answer(), {"label": None})
    several = nn.Weighted({"a": loss, "b": nn.ExactMatch()}, targets={"a": "wish", "b": "team"})
    with pytest.raises(TypeError, match="takes the criteria from the target, got None"):
        several(answer(), {"wish": None, "team": "late"})
    program = nn.ChatCompletion("{mail}", model=FunctionModel(lambda asked: ANSWER))
    with pytest.raises(DataError, match="has null in the field 'wish'"):
        tg.evaluate(program, [{**ROW, "wish": None}], several)
    assert model.requests == []


ROW = {"mail": "m", "team": "late", "reason": "It is late."}


def by_column(**columns: str) -> nn.Weighted:
    losses = {name: nn.OnField(nn.ExactMatch(), name) for name in ("label", "why")}
    return nn.Weighted(losses, targets={**dict(zip(losses, ("team", "reason"))), **columns})


@pytest.mark.parametrize(
    ("targets", "error", "said"),
    [
        (
            {"label": "team", "wy": "reason"},
            ValueError,
            "targets names 'wy', and the losses are 'label', 'why', 'kind'",
        ),
        ({"label": "team"}, ValueError, "the loss 'why' needs a target; say in targets which field holds it"),
        ({"label": "team", "why": None}, TypeError, "the target of 'why', such as 'label'; got NoneType"),
        ("team", TypeError, "Weighted: targets must be a dict or None, got 'team'"),
    ],
)
def test_targets_that_do_not_go_with_the_losses_are_refused(targets: Any, error: Any, said: str) -> None:
    """Before anything is asked; a judge can do without one."""
    losses = {name: nn.OnField(nn.ExactMatch(), name) for name in ("label", "why")}
    with pytest.raises(error, match=said):
        nn.Weighted({**losses, "kind": nn.Judge("Is it kind?")}, targets=targets)


def test_losses_and_weights_have_names() -> None:
    """A list of them is a natural mistake."""
    losses: Any = [nn.ExactMatch(), nn.ExactMatch()]
    weights: Any = [1, 2]
    with pytest.raises(TypeError, match="Weighted: losses must be a dict, got the list"):
        nn.Weighted(losses)
    with pytest.raises(TypeError, match="Weighted: weights must be a dict or None, got the list"):
        nn.Weighted({"a": losses[0], "b": losses[1]}, weights)


def test_targets_are_said_by_the_outermost_loss() -> None:
    """What is inside is called with a target, and not with the example."""
    for wrong in (lambda: nn.OnField(by_column(), "x"), lambda: nn.Weighted({"x": by_column()})):
        with pytest.raises(ValueError, match="a Weighted with targets; give targets= to the outermost one"):
            wrong()


def test_a_loss_with_targets_is_called_with_the_example() -> None:
    """In a loop of one's own, as the Trainer does it; what is no example, or lacks a column, is named."""
    assert by_column()(answer(), ROW).data == 1
    assert by_column(why="team")(answer(), ROW).data == 0.5
    with pytest.raises(ScoreError, match=r"called with the example .* as loss\(answer, row\); got str 'late'"):
        by_column()(answer(), "late")
    with pytest.raises(ScoreError, match=r"target of 'why' is in the field 'reson' .* that has mail, team, reason"):
        by_column(why="reson")(answer(), ROW)


def test_each_metric_is_given_its_own_target_and_others_none() -> None:
    """A judge of one field was shown what is right for another one."""
    shown: list[str] = []

    def judged(request: Any) -> Any:
        shown.append(request.messages[-1].text)
        return {"score": 1, "explanation": ""}

    judge = nn.Judge("Is it kind?", model=FunctionModel(judged))
    losses = {"label": nn.OnField(nn.ExactMatch(), "label"), "kind": judge}
    program = nn.ChatCompletion("{mail}", model=FunctionModel(lambda asked: ANSWER))
    assert tg.evaluate(program, [ROW], nn.Weighted(losses, targets={"label": "team"})).scores == (1.0,)
    assert tg.evaluate(program, [ROW], nn.Weighted(losses, targets={"label": "team", "kind": "reason"})).mean == 1
    assert ["reference" in text.partition("It is never")[0] for text in shown] == [False, True]
    assert "It is late." in shown[1].partition("A reference answer:")[2].partition("The answer to judge")[0]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"mail": "m", "team": "late"}, "has no field 'reason' for the target; it has mail, team"),
        ({**ROW, "reason": float("nan")}, "has nan in the field 'reason' for the target"),
    ],
)
def test_an_example_without_a_column_is_named_before_anything_is_asked(row: Any, said: str) -> None:
    """With the columns that there are."""
    program = nn.ChatCompletion("{mail}", model=FunctionModel(lambda asked: pytest.fail("asked")))
    with pytest.raises(DataError, match=said):
        tg.evaluate(program, [ROW, row], by_column())


def test_a_program_is_not_shown_any_of_the_targets() -> None:
    """The second one neither."""
    program = nn.ChatCompletion("{mail} {reason}", model=FunctionModel(lambda asked: pytest.fail("asked")))
    with pytest.raises(DataError, match="the program is shown 'reason', and that field holds the target"):
        tg.evaluate(program, [ROW], by_column())


def test_a_target_that_no_loss_has_is_not_ignored() -> None:
    """It would say nothing, and somebody believes that it does."""
    program = nn.ChatCompletion("{mail}", model=FunctionModel(lambda asked: ANSWER))
    assert tg.evaluate(program, [ROW], by_column(), target="team").mean == 1
    with pytest.raises(DataError, match=r"target='mail' says nothing, .* in 'team', 'reason'; take one of the two out"):
        tg.evaluate(program, [ROW], by_column(), target="mail")


def test_null_in_a_column_is_null_of_the_answer() -> None:
    """As in a target that is an object; a loss on the whole answer needs something."""
    program = nn.ChatCompletion("{mail}", model=FunctionModel(lambda asked: '{"label": "late", "why": null}'))
    assert tg.evaluate(program, [{**ROW, "reason": None}], by_column()).mean == 1
    whole = nn.Weighted(
        {"a": nn.ExactMatch(), "b": nn.OnField(nn.ExactMatch(), "why")}, targets=dict.fromkeys("ab", "reason")
    )
    with pytest.raises(DataError, match="has null in the field 'reason'"):
        tg.evaluate(program, [{**ROW, "reason": None}], whole)


def test_many_candidates_are_run_at_once_with_targets_of_their_own() -> None:
    """And get the scores that each of them gets alone, also where a target is no text, which goes alone."""
    system = nn.Parameter("Say.", role="system prompt")

    def model(request: Any) -> str:
        label = "late" if "late" in request.messages[0].text else "lost"
        return json.dumps({"label": label, "why": request.messages[-1].text})

    program = nn.ChatCompletion("{mail}", system=system, model=FunctionModel(model))
    rows = [{"mail": f"m{n}", "team": "late" if n % 2 else "lost", "reason": f"m{n % 3}"} for n in range(6)]
    candidates = [("Say late.",), ("Say.",), ("Say lost.",)]
    for odd in ("m0", None):
        rows[0]["reason"] = odd
        together = Objective(program, by_column(), rows).matrix(candidates, range(6))
        alone = Objective(program, by_column(), rows)
        assert together == [alone.scores(texts, range(6)) for texts in candidates]
        assert together[0] == [0.0 if odd is None else 0.5, 1.0, 0.5, 0.5, 0.0, 0.5]


def test_targets_by_column_are_no_demonstrations() -> None:
    """Their names are those of the table; shown as answers, they would teach other fields than are asked for."""
    program = nn.ChatCompletion("{mail}", system=nn.Parameter("Say."), model=FunctionModel(lambda asked: ANSWER))
    assert Objective(program, by_column(), [ROW]).demos([0]) == [None]
    whole = nn.Weighted({"label": nn.OnField(nn.ExactMatch(), "label")})
    (shown,) = Objective(program, whole, [{"mail": "m", "target": {"label": "late"}}]).demos([0])
    assert shown is not None
    assert shown.answer == '{"label": "late"}'


class Looked:
    """A function that counts how often its arguments are looked at."""

    def __init__(self) -> None:
        self.times = 0

    @property
    def __signature__(self) -> inspect.Signature:
        self.times += 1
        return inspect.signature(brief)

    def __call__(self, text: Any, target: Any) -> Variable:
        return Variable(float(len(str(text))), role="score")


def test_the_arguments_of_a_loss_inside_are_looked_at_once() -> None:
    """It costs more than most losses; one that takes its place is another, and so is that of a copy."""
    first, second = Looked(), Looked()
    loss = nn.OnField(first, "label")
    assert loss(answer(), "late").data == 4
    times = first.times
    assert loss(answer(), "late").data == 4
    assert first.times == times
    loss.loss = second
    assert loss(answer(), "late").data == 4
    assert second.times == times
    copied: Any = copy.deepcopy(loss)
    copied.loss = lambda text: Variable(1.0)
    assert (copied(answer(), "late").data, loss(answer(), "late").data) == (1.0, 4)
    assert pickle.loads(pickle.dumps(loss))(answer(), "late").data == 4


def test_the_repr_of_a_loss_of_a_field_names_the_field() -> None:
    """Of several such losses, which is which; the default only where there is one."""
    assert repr(nn.OnField(nn.ExactMatch(), "label")) == "OnField(\n  path=('label',)\n  (loss): ExactMatch()\n)"
    assert "path=('parts', 0), default=''" in repr(nn.OnField(nn.ExactMatch(), "parts", 0, default=""))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.OnMatch(nn.ExactMatch(), "("), "^OnMatch: the pattern '\\(' is no regular expression"),
        (lambda: nn.OnMatch(nn.ExactMatch(), "a", default=3), "^OnMatch: default is a text"),  # type: ignore[arg-type]
        (lambda: nn.OnField(nn.ExactMatch()), "^OnField: names no field; put its name, such as 'label', behind the fi"),
        (lambda: nn.OnField(nn.ExactMatch(), ["a"]), r"^OnField: .*got list \['a'\]; write the names one by one"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_told_of_the_call_that_was_made(make: Callable[[], Any], message: str) -> None:
    """Nobody who wrote it knows of the operation inside."""
    with pytest.raises((TypeError, ValueError), match=message):
        make()
