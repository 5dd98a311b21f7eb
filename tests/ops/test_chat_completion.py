from __future__ import annotations

import asyncio
from typing import Any

import pydantic
import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, fences, llm, nn, ops
from textgrad_engine.errors import (
    AuthenticationFailed,
    AutogradError,
    MalformedResponse,
    NoModelError,
    UnknownModelError,
)
from textgrad_engine.llm import Request, ResponseFormat
from textgrad_engine.ops.asking import SHARED, SharedSamples
from textgrad_engine.ops.messages import ChatSettings
from textgrad_engine.ops.model_call import ChatCompletion
from textgrad_engine.ops.planning import plan_of
from textgrad_engine.testing import FunctionModel, ScriptedModel

from ..values import said, wanting

USER = [{"role": "user", "content": "Hello {name}."}]


def critic(request: Request) -> Any:
    if request.purpose != "backward":
        return "an answer"
    cases = request.config.response_format.json_schema["properties"]
    return {case: {key: f"about {key}" for key in schema["properties"]} for case, schema in cases.items()}


def sent(messages: list[dict[str, Any]], inputs: dict[str, Any] | None = None, **config: Any) -> Request:
    """The request that the model got."""
    model = ScriptedModel(["fine"])
    assert ops.chat_completion(model, messages, inputs, **config).data == "fine"
    return model.requests[0]


def test_an_unknown_setting_raises_before_anything_is_sent() -> None:
    """Defect of section 9: sampling settings silently dropped."""
    model = ScriptedModel([])
    with pytest.raises(TypeError, match=r"unknown sampling setting 'temprature'.*extra="):
        ops.chat_completion(model, USER, temprature=0.5)
    assert model.requests == []


class Verdict(pydantic.BaseModel):
    score: int


SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}


@pytest.mark.parametrize("wanted", [Verdict, SCHEMA, ResponseFormat.of(Verdict)])
def test_structured_output_is_asked_for_by_a_pydantic_model_or_a_json_schema(wanted: Any) -> None:
    """The answer is JSON of that form, and one that is not does not come through."""
    model = ScriptedModel([{"score": 3}])
    answer = ops.chat_completion(model, USER, response_format=wanted)
    assert Verdict.model_validate_json(str(answer)).score == 3
    form = model.requests[0].config.response_format
    assert form is not None
    assert form.json_schema["properties"]["score"]["type"] == "integer"
    bad = llm.Retry(llm.Check(ScriptedModel([llm.Completion(text='{"score": "high"}')] * 3)), llm.RetryPolicy(base=0.0))
    with pytest.raises(MalformedResponse, match=r"\$.score: expected integer"):
        str(ops.chat_completion(bad, USER, response_format=wanted))


def test_a_setting_out_of_range_raises_at_once() -> None:
    """Not from the event loop, and not by the endpoint."""
    with pytest.raises(ValueError, match=r"^chat_completion: max_tokens: Input should be greater than 0$"):
        ops.chat_completion(ScriptedModel([]), USER, max_tokens=0)
    with pytest.raises(ValueError, match=r"^ChatCompletion: response_format: expected a pydantic model, .*, got 3;"):
        nn.ChatCompletion("{a}", response_format=3)


@pytest.mark.parametrize("message", [{"role": "user"}, {"content": "x"}, {"role": "user", "content": "x", "name": "a"}])
def test_a_malformed_message_raises(message: dict[str, Any]) -> None:
    """What would be dropped on the way is refused."""
    with pytest.raises(ValueError, match="'role' and 'content'"):
        ops.chat_completion(ScriptedModel([]), [message])


