import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import ContentFiltered, EmptyResponse, MalformedResponse, TruncatedResponse
from textgrad_engine.llm import Check, Completion, GenerateConfig, ResponseFormat, Usage
from textgrad_engine.llm.check import check_json
from textgrad_engine.llm.usage import usage_of
from textgrad_engine.testing import ScriptedModel

VERDICT = ResponseFormat(
    name="Verdict",
    json_schema={
        "type": "object",
        "properties": {"score": {"type": "integer"}, "why": {"type": "string"}},
        "required": ["score", "why"],
        "additionalProperties": False,
    },
)


@pytest.mark.parametrize(
    ("completion", "kind"),
    [
        (Completion(text="half an ans", finish_reason="length"), TruncatedResponse),
        (Completion(text="", finish_reason="content_filter"), ContentFiltered),
        (Completion(text=" \n "), EmptyResponse),
        (Completion(text="lone \ud800 surrogate"), MalformedResponse),
    ],
)
def test_what_is_no_finished_answer_is_an_error_that_knows_its_cost(run, ask, completion, kind):
    """A truncated answer must never become a parameter's value; it was paid for all the same."""
    completion = completion.model_copy(update={"usage": Usage(output_tokens=9, calls=1)})
    with pytest.raises(kind) as caught:
        run(Check(ScriptedModel([completion])).complete(ask()))
    assert usage_of(caught.value) == completion.usage


def test_a_tool_call_needs_no_text(run, ask):
    """Tool calls are finished answers."""
    completion = Completion(text="", finish_reason="tool_calls", tool_calls=({"id": "1"},))
    assert run(Check(ScriptedModel([completion])).complete(ask())) is completion


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Sure! The score is 3.", "something else"),
        ('{"score": 3', "something else"),
        ("[1]", "JSON object"),
        ('{"score": 3}', "'why' is missing"),
        ('{"score": "3", "why": "x"}', r"\$.score: expected integer"),
        ('{"score": true, "why": "x"}', r"\$.score: expected integer"),
        ('{"score": NaN, "why": "x"}', "NaN is no JSON"),
        ('{"score": 3, "why": "x", "extra": 1}', "'extra' is not allowed"),
        ("[" * 100_000, "something else"),
    ],
)
def test_json_that_does_not_fit_is_malformed_and_says_where(run, ask, text, says):
    """Structured output is believed only after it was looked at."""
    with pytest.raises(MalformedResponse, match=says):
        check_json(text, VERDICT)
    request = ask(config=GenerateConfig(response_format=VERDICT))
    with pytest.raises(MalformedResponse):
        run(Check(ScriptedModel([Completion(text=text)])).complete(request))


@pytest.mark.parametrize("wrapped", ["{}", "```json\n{}\n```", "```\n{}\n```\n", "\n {} \n"])
def test_a_fence_around_json_is_taken_off_once(run, ask, wrapped):
    """Endpoints without structured output often answer in a code fence; what comes out is bare JSON."""
    text = json.dumps({"score": 3, "why": "``` inside"})
    request = ask(config=GenerateConfig(response_format=VERDICT))
    completion = run(Check(ScriptedModel([Completion(text=wrapped.replace("{}", text))])).complete(request))
    assert completion.text == text


def test_text_without_a_format_is_left_alone(run, ask):
    """Only structured output is unwrapped."""
    completion = Completion(text="```json\n{}\n```")
    assert run(Check(ScriptedModel([completion])).complete(ask())) is completion


@given(st.text())
def test_any_text_is_either_json_or_a_typed_error(text):
    """Hostile answers cannot raise anything but ours."""
    with contextlib.suppress(MalformedResponse):
        assert isinstance(json.loads(check_json(text, VERDICT)), dict)
