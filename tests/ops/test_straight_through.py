"""What code made of a text is joined to it: feedback reaches whoever wrote the text, with the outcome beside it."""

from __future__ import annotations

import asyncio
import re
import threading

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops
from textgrad_engine.testing import FunctionModel


def variable(text: str, role: str) -> tg.Variable:
    return tg.Variable(text, role=role, requires_grad=True)


def test_the_text_hears_what_came_of_it_and_what_was_said_of_that() -> None:
    """A critic of the query is shown the passage once, and the feedback on it; the score comes along."""
    query = variable("rome", "search query")
    passage = ops.straight_through("Rome has", query, role="passage")
    ops.exact_match_evaluator(passage, "Rome has 2.7 million people.")[0].backward()
    (said,) = query.grad
    assert passage.role == "passage"
    assert said.data.startswith("Code of the program came from this text to the passage:\n<outcome-")
    assert said.data.count("Rome has\n") == 1
    assert said.data.endswith("Expected exactly `Rome has 2.7 million people.`.")
    assert said.source is not None
    assert said.source.score == 0


def test_what_else_the_code_was_given_is_shown() -> None:
    """As one case, in an optimizer's request too, so that it is known which question came to what."""
    code = variable("def iso(date): ...", "code")
    picture = tg.data.image_part(b"\x89PNG\r\n\x1a\n")
    given = {"date": variable("5.7.2026", "date"), "rows": [1, 2], "nothing": None, "picture": picture}
    result = ops.straight_through("5-7", code, role="result", inputs=given)
    ops.exact_match_evaluator(result, "2026-07-05")[0].backward()
    (said,) = code.grad
    text = re.sub(r"-[0-9a-f]{8}>", ">", said.data)
    assert text.startswith(
        "Code of the program was given this text, and:\ndate:\n<input>\n5.7.2026\n</input>\n"
        "rows:\n<input>\n[1, 2]\n</input>\npicture:\n<input>\n"
    )
    assert "It came to the result:\n<outcome>\n5-7\n</outcome>\nSaid of that:" in text
    assert "nothing" not in text
    assert "PNG" not in text
    assert said.source is not None
    assert (said.source.case, said.source.score) == (True, 0)
    with pytest.raises(TypeError, match="inputs"):
        ops.straight_through("a", code, inputs=["date"])  # type: ignore[arg-type]


def test_a_result_hears_its_own_feedback_as_it_is() -> None:
    """Of a branch the specialist hears what it always would, and the router what it led to."""
    choice, answer = variable("geo", "choice"), variable("no idea", "answer of the specialist")
    ops.straight_through(answer, choice).backward("Wrong.")
    assert [item.data for item in answer.grad] == ["Wrong."]
    assert "to the answer of the specialist:" in choice.grad[0].data
    assert "Wrong." in choice.grad[0].data


def test_each_cause_hears_once_and_silence_is_silence() -> None:
    """Also one that is named twice; a satisfied loss asks nobody."""
    first, second = variable("a", "first"), variable("b", "second")
    ops.straight_through("ab", first, second, first).backward("Shorter.")
    assert [len(each.grad) for each in (first, second)] == [1, 1]
    first.grad = None
    ops.exact_match_evaluator(ops.straight_through("ab", first), "ab")[0].backward()
    assert first.grad == []


def test_several_pieces_of_feedback_are_told_together_with_their_places() -> None:
    """The outcome is shown once."""
    cause = variable("a", "cause")
    result = ops.straight_through("found", cause)
    tg.backward([ops.format("{x}!", x=result), ops.join([result, variable("z", "")])], ["First.", "Second."])
    (said,) = cause.grad
    assert said.data.count("found") == 1
    assert "First." in said.data
    assert "in which this one is part 1 of 2: Second." in said.data


def test_it_waits_for_nobody() -> None:
    """A branch that still computes stays pending behind it."""
    gate = threading.Event()

    async def answer(request: tg.llm.Request) -> str:
        await asyncio.to_thread(gate.wait)
        return "b!"

    text = ops.chat_completion(FunctionModel(answer), [{"role": "user", "content": "say b!"}])
    result = ops.straight_through(text, variable("a", "choice"))
    assert not result.done()
    gate.set()
    assert result.data == "b!"


def test_it_goes_with_transforms() -> None:
    """Each example has its own, and a graph of feedback leads through it."""

    def loss(text: tg.Variable) -> tg.Variable:
        return ops.exact_match_evaluator(ops.straight_through(text + "!", text), "c")[0]

    feedback = func.vmap(func.grad(loss))(["a", "b"]).data
    assert "<outcome" in feedback[0]
    assert "\na!\n" in feedback[0]
    assert "\nb!\n" in feedback[1]
    assert tg.autograd.gradcheck(ops.straight_through, [variable("u", "result"), variable("v", "cause")])


@pytest.mark.parametrize(
    ("result", "causes", "message"),
    [
        ("found", ["query"], "give the Variable whose .data it is"),
        ("found", [], "there is no cause"),
        ({"a": 1}, [tg.Variable("q")], "make one text of it"),
        (tg.Variable(["a", "b"]), [tg.Variable("q")], "a batch of 2 entries"),
    ],
)
def test_what_cannot_be_joined_is_refused_with_the_repair(result: object, causes: list[object], message: str) -> None:
    """Nothing is cut off silently."""
    with pytest.raises(TypeError, match=message):
        ops.straight_through(result, *causes)  # type: ignore[arg-type]


def test_a_prompt_behind_a_search_gets_feedback() -> None:
    """The whole way: answer, passage, query, prompt of who wrote the query; two questions."""

    def answers(request: tg.llm.Request) -> str | dict[str, object]:
        if request.purpose == "forward":
            return "ROME" if "search query" in request.messages[0].text else "I do not know."
        asked = request.config.response_format
        assert asked is not None
        keys = asked.json_schema["properties"]["case_1"]["properties"]
        shown = "(nothing)" in request.messages[-1].text and "Code of the program" in request.messages[-1].text
        return {"case_1": dict.fromkeys(keys, "Use lower case." if shown else "Nothing was found.")}

    prompt = nn.Parameter("Write a search query.", role="prompt of the query writer")
    model = FunctionModel(answers)
    with tg.use_models(forward=model):
        query = nn.ChatCompletion("{question}", system=prompt)(question="How big is Rome?")
        passage = ops.straight_through({"rome": "2.7 million"}.get(query.data, "(nothing)"), query, role="passage")
        answer = nn.ChatCompletion("{passage}\n{question}")(passage=passage, question="How big is Rome?")
        nn.ExactMatch()(answer, "2.7 million").backward()
    assert [item.data for item in prompt.grad] == ["Use lower case."]
    assert [request.purpose for request in model.requests].count("backward") == 2


def test_an_edit_of_the_result_goes_through_and_one_of_a_cause_is_refused() -> None:
    """Nobody knows what code would make of an edited text, so nothing is made up."""
    cause = variable("q", "cause")
    _, change = func.jvp(lambda found: ops.straight_through(found, cause), ("found",), ("shorter",))
    assert change.data == "shorter"
    with pytest.raises(tg.errors.AutogradError, match=r"give cause\.detach\(\)"):
        func.jvp(lambda text: ops.straight_through("found", text), ("q",), ("shorter",))
