"""The target of an example, as a loss is called with it, and what a program must not be shown."""

from __future__ import annotations

import re
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, nn, optim
from textgrad_engine.errors import DataError
from textgrad_engine.nn.metric_functions import with_fields
from textgrad_engine.testing import FunctionModel, ScriptedModel
from textgrad_engine.train.targets import inputs_and_target, target_for


def test_an_empty_field_of_a_table_is_no_target() -> None:
    """Nobody means that the answer should be "nan"; and critics would have been told so."""
    with pytest.raises(DataError, match="'t7' has nan in the field 'queue' for the target"):
        target_for(nn.ExactMatch(), "queue")({"ticket": "x", "queue": float("nan")}, "t7")


NAN = float("nan")
BOTH = nn.Weighted({"form": nn.JSONMatch(), "tags": nn.JSONMatch()}, targets={"form": "target", "tags": "tags"})


@pytest.mark.parametrize(
    ("loss", "target", "where"),
    [
        (nn.JSONMatch(), {"to": "Rome", "day": NAN}, "'day' of the field 'target'"),
        (nn.JSONMatch(graded=True), {"legs": [{"sum": 1}, {"sum": NAN}]}, "'legs', 1, 'sum' of the field 'target'"),
        (nn.OnField(nn.ExactMatch(), "day"), {"day": NAN}, "'day' of the field 'target'"),
        (nn.OnField(nn.JSONMatch(), "days"), {"days": [1, NAN]}, "'days', 1 of the field 'target'"),
        (nn.OnMatch(nn.JSONMatch(), "Answer: (.*)"), [NAN], "0 of the field 'target'"),
        (nn.Weighted({"form": nn.JSONMatch()}), {"day": NAN}, "'day' of the field 'target'"),
        (BOTH, {"day": NAN}, "'day' of the field 'target'"),
    ],
)
def test_nothing_is_compared_with_an_empty_field_inside_of_a_target(loss: Any, target: Any, where: str) -> None:
    """Every answer was wrong, and paid for."""
    row = {"q": "x", "target": target, "tags": ["a"]}
    with pytest.raises(DataError, match=re.escape(f"example 't7' has nan at {where}, as tables have it in an empty")):
        target_for(loss, "target")(row, "t7")


@pytest.mark.parametrize(
    "loss",
    [
        nn.OnField(nn.ExactMatch(), "to"),
        nn.OnField(nn.ExactMatch(), "via", "to"),
        nn.Metric(lambda said, target: said in target, "it is one of them"),
        nn.Judge("Is it right?"),
    ],
)
def test_an_empty_field_that_nothing_is_compared_with_is_left_alone(loss: Any) -> None:
    """Of a row of a table as the target, some columns may be empty."""
    target = {"to": "Rome", "day": NAN}
    assert target_for(loss, "target")({"target": target}, "t7") is target


@pytest.mark.parametrize(
    "program",
    [lambda ticket, queue: "", lambda ticket, queue=None: "", nn.ChatCompletion("{ticket} {queue}")],
    ids=["required", "default", "slot"],
)
def test_a_program_is_not_shown_the_target(program: Any) -> None:
    """Else every score is that of copying the answer. Where nothing holds a target, nothing is given away."""
    row = {"ticket": "x", "queue": "billing"}
    with pytest.raises(DataError, match="example 't1': the program is shown 'queue', and that field holds the target"):
        inputs_and_target(program, nn.ExactMatch(), "queue")(row, "t1")
    judged = inputs_and_target(lambda ticket, target=None: "", nn.Judge("Is it polite?"), "target")
    assert judged(row, "t1") == ({"ticket": "x"}, None)


@pytest.mark.parametrize("loss", [nn.ExactMatch(), lambda prediction, target: prediction])
def test_a_target_of_another_name_must_be_there(loss: Any) -> None:
    """Who names a field means it."""
    with pytest.raises(DataError, match="example 't1' has no field 'queue' for the target; it has ticket"):
        target_for(loss, "queue")({"ticket": "x"}, "t1")


def test_a_loss_that_needs_a_target_says_so_beforehand() -> None:
    """A module whose forward has no default for it needs one; others may do without."""
    with pytest.raises(DataError, match="no field 'target'"):
        target_for(nn.ExactMatch(), "target")({"ticket": "x"}, "t1")
    for loss in (nn.Judge("Kind?"), nn.Metric(len, "length"), lambda prediction, _: prediction):
        assert target_for(loss, "target")({"ticket": "x"}, "t1") is None


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ([], "there are none"),
        (7, "got an int"),
        ([["a"], []], "there are none"),
        ("[{'criterion': 'a'}]", r"str\(criteria\) is not"),
        ([{"criterion": "a", "points": "2"}], "criterion 1 has the points '2'"),
    ],
)
def test_what_are_no_criteria_is_told_before_anything_is_paid(wanted: Any, why: str) -> None:
    """The last of a thousand rows had ended an evaluation; in one of several columns, too."""
    model = ScriptedModel([])
    program = nn.ChatCompletion("{q}", model=model)
    rows = [{"q": "x", "wish": "It greets."}, {"q": "y", "wish": wanted}]
    own = nn.Weighted({"own": nn.OnMatch(nn.Rubric(), ".*"), "all": nn.Rubric(["a"])}, targets={"own": "wish"})
    message = rf"example '1' has no criteria in the field 'wish': .*{why}"
    for loss, target in ((nn.Rubric(), "wish"), (own, "target")):
        with pytest.raises(DataError, match=message):
            tg.evaluate(program, rows, loss, target=target)
    assert model.requests == []