@pytest.mark.parametrize(
    ("messages", "inputs", "problem"),
    [
        ("Hello", {}, "messages is a list of dicts .* got str 'Hello'"),
        ({"role": "user", "content": "x"}, {}, "messages is a list of dicts .* got dict"),
        (llm.Message("user", "x"), {}, "messages is a list of dicts .* got Message"),
        ([], {}, "messages is empty"),
        (["Hello"], {}, "a message is a dict .* got str 'Hello'"),
        ([{"role": "user", "content": None}], {}, "the user message has no content"),
        (USER, {"name": {"first": "Ann"}}, r"the value of \{name\} is a text, .* got dict"),
        (USER, {"name": (Variable("Ann"),)}, r"the value of \{name\} is a text, .* got tuple"),
    ],
)
def test_what_would_be_sent_as_something_else_raises(messages: Any, inputs: Any, problem: str) -> None:
    """Neither "None" nor the repr of a container is what anybody wants to say to a model."""
    with pytest.raises((TypeError, ValueError), match=problem):
        ops.chat_completion(ScriptedModel([]), messages, inputs)


def test_a_role_that_no_conversation_has_raises_where_it_is_read() -> None:
    """An unknown message role never reaches an endpoint."""
    model = ScriptedModel([])
    with pytest.raises(ValueError, match="role"):
        _ = ops.chat_completion(model, [{"role": "sytsem", "content": "x"}]).data
    assert model.requests == []


def test_an_input_without_a_slot_raises_and_nothing_is_sent() -> None:
    """A value that goes nowhere is a typo, not a call to pay for."""
    model = ScriptedModel([])
    with pytest.raises(ValueError, match=r"a value was given for 'nmae'.*\{nmae\}.*\['name'\]"):
        _ = ops.chat_completion(model, USER, {"nmae": "Ann"}).data
    assert model.requests == []


def test_no_model_says_how_to_name_one() -> None:
    """The error comes where the answer is read and says the repair."""
    answer = ops.chat_completion(None, USER)
    with pytest.raises(NoModelError, match="use_models"):
        _ = answer.data


def test_an_unknown_model_name_is_refused() -> None:
    """Unknown names never reach anything."""
    with pytest.raises(UnknownModelError, match="nobody/knows"):
        _ = ops.chat_completion("nobody/knows", USER).data


def test_a_failure_is_raised_at_the_read_with_role_and_line() -> None:
    """The traceback of a dispatched call must lead back to the user's own line."""
    model = ScriptedModel([AuthenticationFailed("the key is wrong", status=401)])
    answer = ops.chat_completion(model, USER, {"name": "Ann"}, role="greeting")
    later = answer + "!"
    with pytest.raises(AuthenticationFailed) as caught:
        _ = later.data
    (note,) = [note for note in caught.value.__notes__ if "while computing" in note]
    assert "'greeting' (ChatCompletion)" in note
    assert "test_chat_completion.py:" in note


def test_a_failing_critic_leaves_no_feedback() -> None:
    """All or nothing: the feedback of the healthy branch is not kept either."""

    def model(request: Request) -> Any:
        if request.purpose == "backward" and "sick" in request.messages[-1].text:
            raise AuthenticationFailed("no", status=401)
        return critic(request)

    first, second = wanting("healthy"), wanting("sick")
    with tg.use_models(forward=FunctionModel(model)):
        answers = [ops.chat_completion(None, [{"role": "system", "content": v}]) for v in (first, second)]
        with pytest.raises(AuthenticationFailed):
            tg.backward(answers, ["longer", "longer"])
    assert (said(first), said(second)) == ([], [])


def test_a_backward_pass_without_words_is_refused() -> None:
    """A number computed from text by no evaluator says nothing, and an LLM is not asked to guess."""

    class Length(tg.Function):
        @staticmethod
        def forward(text: Variable) -> Variable:
            return Variable(len(text.data))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad_out: Variable) -> Any:
            return grad_out

    model = FunctionModel(critic)
    answer = ops.chat_completion(model, [{"role": "system", "content": wanting("x", "prompt")}])
    with tg.use_models(forward=model), pytest.raises(AutogradError, match="without words"):
        Length.apply(answer).backward()
    assert len(model.requests) == 1


