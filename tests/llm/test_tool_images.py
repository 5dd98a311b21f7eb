"""Images that tools give go over each wire in the way that it takes."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.errors import BadRequest
from textgrad_engine.llm import GenerateConfig, Message, Request, responses, tokens, wire
from textgrad_engine.llm.dialects import Dialect, after
from textgrad_engine.llm.tool_images import in_words, moved_behind


def picture(name: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"https://example.org/{name}.png"}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def called(*names: str) -> Message:
    made = [{"id": f"c{n}", "type": "function", "function": {"name": name}} for n, name in enumerate(names)]
    return Message(role="assistant", content="", tool_calls=tuple(made))


def given(number: int, content: Any) -> Message:
    return Message(role="tool", content=content, tool_call_id=f"c{number}")


ASKED = Message(role="user", content="Where?")
TURN = (
    called("look", "price", "look"),
    given(0, [text('{"a":'), picture("a"), text(',"b":'), picture("b"), text("}")]),
    given(1, "7 euro"),
    given(2, [picture("c")]),
)
REQUEST = Request(messages=(ASKED, *TURN))
FORM = {"type": "object", "properties": {"a": {"type": "integer"}}}


def test_chat_completions_get_them_behind_the_turn_with_a_line_for_each() -> None:
    """Tool messages hold text alone there, and all of a turn stand together."""
    sent = wire.arguments(REQUEST, REQUEST.config, Dialect(name="m"))["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert [message["content"] for message in sent[2:5]] == ['{"a":[image 1],"b":[image 2]}', "7 euro", "[image 1]"]
    assert [message["tool_call_id"] for message in sent[2:5]] == ["c0", "c1", "c2"]
    assert sent[5]["content"] == [
        text("[image 1] of what call 1 (`look`) gave:"),
        picture("a"),
        text("[image 2] of what call 1 (`look`) gave:"),
        picture("b"),
        text("[image 1] of what call 3 (`look`) gave:"),
        picture("c"),
    ]


def test_each_turn_has_its_own_behind_it() -> None:
    """So what stands before the next turn is as it was: endpoints cache it."""
    one = wire.arguments(REQUEST, REQUEST.config, Dialect(name="m"))["messages"]
    two = Request(messages=(*REQUEST.messages, called("look"), given(0, [picture("d")])))
    sent = wire.arguments(two, two.config, Dialect(name="m"))["messages"]
    assert sent[: len(one)] == one
    assert [message["role"] for message in sent[len(one) :]] == ["assistant", "tool", "user"]


def test_the_responses_api_gets_them_where_they_are() -> None:
    """What a function gave may have images there."""
    sent = responses.arguments(REQUEST, REQUEST.config, Dialect(name="m"))["input"]
    outputs = [item for item in sent if item.get("type") == "function_call_output"]
    assert [item["call_id"] for item in outputs] == ["c0", "c1", "c2"]
    assert [part["type"] for part in outputs[0]["output"]] == [
        "input_text",
        "input_image",
        "input_text",
        "input_image",
        "input_text",
    ]
    assert outputs[0]["output"][1]["image_url"] == "https://example.org/a.png"
    assert outputs[1]["output"] == "7 euro"


@pytest.mark.parametrize("system", [True, False])
def test_what_is_asked_for_in_words_is_said_before_them(system: bool) -> None:
    """Neither the form of the answer nor the instructions stand beside pictures that a tool gave."""
    config = GenerateConfig(response_format=FORM)
    request = Request(messages=(Message(role="system", content="Be brief."), *REQUEST.messages), config=config)
    sent = wire.arguments(request, config, Dialect(name="m", form="in words", system=system))["messages"]
    assert [part["type"] for part in sent[-1]["content"]] == ["text", "image_url"] * 3
    question = next(message for message in sent if message["role"] == "user")
    assert "JSON" in question["content"] or "tags" in question["content"]
    assert ("Be brief." in question["content"]) is not system


def test_an_endpoint_that_takes_no_user_behind_a_tool_gets_them_inside() -> None:
    """Mistral's refusal leads to the other way, once, and only where it is about that."""
    said = BadRequest("Unexpected role 'user' after role 'tool'", status=400)
    sent = wire.arguments(REQUEST, REQUEST.config, Dialect(name="m"))
    other = after(said, Dialect(name="m"), REQUEST.config, sent)
    assert other == Dialect(name="m", tool_images=True)
    again = wire.arguments(REQUEST, REQUEST.config, other)["messages"]
    assert [message["role"] for message in again] == ["user", "assistant", "tool", "tool", "tool"]
    assert again[4]["content"] == [picture("c")]
    assert after(said, other, REQUEST.config, sent) is None


def test_without_images_nothing_is_moved() -> None:
    """The messages are the same ones."""
    messages = wire.messages_of(Request(messages=(ASKED, called("price"), given(0, "7"))))
    assert moved_behind(messages) is messages


def test_a_call_that_nobody_made_is_numbered_all_the_same() -> None:
    """A conversation may begin in the middle, and calls may be in nobody's shape."""
    odd = Message(role="assistant", content="", tool_calls=({"id": "c0", "type": "custom", "function": None},))
    for before in ((), (odd,)):
        request = Request(messages=(*before, given(0, [picture("a")])))
        sent = wire.arguments(request, request.config, Dialect(name="m"))["messages"]
        assert sent[-1]["content"][0] == text("[image 1] of what call 1 gave:")


def test_what_was_given_in_words_numbers_its_images() -> None:
    """A text is itself."""
    assert in_words("[image 9]") == "[image 9]"
    assert in_words([picture("a"), text(" and "), picture("b")]) == "[image 1] and [image 2]"


def test_they_are_counted() -> None:
    """Where they stand when they are sent makes no difference; a budget reserves for the words around them, too."""
    plain = Request(messages=(ASKED, *TURN[:1], *[given(n, "") for n in range(3)]))
    images = sum([tokens.tokens_of(picture(name), "openai/gpt-4o") for name in "abc"])
    assert tokens.count_request(REQUEST, "openai/gpt-4o") >= tokens.count_request(plain, "openai/gpt-4o") + images
    sent = wire.arguments(REQUEST, REQUEST.config, Dialect(name="m"))["messages"]
    labels = [part["text"] for part in sent[-1]["content"] if part["type"] == "text"]
    without = [m if isinstance(m.content, str) else m.model_copy(update={"content": [picture("a")]}) for m in TURN]
    assert tokens.most_of_request(Request(messages=tuple(without))) > 2 * 8192 + sum(map(len, labels[1:]))
