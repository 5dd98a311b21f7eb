from __future__ import annotations

import re
from typing import Any

import textgrad_engine as tg
from textgrad_engine import Variable, ops
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel

from ..values import wanting

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}


def critic(request: Request) -> Any:
    if request.purpose != "backward":
        return "an answer"
    cases = request.config.response_format.json_schema["properties"]
    return {case: {key: f"about {key}" for key in schema["properties"]} for case, schema in cases.items()}


def feedback(content: Any, *wanted: Variable) -> tuple[list[list[str]], str]:
    """The feedback on each of some variables in a user message, and what the critic was told."""
    model = FunctionModel(critic)
    with tg.use_models(forward=model):
        ops.chat_completion(None, [{"role": "user", "content": content}]).backward("too short")
    return [[item.data for item in variable.grad] for variable in wanted], model.requests[-1].messages[-1].text


def test_parts_that_are_no_text_are_sent_as_they_are() -> None:
    """Unknown kinds, their order, nested lists and braces in them: nothing is looked into or filled."""
    model = FunctionModel(critic)
    parts = [
        IMAGE,
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "custom", "text": "Not a {slot}.", "regions": [[0, 1], [2, 3]], "note": None},
    ]
    messages = [{"role": "user", "content": [*parts, "Ask {slot}."]}]
    assert ops.chat_completion(model, messages, {"slot": "this"}).data == "an answer"
    assert model.requests[0].messages[0].content == [*parts, {"type": "text", "text": "Ask this."}]


def test_slots_in_text_parts_are_filled_and_the_part_stays_a_part() -> None:
    """As in a plain text beside an image; what else is in the part is kept, doubled braces stand for braces."""
    model = FunctionModel(critic)
    part = {"type": "text", "text": 'What of {who}, as {"a": "{{who}}"}?', "cache_control": {"type": "text"}}
    messages = [{"role": "user", "content": [part, IMAGE]}]
    assert ops.chat_completion(model, messages, {"who": "{cat}"}).data == "an answer"
    assert model.requests[0].messages[0].content == [
        {"type": "text", "text": 'What of {cat}, as {"a": "{who}"}?', "cache_control": {"type": "text"}},
        IMAGE,
    ]


def test_an_input_and_a_template_in_a_text_part_both_get_feedback() -> None:
    """The critic sees the template as it is, beside the message that was made of it."""
    model = FunctionModel(critic)
    task, who = wanting("What of {who}?", "task"), wanting("the cat", "animal")
    with tg.use_models(forward=model):
        messages = [{"role": "user", "content": [{"type": "text", "text": task}, IMAGE]}]
        ops.chat_completion(None, messages, {"who": who}).backward("too short")
    assert [item.data for item in who.grad] == ["about who"]
    assert [item.data for item in task.grad] == ["about user"]
    shown = model.requests[-1].messages[-1].text
    assert "user message (contains `user`, `who`)" in shown
    assert "What of {who}?" in shown
    assert re.search(r"What of <(who-\w+)>the cat</\1>\?\n<image_1-\w{8}/>", shown)


def test_a_template_alone_in_a_text_part_is_shown_beside_the_message_made_of_it() -> None:
    """As it is where it is the content itself."""
    said = []
    for content_of in (lambda text: text, lambda text: [{"type": "text", "text": text}]):
        model = FunctionModel(critic)
        task = wanting("What of {who}?", "task")
        with tg.use_models(forward=model):
            messages = [{"role": "user", "content": content_of(task)}]
            ops.chat_completion(None, messages, {"who": "the cat"}).backward("too short")
        said.append(model.requests[-1].messages[-1].text)
    assert said[0] == said[1]
    assert "What of {who}?" in said[0]


def test_the_bytes_of_an_image_are_not_put_into_the_critics_prompt() -> None:
    """A picture in base64 is megabytes of nonsense there; it goes along, and the text has a tag in its place."""
    question = wanting("What is it?", "question")
    said, shown = feedback([{"type": "text", "text": "Look:"}, IMAGE, question], question)
    assert said == [["about user"]]
    assert re.search(r"Look:\n<image_1-\w{8}/>\n<(user-\w+)>What is it\?</\1>", shown)
    assert "AAAA" not in shown


def test_a_variable_in_a_text_part_gets_feedback() -> None:
    """It is shown once, alone in its message and beside others."""
    for beside in ([], [IMAGE]):
        text = wanting("What is it?", "question")
        said, shown = feedback([{"type": "text", "text": text}, *beside], text)
        assert (said, shown.count("What is it?")) == ([["about user"]], 1)
        assert "user message (contains `user`)" in shown


def test_a_variable_in_an_image_url_gets_feedback_and_is_shown() -> None:
    """The critic is told the address it should speak of, under a key of its own."""
    url, question = wanting("https://example.org/cat.png", "picture"), wanting("What is it?", "question")
    said, shown = feedback([question, {"type": "image_url", "image_url": {"url": url}}], question, url)
    assert said == [["about user"], ["about user_2"]]
    assert "`user_2`: picture, which reads:" in shown
    assert "https://example.org/cat.png" in shown


def test_a_constant_in_a_part_is_sent_and_not_asked_about() -> None:
    """A Variable that wants no feedback costs nothing."""
    question = wanting("What is it?", "question")
    part = {"type": "image_url", "image_url": {"url": Variable("https://example.org/cat.png", role="picture")}}
    said, shown = feedback([question, part], question)
    assert said == [["about user"]]
    assert "picture" not in shown


def test_a_batch_of_images_is_one_call_for_each() -> None:
    """The same question about every picture."""
    model = FunctionModel(lambda request: request.messages[0].content[1]["image_url"]["url"])
    part = {"type": "image_url", "image_url": {"url": Variable(["a.png", "b.png"])}}
    answer = ops.chat_completion(model, [{"role": "user", "content": ["What is it?", part]}])
    assert answer.data == ["a.png", "b.png"]
