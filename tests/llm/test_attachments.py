from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn
from textgrad_engine.errors import RequestRefused
from textgrad_engine.llm import Message, attachments
from textgrad_engine.llm.attachments import as_recorded, attachments_in
from textgrad_engine.testing import FunctionModel


def image(data: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", **more}}


def asked(*parts: Any) -> dict[str, Any]:
    return {"purpose": "forward", "messages": [{"role": "user", "content": list(parts)}], "config": {}}


@pytest.mark.parametrize(
    ("part", "ending"),
    [
        (image("AAAA"), "png"),
        ({"type": "image_url", "image_url": {"url": "DATA:image/jpeg;charset=x;base64,AAAA"}}, "jpg"),
        ({"type": "image_url", "image_url": {"url": "data:;base64,AAAA"}}, "bin"),
        ({"type": "image_url", "image_url": {"url": "data:image/../../x;base64,AAAA"}}, "x"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "wav"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "../../evil"}}, "bin"),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, "pdf"),
        ({"type": "custom", "custom": {"picture": "data:image/webp;base64,AAAA"}}, "webp"),
    ],
)
def test_bytes_get_a_name_in_one_folder(part: dict[str, Any], ending: str) -> None:
    """Whatever kind of part it is, and whatever it says it is: a name never leads out of the folder."""
    (found,) = attachments_in([Message(role="user", content=[part])])
    assert found.name == f"attachments/63c1dd951ffedf6f7fd968ad4efa39b8.{ending}"
    assert found.content() == b"\0\0\0"
    shown = json.dumps(as_recorded(asked(part)))
    assert found.name in shown
    assert "AAAA" not in shown


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "data:image/png;base64,AAAA"},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": "data:image/png;base64,AAAA"},
        {"type": "file", "file": {"file_id": "f1"}},
    ],
)
def test_all_else_stays_as_it_is(part: dict[str, Any]) -> None:
    """An address, and what a text says, are what tells requests apart."""
    assert as_recorded(asked(part)) == asked(part)
    assert list(attachments_in([Message(role="user", content=[part])])) == []


def test_a_request_with_names_is_not_named_again() -> None:
    """What is read from a record goes through the same door as what is asked; neither is changed in place."""
    request = asked(image("AAAA", detail="low"), {"type": "input_audio", "input_audio": {"data": "AAAA"}})
    before = copy.deepcopy(request)
    once = as_recorded(request)
    assert request == before
    assert as_recorded(once) == once
    assert once["messages"][0]["content"][0]["image_url"]["detail"] == "low"


def test_what_is_no_base64_is_kept_as_it_came() -> None:
    """It was sent so, and somebody will want to see it."""
    (found,) = attachments_in([Message(role="user", content=[image("A")])])
    assert found.content() == b"A"


def test_a_cassette_names_images_and_tells_them_apart(tmp_path: Path) -> None:
    """A test's cassette stays small; another picture is another request."""
    answers = {"AAAA": "a cat", "BBBB": "a dog"}
    model = FunctionModel(lambda asked: answers[asked.messages[-1].content[0]["image_url"]["url"][-4:]])
    chat = nn.ChatCompletion("{picture} What is it?")
    with tg.use_models(forward=model), llm.record(tmp_path / "tape.jsonl"):
        assert [chat(picture=image(data)).data for data in answers] == ["a cat", "a dog"]
    written = (tmp_path / "tape.jsonl").read_text()
    assert "AAAA" not in written
    assert written.count("attachments/") == 2
    with llm.replay(tmp_path / "tape.jsonl"):
        assert [chat(picture=image(data)).data for data in reversed(answers)] == ["a dog", "a cat"]
        with pytest.raises(RequestRefused, match="attachments/"):
            chat(picture=image("CCCC")).data  # noqa: B018  it is waited for


def test_a_cassette_of_before_that_holds_the_bytes_is_played(tmp_path: Path) -> None:
    """It was recorded when requests were written down whole."""
    model = FunctionModel(lambda asked: "a cat")
    chat = nn.ChatCompletion("{picture} What is it?")
    tape = tmp_path / "tape.jsonl"
    with tg.use_models(forward=model), llm.record(tape):
        assert chat(picture=image("AAAA")).data == "a cat"
    text = tape.read_text()
    name = text[text.index(f"{attachments.FOLDER}/") :].partition('"')[0]
    tape.write_text(text.replace(name, "data:image/png;base64,AAAA"))
    with llm.replay(tape):
        assert chat(picture=image("AAAA")).data == "a cat"


def test_base64_for_addresses_is_read_too() -> None:
    """Some write - and _ for + and /, and bytes must not be lost with them."""
    (found,) = attachments_in([Message(role="user", content=[image("-_-_")])])
    assert found.content() == bytes([0xFB, 0xFF, 0xBF])


@pytest.mark.parametrize("name", ["attachments/../../.ssh/id_rsa", "attachments/a.png", "https://example.org/a.png"])
def test_only_names_that_were_given_here_are_read(name: str) -> None:
    """A run folder that somebody sent must not have a resumed run read, and send, another file."""
    part = {"type": "image_url", "image_url": {"url": name}}
    assert attachments.with_attachments(part, lambda name: pytest.fail(f"{name} was read")) == part
