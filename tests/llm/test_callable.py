"""An app of one's own as a model."""

from __future__ import annotations

import asyncio
import functools
import threading
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, ops, optim
from textgrad_engine.errors import BadRequest, ConnectionFailed, ReturnError
from textgrad_engine.testing import FunctionModel, feedback_for


def chat(model: Any) -> nn.ChatCompletion:
    return nn.ChatCompletion("{q}", system=nn.Parameter("Answer.", role="system prompt"), model=model)


def test_it_is_given_the_messages_as_openai_has_them() -> None:
    """Also where the app is `async`; what it used is counted where it says so."""
    seen: list[Any] = []

    async def app(messages: list[dict[str, Any]]) -> llm.Completion:
        seen.extend(messages)
        return llm.Completion(text="yes", usage=llm.Usage(input_tokens=7, output_tokens=1))

    with llm.meter() as meter:
        assert chat(llm.CallableModel(app))(q="Is it?").data == "yes"
    assert seen == [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Is it?"}]
    assert meter.by_purpose["forward"].total_tokens == 8
    assert llm.CallableModel(app).name == "app"
    assert llm.CallableModel(app, "mine").name == "mine"


def test_calls_that_block_run_side_by_side() -> None:
    """Each waits for the others, so one after the other would wait for ever."""
    together = threading.Barrier(40, timeout=60)

    def app(messages: list[dict[str, Any]]) -> str:
        together.wait()
        return str(messages[-1]["content"])

    program = chat(llm.CallableModel(app))
    found = tg.evaluate(program, [{"q": str(n), "target": str(n)} for n in range(40)], nn.ExactMatch())
    assert found.mean == 1.0


def test_errors_that_another_attempt_may_help_against_are_tried_again() -> None:
    """Those that are named; any other one is the app's own, and is raised as it is."""
    attempts: list[str] = []

    def app(messages: list[dict[str, Any]]) -> str:
        attempts.append(messages[-1]["content"])
        if len(attempts) < 3:
            raise TimeoutError("too slow")
        return "yes"

    quick = llm.RetryPolicy(base=0, cap=0)
    model = llm.resolve(llm.CallableModel(app, retry=(TimeoutError, OSError)), policy=quick)
    assert chat(model)(q="a").data == "yes"
    assert len(attempts) == 3
    attempts.clear()
    with pytest.raises(TimeoutError, match="too slow") as raised:
        _ = chat(llm.resolve(llm.CallableModel(app), policy=quick))(q="b").data
    assert any("llm.CallableModel(..., retry=TimeoutError)" in note for note in raised.value.__notes__)
    assert len(attempts) == 1

    def down(messages: list[dict[str, Any]]) -> str:
        raise TimeoutError("too slow")

    with pytest.raises(ConnectionFailed, match="down raised TimeoutError: too slow"):
        _ = chat(llm.resolve(llm.CallableModel(down, retry=TimeoutError), policy=quick))(q="c").data


def test_errors_of_models_of_ours_are_not_tried_again_by_its_kinds() -> None:
    """They were, by themselves, where that may help."""
    attempts = []

    def refuse(request: llm.Request) -> str:
        raise BadRequest("no such model")

    def app(messages: list[dict[str, Any]]) -> str:
        attempts.append(messages)
        return str(chat(FunctionModel(refuse))(q="a").data)

    model = llm.resolve(llm.CallableModel(app, retry=Exception), policy=llm.RetryPolicy(base=0, cap=0))
    with pytest.raises(BadRequest):
        _ = chat(model)(q="a").data
    assert len(attempts) == 1


def test_what_is_no_answer_is_told_by_name() -> None:
    """With what it should be."""
    with pytest.raises(ReturnError, match=r"app gave the dict with 'text'; an answer is a text or an llm\.Completion"):
        _ = chat(llm.CallableModel(lambda messages: {"text": "yes"}, "app"))(q="a").data  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="retry names kinds of errors, such as TimeoutError"):
        llm.CallableModel(print, retry="TimeoutError")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fn"):
        llm.CallableModel("app")  # type: ignore[arg-type]


