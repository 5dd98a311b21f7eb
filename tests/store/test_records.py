"""Records: JSON that comes back as it was, for any text that people write."""

from __future__ import annotations

import json
from fractions import Fraction
from numbers import Integral
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from textgrad_engine import Variable
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Usage
from textgrad_engine.optim import Edit, Evidence, Origin
from textgrad_engine.optim.cells import Gone
from textgrad_engine.store.records import (
    dumps,
    evaluation_from_json,
    evaluation_to_json,
    event_from_json,
    event_to_json,
    result_from_json,
    result_to_json,
)
from textgrad_engine.train import Doubtful, Evaluation, TrainResult, compare
from textgrad_engine.train.events import ParameterChange, StepEnded
from textgrad_engine.train.standing import Standing

texts = st.text(max_size=20)
evidence = st.builds(Evidence, texts, st.tuples(texts))
scores = st.sampled_from([0.0, 1.0])


@st.composite
def steps(draw: Any) -> StepEnded:
    op = st.sampled_from(["add", "remove"])
    edits = tuple(draw(st.lists(st.builds(Edit, op, st.integers(0, 9), texts, texts, st.just((1, 2)), texts))))
    change = ParameterChange("a.b", draw(texts), draw(texts), edits, tuple(draw(st.lists(evidence))), 2, draw(texts))
    return StepEnded(1, 1, ("x", "y"), draw(st.none() | st.floats(0, 1)), 0, 3, (change,), 0.5, True, 0.5)


@st.composite
def results(draw: Any) -> TrainResult:
    ids = ("x", "y", "z")

    def evaluation() -> Evaluation:
        found = draw(st.tuples(scores, scores))
        return Evaluation(ids, (*found, None), (draw(texts), draw(texts), None), {"z": draw(texts)})

    seed, best = evaluation(), evaluation()
    before = Origin(1, draw(texts), tuple(draw(st.lists(evidence))), "1.2")
    gone = (Gone(draw(texts), before, "2.1"), Gone(draw(texts), None, "2.1"))
    origins = [None, before, Origin(2, "", (), "2.1", gone, gone[:1])]
    return TrainResult(
        status=draw(st.sampled_from(["finished", "interrupted", "budget"])),
        seed={"a.b": draw(texts)},
        best={"a.b": draw(texts)},
        origins={"a.b": origins},
        seed_val=seed,
        best_val=best,
        seed_test=None,
        best_test=None,
        comparison=compare(seed, best),
        compared_on="val",
        steps=(draw(steps()),),
        usage={"forward": Usage(calls=3, dollars=draw(st.none() | st.floats(0, 9)))},
        seconds=1.5,
        doubtful=(Doubtful("x", "val", draw(texts), 2, 3),),
        floors=(Standing(draw(texts), 0.5, "test", 3, None, draw(st.floats(0, 1)), 1),),
    )


@given(results())
def test_a_result_survives_the_disk(result: TrainResult) -> None:
    """Whatever is in the texts, the report that is printed again is the one that was printed."""
    assert result_from_json(json.loads(dumps(result_to_json(result), indent=1))) == result


@given(steps())
def test_a_step_survives_the_disk(step: StepEnded) -> None:
    """The journal alone can tell what a step did."""
    assert event_from_json(json.loads(dumps(event_to_json(step, 0.0)))) == step


def test_a_run_of_an_older_version_is_read() -> None:
    """Origins and edits that were written before they had ids, and before lines that are gone were kept."""
    edit = {"op": "add", "line": 1, "text": "b", "reason": "r", "feedback": [1]}
    heard = [{"text": "f", "examples": ["x"]}]
    change = {"name": "p", "before": "a", "after": "a\nb", "edits": [edit], "feedback": heard}
    step = StepEnded(1, 1, ("x",), 0.5, 0, 1, (), 0.5, True, 0.5)
    entry = {**json.loads(dumps(event_to_json(step, 0.0))), "changes": [change]}
    found = event_from_json(entry)
    assert isinstance(found, StepEnded)
    assert found.changes[0].edits == (Edit("add", 1, "b", "r", (1,)),)
    origin = {"step": 1, "reason": "r", "evidence": [{"text": "f", "examples": ["x"]}]}
    assert TypeAdapter(Origin).validate_python(origin) == Origin(1, "r", (Evidence("f", ("x",)),))


@pytest.mark.parametrize(
    "lacking",
    [
        {"scores": [1.0]},
        {"predictions": []},
        {"samples": [[1.0]]},
        {"clusters": ["a"]},
        {"latency": [0.5]},
        {"parts": [{"name": "a", "scores": [1.0], "scale": [0, 1], "weight": 1}]},
    ],
    ids=lambda lacking: next(iter(lacking)),
)
@pytest.mark.parametrize("kind", ["evaluation", "event", "result"])
def test_an_evaluation_of_which_something_is_lacking_is_refused(lacking: Any, kind: str) -> None:
    """A record may have been damaged, or written by hand; the scores that are left would be those of other examples."""
    body = {**evaluation_to_json(Evaluation(("x", "y"), (0.0, 1.0), ("no", "yes"), {})), **lacking}
    none = dict.fromkeys(["seed_val", "best_val", "seed_test", "best_test", "comparison", "compared_on"])
    result = result_to_json(TrainResult("finished", {}, {}, {}, **none, steps=(), usage={}, seconds=1))
    event = {"event": "Evaluated", "number": 1, "phase": "test", "step": 1, "evaluation": body}
    read, record = {
        "evaluation": (evaluation_from_json, body),
        "event": (event_from_json, event),
        "result": (result_from_json, {**result, "best_test": body}),
    }[kind]
    (what, found), where = *lacking.items(), "best_test" if kind == "result" else "evaluation"
    many = 0 if found == [] else 1
    with pytest.raises(RunError, match=rf"(?i)^{where}\.{what}.*: there are {many} of them, and 2 examples"):
        read(record)


def test_an_evaluation_tells_its_mean_to_other_tools() -> None:
    """Mean and interval are in the file, and reading them back ignores them."""
    evaluation = Evaluation(("x", "y"), (1.0, 0.0), ("a", ["b", 1]), {})
    body = json.loads(dumps(evaluation_to_json(evaluation)))
    assert body["mean"] == 0.5
    assert evaluation_from_json(body) == evaluation


def test_an_evaluation_without_scores_can_be_written() -> None:
    """No mean is no reason to lose the rest."""
    evaluation = Evaluation(("x",), (None,), (None,), {"x": "no answer"})
    assert evaluation_from_json(evaluation_to_json(evaluation)) == evaluation


@given(st.text(st.characters(), max_size=30))
def test_any_text_can_be_written(text: str) -> None:
    """Lone surrogates come from broken mail; JSON can hold them, UTF-8 cannot."""
    assert json.loads(dumps(text)) == text


def test_numbers_of_other_libraries_are_written_as_numbers() -> None:
    """A run with `max_steps` from numpy has a folder, too."""

    @Integral.register
    class Whole:
        def __index__(self) -> int:
            return 3

    assert dumps({"steps": Whole(), "weight": Fraction(1, 2)}) == b'{"steps": 3, "weight": 0.5}'
    with pytest.raises(TypeError, match="a Variable cannot be written"):
        dumps({"weight": Variable(0.5)})
