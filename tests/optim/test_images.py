"""Optimizers of programs that are given images: what they say to a model names these, and never spells them out."""

from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, nn, optim
from textgrad_engine.llm import Request
from textgrad_engine.optim.contracts import NoCopying
from textgrad_engine.testing import FunctionModel, png


def answer(request: Request) -> Any:
    """The least that a request wants; every third picture is right from the beginning."""
    if request.purpose == "forward":
        shown = str(request.messages[-1].content)
        return "red" if "Say red." in request.messages[0].text or sum(map(ord, shown)) % 3 == 0 else "blue"
    if request.config.response_format is None:
        return "Say red."
    wanted = request.config.response_format.json_schema["properties"]
    if request.purpose == "backward":
        return {case: dict.fromkeys(schema["properties"], "Say red.") for case, schema in wanted.items()}
    return {name: [] if schema.get("type") == "array" else "Say red." for name, schema in wanted.items()}


@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch", "BeamSearch", "OPRO", "BootstrapDemos"])
def test_no_request_holds_an_image_in_letters(name: str) -> None:
    """A demonstration, or a task that an optimizer is shown, was 200 kB of base64 in the middle of the text."""
    model = FunctionModel(answer)
    rows = [{"photo": data.image_part(png([[(255, n, 0)] * 9] * 9)), "target": "red"} for n in range(24)]
    program = nn.ChatCompletion("{photo} What color?", system=nn.Parameter("Look.", role="system prompt"))
    optimizer = getattr(optim, name)(program.parameters())
    with tg.use_models(forward=model):
        tg.Trainer(max_steps=2, batch_size=8).fit(program, nn.ExactMatch(), optimizer, rows[:8], rows[8:16], rows[16:])
    texts = [message.text for request in model.requests for message in request.messages]
    assert not any("base64" in text for text in texts)
    if name in ("OPRO", "BootstrapDemos"):
        assert any("[an image, not shown here]" in text for text in texts)


def test_no_words_are_copied_from_an_image() -> None:
    """Its address is in the rows as text, and means nothing there."""
    address = "https://example.org/a/long/way/to/the/red/lamp/of/the/press/in/hall/three.png"
    row = {"photo": {"type": "image_url", "image_url": {"url": address}}, "target": "red"}
    text = address.replace("/", " ")
    assert NoCopying([row]).problem("Look.", text) is None
    assert NoCopying([{"photo": address, "target": "red"}]).problem("Look.", text) is not None
