import asyncio
import datetime
import json

import pytest
from pydantic import BaseModel, Field, computed_field

from textgrad_engine import nn, use_models
from textgrad_engine.errors import ServerFailed
from textgrad_engine.llm import Completion, GenerateConfig, Message, Model, Request, ResponseFormat
from textgrad_engine.testing import FunctionModel, ScriptedModel, feedback_for

REQUEST = Request(messages=(Message(role="user", content="hello"),), purpose="backward")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
JSON = REQUEST.model_copy(
    update={"config": GenerateConfig(response_format=ResponseFormat(name="A", json_schema=SCHEMA))}
)


def ask(model, request=REQUEST):
    return asyncio.run(model.complete(request))


def test_a_script_that_runs_out_says_what_was_asked():
    """The test's author sees which call was not expected."""
    model = ScriptedModel(["one"])
    ask(model)
    with pytest.raises(
        AssertionError, match=r"1 answers and this is request 2 \(purpose 'backward', last message 'hello'"
    ):
        ask(model)


@pytest.mark.parametrize("answer", ["no json", '{"b": 1}', {"a": "one"}])
def test_an_answer_that_structured_output_could_not_give_is_a_mistake_in_the_test(answer):
    """Doubles behave as an endpoint would, so that tests prove something."""
    with pytest.raises(AssertionError, match="answer 1 of ScriptedModel 'scripted'"):
        ask(ScriptedModel([answer]), JSON)
    with pytest.raises(AssertionError, match="FunctionModel 'function'"):
        ask(FunctionModel(lambda request: answer), JSON)


def test_a_completion_is_handed_on_as_it_is():
    """Bad answers can be scripted too."""
    bad = Completion(text="no json", finish_reason="length")
    assert ask(ScriptedModel([bad]), JSON) is bad


class Citation(BaseModel):
    passage: str
    page: int | None = Field(None, alias="onPage")


class Reply(BaseModel):
    answer: str
    day: datetime.date
    citations: list[Citation] = []

    @computed_field
    def sources(self) -> int:
        return len(self.citations)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("scripted", [True, False])
def test_an_object_of_the_class_that_is_asked_for_is_an_answer(whole: bool, scripted: bool):
    """As JSON, by the names that its form has; so are those inside of a dict."""
    citations = [Citation(passage="M1", onPage=None)]
    said = {"answer": "G21", "day": datetime.date(2026, 1, 2), "citations": citations}
    answer = Reply(**said) if whole else said
    model = ScriptedModel([answer]) if scripted else FunctionModel(lambda request: answer)
    found = nn.ChatCompletion("{question}", response_format=Reply, model=model)(question="Which oil?").data
    assert Reply.model_validate_json(found) == Reply(**said)
    assert json.loads(found)["citations"] == [{"passage": "M1", "onPage": None}]


def test_an_answer_of_a_wrong_type_is_named():
    """A forgotten return gives None."""
    with pytest.raises(AssertionError, match="got NoneType"):
        ask(FunctionModel(lambda request: None))


def test_exceptions_are_raised():
    """Failures can be scripted."""
    with pytest.raises(ServerFailed):
        ask(ScriptedModel([ServerFailed("x", status=500)]))


def test_answers_come_in_order_with_usage():
    """Texts, JSON, counted tokens, the requests kept."""
    model = ScriptedModel(["text", {"a": 1}])
    first, second = ask(model), ask(model, JSON)
    assert (first.text, second.text) == ("text", '{"a": 1}')
    assert first.usage.calls == 1
    assert first.usage.input_tokens > 0 < first.usage.output_tokens
    assert model.requests == [REQUEST, JSON]
    assert model.left == 0


def test_functions_may_be_async_and_take_time():
    """Latency is simulated without blocking the loop, and concurrency is counted."""

    async def answer(request):
        await asyncio.sleep(0)
        return request.messages[0].text.upper()

    model = FunctionModel(answer, latency=0.001)

    async def main():
        return await asyncio.gather(*(model.complete(REQUEST) for _ in range(5)))

    assert [completion.text for completion in asyncio.run(main())] == ["HELLO"] * 5
    assert (model.peak, model.in_flight) == (5, 0)


def test_they_are_models():
    """They implement the real seam."""
    assert isinstance(ScriptedModel([]), Model)
    assert isinstance(FunctionModel(str), Model)


def test_what_only_a_validator_refuses_is_no_mistake_in_the_test():
    """An endpoint holds a model to the schema, and no more; so the library's repair can be tested."""

    class Even(BaseModel):
        score: int = Field(multiple_of=2)

    answers = iter([{"score": 3}, {"score": 4}])
    model = FunctionModel(lambda request: next(answers))
    with use_models(forward=model):
        chat = nn.ChatCompletion("How many?", response_format=Even)
        assert chat().data == '{"score": 4}'
    assert "multiple of 2" in model.requests[1].messages[-1].text


def test_a_request_that_wants_no_feedback_is_named():
    """A model that plays the critic for everything it is asked finds out here, not by a schema that does not fit."""
    with pytest.raises(ValueError, match=r"^feedback_for: this request, of the purpose 'backward', names no case"):
        feedback_for(REQUEST, "Be brief.")


def test_a_model_that_cannot_be_made_can_be_shown():
    """pytest shows what a failing call was given, the model that was to be made too."""
    with pytest.raises(TypeError, match="answers must be a sequence of texts") as caught:
        ScriptedModel([3])
    shown = [repr(entry.frame.f_locals["self"]) for entry in caught.traceback if "self" in entry.frame.f_locals]
    assert "ScriptedModel(0 answers, name='scripted')" in shown
