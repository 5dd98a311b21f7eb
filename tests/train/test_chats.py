"""Chats as examples: what the program, judges, demonstrations and checks make of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Trainer, llm, nn, optim
from textgrad_engine.data import check_splits
from textgrad_engine.errors import DataError
from textgrad_engine.testing import FunctionModel


def chats(*numbers: int) -> list[dict[str, Any]]:
    """Of one and of three messages."""
    found = []
    for n in numbers:
        said = [{"role": "user", "content": f"My lamp number {n} is dark."}]
        if n % 2:
            said += [{"role": "assistant", "content": "Since when?"}, {"role": "user", "content": f"Since day {n}."}]
        found.append({"id": f"c{n}", "chat": said, "target": "Unplug it."})
    return found


def program() -> Any:
    return nn.ChatCompletion("{chat}", system=nn.Parameter("Help.", role="system prompt"))


def answer(request: llm.Request) -> Any:
    last = request.messages[-1].text
    if request.purpose == "forward":
        return "Unplug it." if "Unplug it" in request.messages[0].text else "Sorry."
    if request.purpose == "judge":
        right = "Unplug it." in last.rpartition("The answer to judge:")[2]
        return {"score": float(right), "explanation": "" if right else "It does not say what to do."}
    assert request.config.response_format is not None
    if request.purpose == "backward":
        cases = request.config.response_format.json_schema["properties"]
        return {key: {"system": "Say: Unplug it."} for key in cases}
    return {"edits": [{"op": "add", "line": 1, "text": "Say: Unplug it.", "reason": "r", "feedback": [1]}]}


@pytest.mark.parametrize("loss", [nn.ExactMatch(), nn.Judge("Does it help?")], ids=["exact match", "judge"])
def test_a_prompt_is_trained_on_chats(loss: Any) -> None:
    """Judges see the whole chat, message by message."""
    chat, model = program(), FunctionModel(answer)
    with tg.use_models(forward=model):
        result = Trainer(batch_size=4, feedback_batch_size=4).fit(
            chat, loss, optim.TGD(chat.parameters()), chats(*range(8)), chats(*range(20, 28))
        )
    assert result.best == {"system": "Help.\nSay: Unplug it."}
    judged = [each.messages[-1].text for each in model.requests if each.purpose == "judge"]
    assert all(re.search(r"chat:\n<input-\w+>\nuser:\n<message-\w+>\nMy lamp number", text) for text in judged)
    assert any("assistant:\n<message-" in text and "Since day 21." in text for text in judged) == bool(judged)


def test_a_chat_that_cannot_be_answered_is_named_before_anything_is_asked() -> None:
    """By the example's id and the field."""
    chat, rows = program(), chats(1, 2, 3)
    rows[1]["chat"] = [*rows[1]["chat"], {"role": "assistant", "content": "Sorry."}]
    with pytest.raises(
        DataError, match=r"example 'c2': the field 'chat' holds a conversation that ends with an answer"
    ):
        Trainer().fit(chat, nn.ExactMatch(), optim.TGD(chat.parameters()), chats(7, 8), rows)
    rows[1]["chat"] = [{"role": "user", "content": "half a smile \ud83d"}]
    with pytest.raises(DataError, match=r"example 'c2': the field 'chat' holds .*surrogate"):
        Trainer().fit(chat, nn.ExactMatch(), optim.TGD(chat.parameters()), chats(7, 8), rows)
    about = nn.ChatCompletion("About: {chat}", system=nn.Parameter("Help."))
    with pytest.raises(DataError, match=r"example 'c7': .* has more than that slot; write user='\{chat\}'"):
        Trainer().fit(about, nn.ExactMatch(), optim.TGD(about.parameters()), chats(7, 8), chats(1, 2))


def test_a_metric_is_given_the_messages() -> None:
    """As they are in the data."""
    seen: list[Any] = []

    def kept(prediction: str, inputs: dict[str, Any]) -> float:
        seen.append(inputs["chat"])
        return 1.0

    rows = chats(1, 2)
    with tg.use_models(forward=FunctionModel(answer)):
        assert tg.evaluate(program(), rows, nn.Metric(kept, "whatever")).mean == 1.0
    assert sorted(map(len, seen)) == [1, 3]
    assert all(said in [row["chat"] for row in rows] for said in seen)


def test_solved_chats_are_shown_message_by_message() -> None:
    """As demonstrations."""
    chat = program()

    def model(request: llm.Request) -> str:
        return "Unplug it." if "Right answer: Unplug it." in request.messages[0].text else "Sorry."

    with tg.use_models(forward=FunctionModel(model)):
        result = Trainer().fit(
            chat, nn.ExactMatch(), optim.BootstrapDemos(chat.parameters(), labelled=2), chats(*range(8)), chats(20, 21)
        )
    assert "user:\n<message-" in result.best["system"]
    assert "Right answer: Unplug it." in result.best["system"]
    assert '"role"' not in result.best["system"]


def test_chats_are_compared_by_what_is_said() -> None:
    """Who says it is alike in all of them."""
    first = [{"chat": [{"role": "user", "content": "Where is my parcel?"}]}]
    other = [{"chat": [{"role": "user", "content": "I want a refund now."}]}]
    assert check_splits(first, other) == []
    assert len(check_splits(first, [dict(first[0])])) == 1


@pytest.mark.parametrize("critic", [True, False], ids=["a critic", "no critic"])
def test_calls_of_tools_go_to_the_model_and_are_shown_to_whoever_hears_of_the_answer(critic: bool) -> None:
    """A log of an agent: the model is sent calls and results in their own form, others read them in words."""
    rows = []
    for row in chats(*range(0, 20, 2)):
        call = {"id": "c1", "function": {"name": "lamp", "arguments": {"of": row["id"]}}}
        calls = {"role": "assistant", "content": None, "tool_calls": [call]}
        gave = {"role": "tool", "tool_call_id": "c1", "content": f"{row['id']} is broken"}
        rows.append({**row, "chat": [*row["chat"], calls, gave]})
    chat, model = program(), FunctionModel(answer)
    with tg.use_models(forward=model):
        result = Trainer(batch_size=4, critic=critic).fit(
            chat, nn.ExactMatch(), optim.TGD(chat.parameters()), rows[:4], rows[4:]
        )
    assert result.best == {"system": "Help.\nSay: Unplug it."}
    sent = next(request for request in model.requests if request.purpose == "forward").messages
    assert [message.role for message in sent] == ["system", "user", "assistant", "tool"]
    assert sent[2].tool_calls is not None
    assert sent[2].tool_calls[0]["function"] == {"name": "lamp", "arguments": '{"of": "c8"}'}
    assert (sent[3].tool_call_id, sent[3].text) == ("c1", "c8 is broken")
    read = next(request for request in model.requests if request.purpose == ("backward" if critic else "optimizer"))
    assert re.search(r'lamp\(\{"of": "c\d"\}\)\n</', read.messages[-1].text)
    assert "is broken" in read.messages[-1].text