def two(prediction: str, target: str) -> float:
    return float(prediction == target)


def test_a_metric_of_two_arguments_needs_a_target() -> None:
    """Said as for an exact match, with the repair, instead of Python's words for a call that lacks an argument."""
    message = "example 't1' has no field 'target' for the target; it has ticket, queue; target= says which field holds"
    for loss in (nn.Metric(two, "equal"), nn.ExactMatch()):
        with pytest.raises(DataError, match=message):
            target_for(loss, "target")({"ticket": "x", "queue": "y"}, "t1")
    for fn in (lambda prediction, target="y": 1.0, lambda *texts: 1.0, max):
        assert target_for(nn.Metric(fn, "any"), "target")({"ticket": "x"}, "t1") is None


@pytest.mark.parametrize("make", [optim.TGD, optim.PatchSearch])
def test_a_metric_that_names_inputs_is_given_the_fields_of_its_example(make: Any) -> None:
    """In steps, searches and evaluations, each as plain texts; so a score may depend on more than the answer."""
    seen: list[dict[str, Any]] = []

    def shouted(prediction: str, target: str, inputs: dict[str, Any]) -> float:
        seen.append(inputs)
        return float(prediction == inputs["word"].upper() == target)

    def model(request: tg.llm.Request) -> Any:
        if request.purpose == "backward":
            asked = request.config.response_format
            assert asked is not None
            return {case: {"system": "Say to shout."} for case in asked.json_schema["properties"]}
        if request.purpose == "optimizer":
            return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked", "feedback": [1]}]}
        text = request.messages[-1].text
        return text.upper() if "Shout" in request.messages[0].text else text

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    rows = [{"word": f"word {n}", "kind": "x", "target": f"WORD {n}"} for n in range(12)]
    with tg.use_models(forward=FunctionModel(model)):
        metric = nn.Metric(shouted, "whether it is shouted")
        result = tg.Trainer().fit(program, metric, make(program.parameters()), rows[:6], rows[6:])
        assert tg.evaluate(program, rows, metric).mean == 1
    assert result.best_val.mean == 1
    assert all(list(inputs) == ["word"] and isinstance(inputs["word"], str) for inputs in seen)


@pytest.mark.parametrize(
    "metric",
    [
        nn.Metric(lambda inputs, targets: inputs == targets, "whether it is the target"),
        nn.Metric(lambda prediction, inputs: prediction.startswith(inputs["word"]), "whether it begins with the word"),
        lambda inputs, targets: nn.ExactMatch()(inputs, targets),
    ],
)
def test_what_is_called_inputs_is_the_prediction_in_the_first_place_and_the_fields_in_the_second(metric: Any) -> None:
    """As many call the arguments of a loss; and what has no place for a target is given none."""
    with tg.use_models(forward=FunctionModel(lambda request: "word 1")):
        program = nn.ChatCompletion("{word}")
        assert tg.evaluate(program, [{"word": "word", "target": "word 1"}], metric).mean == 1


def test_a_metric_of_inputs_alone_needs_no_target() -> None:
    """What it looks at is in the example."""
    program = nn.ChatCompletion("{word}", model=FunctionModel(lambda request: request.messages[-1].text))
    metric = nn.Metric(lambda prediction, inputs: float(prediction == inputs["word"]), "whether it is repeated")
    assert tg.evaluate(program, [{"word": "a"}, {"word": "b"}], metric).mean == 1


def test_a_loss_of_ones_own_that_is_shown_the_fields_needs_no_target() -> None:
    """A reward model scores an answer by the question; it is a module where a metric is a function."""

    class Reward(nn.Module):
        def forward(self, prediction: Variable, inputs: dict[str, Any]) -> Variable:
            return Variable(float(inputs["q"] in str(prediction.data)), role="reward")

    read = inputs_and_target(nn.ChatCompletion("{q}"), Reward(), "target")
    fields, wanted = read({"q": "Rome"}, "e1")
    assert with_fields(Reward())(Variable("Rome it is"), wanted, fields).data == 1.0