def test_a_function_in_the_place_of_a_model_is_told_how_it_is_one() -> None:
    """It lacks a name and `complete`."""

    def app(messages: list[dict[str, Any]]) -> str:
        return "yes"

    for give in (chat, lambda model: tg.set_models(forward=model)):
        with pytest.raises(TypeError, match=r"got the function app\(\); llm\.CallableModel\(app\) makes one"):
            give(app)


def test_what_cannot_be_called_with_messages_is_told_before_a_run() -> None:
    """It would be told after the first call, and with a traceback that ends in it."""

    def app(messages: Any, model: str) -> str:
        return model

    class App:
        def __call__(self, messages: Any) -> str:
            return "yes"

    with pytest.raises(TypeError, match=r"app\(\) is called with a list of messages, and takes \(messages, model\): "):
        llm.CallableModel(app)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"class App is called with a list of messages.* or an object of the class$"):
        llm.CallableModel(App)
    settled = llm.CallableModel(functools.partial(app, model="yes"))
    assert settled.name == "app"
    assert llm.CallableModel(App()).name == "App"
    assert chat(settled)(q="Is it?").data == chat(llm.CallableModel(App()))(q="Is it?").data == "yes"


def test_tools_that_an_app_would_not_hear_of_are_refused() -> None:
    """It would answer as if there were none."""

    def find(text: str) -> str:
        """Finds."""
        return text

    program = nn.ChatCompletion("{q}", model=llm.CallableModel(lambda messages: "yes", "app"), tools=[find])
    with pytest.raises(TypeError, match=r"app is given messages alone, and the call has tools.*call them itself"):
        _ = program(q="Is it?").data


def test_an_app_is_trained_and_nothing_is_asked_again_on_resume(tmp_path: Path) -> None:
    """Its answers are on record as those of any model."""
    asked: list[str] = []

    def app(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[-1]["content"])
        return "B" if "Say B." in messages[0]["content"] else "A"

    def helpers(request: llm.Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say B.")
        return {"edits": [{"op": "add", "line": 1, "text": "Say B.", "reason": "r", "feedback": [1]}]}

    def run() -> Any:
        program = chat(llm.CallableModel(app))
        rows = [{"q": str(n), "target": "B"} for n in range(12)]
        with tg.use_models(backward=FunctionModel(helpers), optimizer=FunctionModel(helpers)):
            return tg.Trainer(batch_size=4, run_dir=tmp_path / "run", resume=True).fit(
                program, nn.ExactMatch(), optim.TGD(program.parameters()), rows[:6], rows[6:]
            )

    assert run().best == {"system": "Answer.\nSay B."}
    asked.clear()
    assert run().best == {"system": "Answer.\nSay B."}
    assert asked == []


def test_an_app_is_timed_unless_it_says_itself_how_long_it_took() -> None:
    """What a `latency_weight` goes by: the time of the app, with all that it asks others."""

    def answer(app: Any) -> llm.Completion:
        request = llm.Request(messages=(llm.Message(role="user", content="Is it?"),))
        return asyncio.run(llm.CallableModel(app).complete(request))

    async def at_once(messages: Any) -> str:
        return "yes"

    usage = llm.Usage(input_tokens=3, output_tokens=1)
    for app in (lambda messages: "yes", at_once, lambda messages: llm.Completion(text="yes", usage=usage)):
        assert 0 < answer(app).latency < 60
    assert answer(lambda messages: llm.Completion(text="yes", usage=usage)).usage == usage
    assert answer(lambda messages: llm.Completion(text="yes", latency=0.25)).latency == 0.25


@pytest.mark.parametrize("purpose", ["forward", "backward"])
def test_an_app_that_is_asked_as_a_critic_is_told_how_to_name_another(purpose: Any) -> None:
    """It stands in for all who are not named, and raises at messages that are none of its own."""

    def app(messages: list[dict[str, Any]]) -> str:
        raise ValueError("too many values to unpack")

    with tg.use_models(forward=llm.CallableModel(app)):
        asked = ops.chat_completion(None, [{"role": "user", "content": "Why?"}], purpose=purpose)
        with pytest.raises(ValueError, match="too many values") as caught:
            str(asked)
    said = "it was asked for 'backward', as the 'forward' model is unless you name another one: use_models(back"
    assert any(said in note for note in caught.value.__notes__) == (purpose == "backward")
