"""Records: JSON that comes back as it was, for any text that people write."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from numbers import Integral
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from textgrad_engine import Variable, func, nn, use_models
from textgrad_engine.errors import AuthenticationFailed, ModelError, ServerFailed, TruncatedResponse
from textgrad_engine.llm import CallRecord, Completion, GenerateConfig, Message, Request, Usage, observe
from textgrad_engine.llm.answers import entry_of
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.usage import mark
from textgrad_engine.optim import Edit, Evidence, Origin
from textgrad_engine.optim.patch import Gone
from textgrad_engine.store.records import (
    Place,
    answer_from_json,
    canonical_order,
    completion_to_json,
    dumps,
    evaluation_from_json,
    evaluation_to_json,
    event_from_json,
    event_to_json,
    identity_of,
    result_from_json,
    result_to_json,
)
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Evaluation, TrainResult, compare
from textgrad_engine.train.events import CallEnded, ParameterChange, StepEnded

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
    change = {"name": "p", "before": "a", "after": "a\nb", "edits": [edit]}
    step = StepEnded(1, 1, ("x",), 0.5, 0, 1, (), 0.5, True, 0.5)
    entry = {**json.loads(dumps(event_to_json(step, 0.0))), "changes": [change]}
    found = event_from_json(entry)
    assert isinstance(found, StepEnded)
    assert found.changes[0].edits == (Edit("add", 1, "b", "r", (1,)),)
    origin = {"step": 1, "reason": "r", "evidence": [{"text": "f", "examples": ["x"]}]}
    assert TypeAdapter(Origin).validate_python(origin) == Origin(1, "r", (Evidence("f", ("x",)),))


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


def test_the_order_does_not_look_at_times() -> None:
    """Equal calls are equal, whenever they came."""
    entry = {"phase": 1, "purpose": "forward", "example": "x", "request": {"a": 1}, "text": "y"}
    assert canonical_order({**entry, "time": 1, "latency": 2}) == canonical_order({**entry, "time": 3, "latency": 4})
    assert canonical_order(entry) < canonical_order({**entry, "phase": 2})


REQUEST = Request(
    messages=(Message(role="user", content="a \udc80"),), config=GenerateConfig(extra={"b": None, "a": 1})
)
ANSWERS = {
    "an answer": Completion(text="x", usage=Usage(calls=1, dollars=None), latency=1 / 3, attempts=2),
    "of another model": Completion(text="x", model="other"),
    "from the cache": Completion(
        text="x", usage=Usage(), cached=True, saved=Usage(calls=1, input_tokens=3), saved_latency=0.1, attempts=0
    ),
    "tools": Completion(text="", finish_reason="tool_calls", tool_calls=({"id": "1"},), items=({"type": "reasoning"},)),
    "of estimated cost": Completion(text="x", raw={"usage_estimated": True}),
}


@pytest.mark.parametrize("which", ANSWERS)
def test_an_answer_can_be_played_back(which: str) -> None:
    """All that a program sees of it, and what it cost."""
    answer = ANSWERS[which]
    record = CallRecord("forward", "m", REQUEST, answer, None, 12.0, "e", attempts=answer.attempts)
    entry = json.loads(dumps(completion_to_json(CallEnded(3, record), Place(3, "test", 1))))
    found = answer_from_json(entry, nth=4, line=5, source=6)
    assert found.outcome == answer
    assert (found.model, found.example, found.phase, found.nth, found.line, found.source) == ("m", "e", 3, 4, 5, 6)
    assert found.digest == digest(entry_of(FunctionModel(str, name="m"), REQUEST)["request"])


def test_a_failure_can_be_played_back() -> None:
    """With its class, what it used, and whether it may have used what nobody knows."""
    paid, free, unknown = TruncatedResponse("too: long"), AuthenticationFailed("no", status=401), ServerFailed("broke")
    paid.add_note("three attempts")
    mark(paid, usage=Usage(calls=3), estimated=True)
    for error, sent in ((paid, None), (free, False), (unknown, None)):
        record = CallRecord("forward", "m", REQUEST, None, error, 12.0, "e")
        entry = json.loads(dumps(completion_to_json(CallEnded(3, record), Place())))
        found = answer_from_json(entry, nth=0, line=1, source=0).outcome
        assert isinstance(found, type(error))
        assert (str(found), found.usage, found.sent) == (str(error), error.usage, sent)
        assert found.usage_estimated is error.usage_estimated
        assert getattr(found, "__notes__", []) == getattr(error, "__notes__", [])


def test_a_failure_that_is_none_of_ours_keeps_its_name() -> None:
    """It was cancelled, or the user's own model raised it."""
    record = CallRecord("forward", "m", REQUEST, None, asyncio.CancelledError(), 12.0, "e")
    entry = {**completion_to_json(CallEnded(3, record), Place()), "usage": Usage(calls=1).model_dump()}
    outcome = answer_from_json(entry, nth=0, line=1, source=0).outcome
    assert isinstance(outcome, ModelError)
    again = completion_to_json(CallEnded(9, CallRecord("forward", "m", REQUEST, None, outcome, 50.0, "e")), Place(9))
    assert identity_of(again) == identity_of(entry)


def test_equal_requests_are_told_apart_by_the_microsecond_of_asking() -> None:
    """Which of them got which answer is known again by it."""
    times = []
    for started in (12.000001, 12.000002):
        record = CallRecord("forward", "m", REQUEST, ANSWERS["an answer"], None, started, "e")
        times.append(completion_to_json(CallEnded(3, record), Place())["time"])
    assert times == ["1970-01-01T00:00:12.000001Z", "1970-01-01T00:00:12.000002Z"]


def test_a_call_keeps_its_item_of_a_pmap() -> None:
    """A resumed run gives each item its own answer by it; it says nothing about what was asked."""
    records: list[CallRecord] = []
    chat = nn.ChatCompletion("A name?")
    with use_models(forward=FunctionModel(lambda _: "Ann")), observe(records.append):
        func.pmap(lambda _: chat().data)([0, 1])
        assert chat().data == "Ann"
    entries = [json.loads(dumps(completion_to_json(CallEnded(1, record), Place(1)))) for record in records]
    assert sorted(answer_from_json(entry, nth=0, line=1, source=0).item for entry in entries) == [(), (0,), (1,)]
    assert len({identity_of(entry) for entry in entries}) == 1


def test_numbers_of_other_libraries_are_written_as_numbers() -> None:
    """A run with `max_steps` from numpy has a folder, too."""

    @Integral.register
    class Whole:
        def __index__(self) -> int:
            return 3

    assert dumps({"steps": Whole(), "weight": Fraction(1, 2)}) == b'{"steps": 3, "weight": 0.5}'
    with pytest.raises(TypeError, match="a Variable cannot be written"):
        dumps({"weight": Variable(0.5)})
