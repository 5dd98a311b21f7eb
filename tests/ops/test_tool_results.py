"""What tools give is told as text, and the images in it as images: to the model, to its critic, and from records."""

from __future__ import annotations

import base64
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, data, func, llm, nn
from textgrad_engine.llm import Completion, Message, Request
from textgrad_engine.ops.tool_results import content_of
from textgrad_engine.ops.tools import telling_anew
from textgrad_engine.testing import FunctionModel, ScriptedModel, png

RED, BLUE = (data.image_part(png([[color] * 8] * 8)) for color in ((255, 0, 0), (0, 0, 255)))


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (RED, [RED]),
        ([RED, BLUE], [text("["), RED, text(","), BLUE, text("]")]),
        ({"place": "Rome", "map": RED}, [text('{"place":"Rome","map":'), RED, text("}")]),
        ({"at": {"deep": ("a", [RED])}}, [text('{"at":{"deep":["a",['), RED, text("]]}}")]),
        ([Variable("a"), RED], [text('["a",'), RED, text("]")]),
        (json.dumps(RED), json.dumps(RED)),
        ({"type": "image_url"}, '{"type":"image_url"}'),
        ({"type": "image_url", "image_url": "a.png"}, '{"type":"image_url","image_url":"a.png"}'),
        ({"type": "file", "name": "a.png"}, '{"type":"file","name":"a.png"}'),
    ],
)
def test_images_stand_where_they_are_in_what_a_tool_gave(result: Any, content: Any) -> None:
    """All around them is JSON; a text is nothing but a text, and what is no content part is no image."""
    assert content_of(result) == content


def test_a_text_that_looks_like_the_place_of_an_image_is_none() -> None:
    """What stands for images in between is in no text."""
    imitated = content_of(["image", RED])
    assert content_of([json.dumps(imitated), RED])[-2:] == [RED, text("]")]


@pytest.mark.parametrize(
    ("url", "said"),
    [("a.png", "data.image_part('a.png') reads a file"), ("data:image/x-icon;base64,AAAA", "'data:image/x-icon'")],
)
def test_an_image_that_no_model_could_get_is_told_with_the_repair(
    url: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """To whoever wrote the tool, in the log; the model is told that the call came to nothing."""

    def look() -> dict[str, Any]:
        """Look."""
        return {"type": "image_url", "image_url": {"url": url}}

    model = ScriptedModel([calling(), "none"])
    with caplog.at_level(logging.WARNING), telling_anew(), tg.use_models(forward=model):
        assert nn.ChatCompletion("What is it?", tools=[look])().data == "none"
    assert said in caplog.text
    assert model.requests[1].messages[-1].text.startswith("The call came to nothing: ValueError: it gave an image")


def test_base64_of_any_kind_becomes_the_usual_one() -> None:
    """So that what is read from a record is the same request."""
    encoded = RED["image_url"]["url"].partition(",")[2]
    odd = base64.urlsafe_b64encode(base64.b64decode(encoded)).decode()
    assert content_of({"type": "image_url", "image_url": {"url": f"DATA:image/png;base64,{odd}"}}) == [RED]


def calling(number: int = 1) -> Completion:
    function = {"name": "look", "arguments": "{}"}
    called = ({"id": f"call_{number}", "type": "function", "function": function},)
    return Completion(text="", finish_reason="tool_calls", tool_calls=called)


class Eyes(nn.Module):
    """A prompt with a tool that gives images, as often as it is called."""

    def __init__(self, images: list[Any]) -> None:
        super().__init__()
        self.left = list(images)
        self.chat = nn.ChatCompletion(
            "What is it?", system=nn.Parameter("Look.", role="system prompt"), tools=[self.look]
        )

    def look(self) -> dict[str, Any]:
        """A photo."""
        return {"photo": self.left.pop(0)}

    def forward(self) -> Variable:
        return self.chat()


def acting(request: Request) -> Any:
    """Looks twice, and names what it saw."""
    if request.purpose == "backward":
        return {"case_1": {"system": "Say: name the colors."}}
    seen = [part for message in request.messages if message.role == "tool" for part in message.content]
    images = [part["image_url"]["url"] for part in seen if part["type"] == "image_url"]
    return calling(len(images)) if len(images) < 2 else ", ".join("red" if url == red() else "other" for url in images)


def red() -> str:
    return str(RED["image_url"]["url"])


def test_a_model_sees_them_and_so_does_its_critic_where_they_stood() -> None:
    """In the order of the turns; a critic without eyes is told where they stood."""
    model = FunctionModel(acting)
    with tg.use_models(forward=model):
        program = Eyes([RED, BLUE])
        program().backward("It is red and blue.")
        asked = model.requests[-1].messages[-1].content
        with tg.ops.feedback_images(0):
            program = Eyes([RED, BLUE])
            program().backward("It is red and blue.")
    assert [part for part in asked if part["type"] == "image_url"] == [RED, BLUE]
    shown = asked[-1]["text"]
    first, second = re.findall(r"<image_\d-[0-9a-f]{8}/>", shown.partition("Inputs to give")[2])
    assert (first[:8], second[:8]) == ("<image_1", "<image_2")
    assert re.search(rf'tool message:\n<message-\w+>\n{{"photo":\n{first}\n}}', shown)
    blind = model.requests[-1].messages[-1].content
    assert isinstance(blind, str)
    assert blind.count("[an image, not shown here]") == 2


def test_feedback_on_feedback_and_edits_are_asked_about_with_them() -> None:
    """With a graph of its own, and in forward mode, a turn with an image is a turn as any other."""

    def act(request: Request) -> Any:
        if request.purpose == "backward" and "predict" in request.messages[0].text:
            return {"change": "names the color"}
        return acting(request)

    model = FunctionModel(act)
    with tg.use_models(forward=model):
        program = Eyes([RED, BLUE])
        program().backward("It is red and blue.", create_graph=True)
        assert program.chat.system.grad[0].data == "Say: name the colors."
        looking = Eyes([RED, BLUE])

        def asked(system: Variable) -> Variable:
            return nn.ChatCompletion("What is it?", system=system, tools=[looking.look])()

        _, edit = func.jvp(asked, (Variable("Look."),), ("say colors",))
        assert edit.data == "names the color"
    for request in [request for request in model.requests if request.purpose == "backward"]:
        images = [part for part in request.messages[-1].content if part["type"] == "image_url"]
        assert images == [RED, BLUE]


def test_a_cassette_gives_them_again_without_running_the_tool(tmp_path: Path) -> None:
    """It holds them, as nothing else knows them; requests name them."""
    model = FunctionModel(acting)
    tape = tmp_path / "tape.jsonl"
    with tg.use_models(forward=model), llm.record(tape):
        Eyes([RED, BLUE])().backward("It is red and blue.")
    assert tape.read_text().count(red()) == 1
    with llm.replay(tape) as played:
        answer = Eyes([])()
        assert answer.data == "red, other"
        answer.backward("It is red and blue.")
    assert played.left == 0


def test_the_model_of_one_that_asks_on_is_sent_a_message_with_them() -> None:
    """As it is in any request that holds one: a list of content parts."""
    model = ScriptedModel([calling(), "red"])
    with tg.use_models(forward=model):
        assert Eyes([RED])().data == "red"
    assert model.requests[1].messages[-1] == Message(
        role="tool", content=[text('{"photo":'), RED, text("}")], tool_call_id="call_1"
    )