def test_settings_are_passed_on_exactly() -> None:
    """Defect of section 9: every sampling setting reaches the request, and no other."""
    config = sent(USER, temperature=0.0, top_p=0.5, max_tokens=7, stop=("END",), seed=3, extra={"top_k": 4}).config
    assert config.model_dump(exclude_none=True) == {
        "temperature": 0.0,
        "top_p": 0.5,
        "max_tokens": 7,
        "stop": ("END",),
        "seed": 3,
        "extra": {"top_k": 4},
    }
    assert sent(USER).config.model_dump(exclude_none=True) == {"extra": {}}


def test_json_and_braces_survive() -> None:
    """Defect of section 9: JSON in a prompt breaks nothing, and a value's braces are never slots."""
    prompt = 'Answer as {"name": "...", "list": [{}]} or {{name}}; {other} stays.'
    request = sent(
        [{"role": "system", "content": prompt}, {"role": "user", "content": "{name}: {mail}"}],
        {"name": "{mail}", "mail": '{"name": "{name}"}'},
    )
    assert request.messages[0].text == 'Answer as {"name": "...", "list": [{}]} or {name}; {other} stays.'
    assert request.messages[1].text == '{mail}: {"name": "{name}"}'


def test_without_inputs_nothing_is_a_slot() -> None:
    """A prompt about templates can be sent as it is."""
    assert sent([{"role": "user", "content": "Explain {name} and {{name}}."}]).messages[0].text == (
        "Explain {name} and {{name}}."
    )


