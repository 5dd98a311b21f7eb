"""Optimizers of programs that are given images: what they say to a model names these, and never spells them out."""

from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, nn, optim
from textgrad_engine.llm import Request
from textgrad_engine.optim.contracts import NoCopying
from textgrad_engine.testing import FunctionModel, feedback_for, png


def answer(request: Request) -> Any:
    """The least that a request wants; every third picture is right from the beginning."""
    if request.purpose == "forward":
        shown = str(request.messages[-1].content)
        return "red" if "Say red." in request.messages[0].text or sum(map(ord, shown)) % 3 == 0 else "blue"
    if request.config.response_format is None:
        return "Say red."
    if request.purpose == "backward":
        return feedback_for(request, "Say red.")
    wanted = request.config.response_format.json_schema["properties"]
    return {name: [] if schema.get("type") == "array" else "Say red." for name, schema in wanted.items()}


@pytest.mark.parametrize("name", ["TGD", "PatchSearch", "ParetoSearch", "BeamSearch", "OPRO", "BootstrapDemos"])
def test_no_request_holds_an_image_in_letters(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nor an example that is nothing without it: "an image, the right answer is red" teaches to say red."""
    model = FunctionModel(answer)
    rows = [{"photo": data.image_part(png([[(255, n, 0)] * 9] * 9)), "target": "red"} for n in range(24)]
    program = nn.ChatCompletion("{photo} What color?", system=nn.Parameter("Look.", role="system prompt"))
    optimizer = getattr(optim, name)(program.parameters())
    with tg.use_models(forward=model):
        tg.Trainer(max_steps=2, batch_size=8).fit(program, nn.ExactMatch(), optimizer, rows[:8], rows[8:16], rows[16:])
    texts = [message.text for request in model.requests for message in request.messages]
    assert not any("base64" in text for text in texts)
    assert not any("not shown here" in text for text in texts)
    said = f"{name}: 8 of 8 training examples have images or the like ('photo'), which no text can hold"
    assert caplog.text.count(said) == (name in ("OPRO", "BootstrapDemos"))


class Describing(nn.Module):
    """One prompt describes a picture, the other one names the color of the description."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.ChatCompletion("{photo}", system=nn.Parameter("Look.", role="prompt of the looker"))
        self.name = nn.ChatCompletion("{seen}", system=nn.Parameter("Name it.", role="prompt of the namer"))

    def forward(self, photo: Any) -> tg.Variable:
        return self.name(seen=self.look(photo=photo))


def test_a_prompt_that_is_given_no_image_is_shown_demonstrations_of_its_own() -> None:
    """Those of what it was given; the other prompt stays as it is."""

    def act(request: Request) -> str:
        system, user = (message.content for message in request.messages)
        if isinstance(user, list):
            return "It has the color of blood."
        return "red" if "Example 1" in system or user.endswith(";") else "It is red."

    rows = [{"photo": data.image_part(png([[(255, n, 0)] * 9] * 9)), "target": "red"} for n in range(8)]
    program = Describing()

    def metric(said: str, wanted: str) -> float:
        return 1.0 if said == wanted else 0.5

    loss = nn.Metric(metric, "whether it is the color alone")
    optimizer = optim.BootstrapDemos(program.parameters(), least=0.5)
    with tg.use_models(forward=FunctionModel(act)):
        tg.Trainer(max_steps=3).fit(program, loss, optimizer, rows[:4], rows[4:])
    assert str(program.look.system.data) == "Look."
    shown = str(program.name.system.data)
    assert "It has the color of blood." in shown
    assert "not shown here" not in shown


def test_no_words_are_copied_from_an_image() -> None:
    """Its address is in the rows as text, and means nothing there."""
    address = "https://example.org/a/long/way/to/the/red/lamp/of/the/press/in/hall/three.png"
    row = {"photo": {"type": "image_url", "image_url": {"url": address}}, "target": "red"}
    text = address.replace("/", " ")
    assert NoCopying([row]).problem("Look.", text) is None
    assert NoCopying([{"photo": address, "target": "red"}]).problem("Look.", text) is not None