def test_images_are_passed_through_as_content_parts() -> None:
    """A message with parts keeps its parts, their order, and its texts' slots."""
    image = {"type": "image_url", "image_url": {"url": Variable("data:image/png;base64,AA=="), "detail": "low"}}
    request = sent([{"role": "user", "content": ["Look, {name}:", image, Variable("What is it?")]}], {"name": "Ann"})
    assert request.messages[0].content == [
        {"type": "text", "text": "Look, Ann:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "text", "text": "What is it?"},
    ]


def test_a_critic_that_reads_no_images_is_told_that_there_was_one() -> None:
    """Image bytes are not text; the place of an image is named."""
    model = FunctionModel(critic)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,SECRETBYTES"}}
    with tg.use_models(forward=model), ops.feedback_images(0):
        answer = ops.chat_completion(None, [{"role": "user", "content": [wanting("What is it?", "question"), image]}])
        answer.backward("it is a cat")
    shown = model.requests[1].messages[-1].text
    assert f"{fences.mark('What is it?', 'user')}\n[an image, not shown here]" in shown
    assert "SECRETBYTES" not in shown


def test_one_call_forward_and_one_for_all_feedback() -> None:
    """One node, one feedback call, however many inputs want to hear."""
    model = FunctionModel(critic)
    system, tone, name = wanting("Greet.", "task"), wanting(" Be kind.", "tone"), wanting("Ann", "name")
    with tg.use_models(forward=model):
        answer = ops.chat_completion(None, [{"role": "system", "content": [system, tone]}, *USER], {"name": name})
        answer.backward("too long")
    assert [request.purpose for request in model.requests] == ["forward", "backward"]
    assert model.requests[0].messages[0].text == "Greet. Be kind."
    assert (said(system), said(tone), said(name)) == (["about system"], ["about system_2"], ["about name"])
    shown = model.requests[1].messages[-1].text
    assert "- `system`: task, shown below between tags <system-...> that the model did not see\n" in shown
    assert f"{fences.mark('Greet.', 'system')}{fences.mark(' Be kind.', 'system_2')}\n</message" in shown
    assert shown.count("Greet.") == shown.count("Be kind.") == 1
    assert "system message (contains `system`, `system_2`):" in shown
    assert "user message (contains `name`):" in shown


def test_one_variable_in_two_places_is_asked_about_once() -> None:
    """The same text twice is one input with one feedback, not two opinions on it."""
    model = FunctionModel(critic)
    rules = wanting("Be brief.", "rules")
    with tg.use_models(forward=model):
        messages = [{"role": "system", "content": rules}, {"role": "user", "content": ["Hi. ", rules]}]
        ops.chat_completion(None, messages).backward("too long")
    assert said(rules) == ["about system"]
    shown = model.requests[1].messages[-1].text
    assert shown.count("- `") == 1
    assert "system message (contains `system`):" in shown
    assert "user message (contains `system`):" in shown


def test_frozen_inputs_are_not_paid_for() -> None:
    """What wants no feedback is not asked about; if nothing does, no critic is called."""
    model = FunctionModel(critic)
    system, name = wanting("Greet."), Variable("Ann")
    with tg.use_models(forward=model):
        ops.chat_completion(None, [{"role": "system", "content": system}, *USER], {"name": name}).backward("no")
        form = model.requests[1].config.response_format
        assert form.json_schema["properties"]["case_1"]["required"] == ["system"]
        answer = ops.chat_completion(None, USER, {"name": name})
        assert (answer.data, answer.requires_grad) == ("an answer", False)
    assert [request.purpose for request in model.requests] == ["forward", "backward", "forward"]


def test_a_frozen_prompt_still_passes_feedback_to_what_is_behind_its_inputs() -> None:
    """A chain through an untrained call reaches the trained prompt of the call before."""
    model = FunctionModel(critic)
    system = wanting("Name somebody.", "namer")
    with tg.use_models(forward=model):
        name = ops.chat_completion(None, [{"role": "system", "content": system}])
        ops.chat_completion(None, USER, {"name": name}).backward("wrong person")
    assert [request.purpose for request in model.requests] == ["forward", "forward", "backward", "backward"]
    assert '"about name"' in model.requests[3].messages[-1].text
    assert said(system) == ["about system"]


def test_under_no_grad_nothing_is_recorded() -> None:
    """Evaluation keeps no graph."""
    with tg.no_grad():
        answer = ops.chat_completion(ScriptedModel(["x"]), [{"role": "system", "content": wanting("y")}])
    assert (answer.data, answer.requires_grad) == ("x", False)


def test_inputs_are_taken_by_value() -> None:
    """Changing a parameter after the call changes neither the call made nor what the critic is shown of it."""
    model = FunctionModel(critic)
    system = wanting("Old words.", "prompt")
    answer = ops.chat_completion(model, [{"role": "system", "content": system}])
    with tg.no_grad():
        system.data = "New words."
    assert answer.data == "an answer"
    assert model.requests[0].messages[0].text == "Old words."
    with tg.use_models(backward=model), pytest.raises(AutogradError, match="'prompt' was changed after it was used"):
        answer.backward("bad")


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("changed", ["prompt", "answer"])
def test_what_was_changed_after_its_use_gets_no_feedback_on_its_old_words(changed: str, create_graph: bool) -> None:
    """Feedback on words that are gone does not fit those that are there; nobody is asked for it."""
    model = FunctionModel(critic)
    system = wanting("Old words.", "prompt")
    answer = ops.chat_completion(model, [{"role": "system", "content": system}], role="answer")
    assert answer.data == "an answer"
    with tg.no_grad():
        (system if changed == "prompt" else answer).data = "New words."
    with tg.use_models(backward=model), pytest.raises(AutogradError, match=f"'{changed}' was changed after it was us"):
        answer.backward("bad", create_graph=create_graph)
    assert (len(model.requests), said(system)) == (1, [])


def test_the_answer_gets_a_role() -> None:
    """Roles are what critics are told: the given one, else one made of the prompt's."""
    model = FunctionModel(critic)
    given = ops.chat_completion(model, USER, role="greeting")
    made = ops.chat_completion(model, [{"role": "system", "content": Variable("x", role="greeter's prompt")}])
    assert (given.role, made.role) == ("greeting", "answer of the model to the greeter's prompt")


def test_feedback_on_feedback() -> None:
    """With create_graph=True the critic's answer has a graph: feedback on it reaches the prompt it was about."""
    model = FunctionModel(critic)
    system = wanting("Greet.", "prompt")
    with tg.use_models(forward=model):
        answer = ops.chat_completion(None, [{"role": "system", "content": system}])
        (feedback,) = tg.autograd.grad(answer, system, "too stiff", create_graph=True)
        assert feedback[0].grad_fn is not None
        (second,) = tg.autograd.grad(feedback[0], system, "this feedback is too vague")
    # One call about the critic's own call, and one about the answer that the critic was shown.
    assert [request.purpose for request in model.requests] == ["forward", "backward", "backward", "backward"]
    shown = model.requests[2].messages[-1].text
    assert "- `user`: request to the critic" in shown
    assert "You review the inputs of a language model." in shown
    assert "too stiff" in shown
    assert "this feedback is too vague" in shown
    assert [item.data for item in second] == ["about system", "about user"]
    assert system.grad == []


def test_without_create_graph_feedback_has_no_history() -> None:
    """Feedback is plain text unless asked for more."""
    model = FunctionModel(critic)
    system = wanting("Greet.", "prompt")
    with tg.use_models(forward=model):
        ops.chat_completion(None, [{"role": "system", "content": system}]).backward("too stiff")
    assert not system.grad[0].requires_grad


def test_feedback_asks_only_for_what_inputs_names() -> None:
    """backward(inputs=...) of one leaf leaves the other alone."""
    model = FunctionModel(critic)
    system, name = wanting("Greet.", "prompt"), wanting("Ann", "name")
    with tg.use_models(forward=model):
        answer = ops.chat_completion(None, [{"role": "system", "content": system}, *USER], {"name": name})
        answer.backward("too stiff", inputs=name)
    assert (said(system), said(name)) == ([], ["about name"])


def test_several_feedback_items_are_one_call() -> None:
    """An answer used twice is criticized once, with both items, in order."""
    model = FunctionModel(critic)
    system = wanting("Greet.", "prompt")
    with tg.use_models(forward=model):
        answer = ops.chat_completion(None, [{"role": "system", "content": system}])
        tg.backward([answer + "!", answer + "?"], ["first thing", "second thing"])
    assert len(model.requests) == 2
    shown = model.requests[1].messages[-1].text
    assert shown.index("first thing") < shown.index("second thing")
    assert shown.count("Feedback on the answer:") == 2
    assert said(system) == ["about system"]


def test_a_plan_keeps_short_messages_for_the_next_call_and_no_long_ones() -> None:
    """A document that a program was asked about once is not held for as long as the program."""
    for text, kept in (("Be brief.", 1), ("a document " * 10_000, 0)):
        plan, values = plan_of([{"role": "user", "content": text}], {})
        assert plan.request(values, ChatSettings()).messages[0].text == text
        assert len(plan.said) == kept


def test_one_who_is_no_longer_waited_for_takes_a_shared_sample_from_nobody() -> None:
    """Whoever asked first asks for all, also after its own call was cancelled."""

    class Slow:
        name = "slow"
        begun = 0

        async def complete(self, request: Request) -> llm.Completion:
            self.begun += 1
            await released.wait()
            return llm.Completion(text="fine")

    model, released = Slow(), asyncio.Event()
    settings = ChatSettings(model=model, config=llm.GenerateConfig(temperature=1))
    plan, values = plan_of([{"role": "user", "content": "Hello."}], {})

    async def cancelled_and_kept() -> str:
        first, second = [asyncio.ensure_future(ChatCompletion.forward(settings, plan, *values)) for _ in range(2)]
        while not model.begun:
            await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        released.set()
        return str((await second).data)

    token = SHARED.set(SharedSamples({}, 1))
    try:
        assert asyncio.run(cancelled_and_kept()) == "fine"
    finally:
        SHARED.reset(token)
    assert model.begun == 1
