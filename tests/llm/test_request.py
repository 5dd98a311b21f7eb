"""Sampling settings: what is none is refused, and told in the same words wherever it is given."""

import pytest
from pydantic import ValidationError

from textgrad_engine import nn, ops
from textgrad_engine.llm import GenerateConfig, OpenAIModel, resolve
from textgrad_engine.llm.request import INSTEAD


@pytest.mark.parametrize("name", INSTEAD)
def test_what_is_no_setting_is_named_with_what_is_used_instead(name):
    """Who knows the SDK writes n=4 or stream=True, and `extra` would not take it either."""
    for make in (
        GenerateConfig,
        lambda **given: OpenAIModel("m", **given),
        lambda **given: resolve("openai/m", **given),
    ):
        if name == "model" and make is not GenerateConfig:
            continue  # the parameter of that name
        with pytest.raises((ValidationError, TypeError)) as caught:
            make(**{name: 4})
        assert INSTEAD[name] in str(caught.value)


def test_the_ways_to_several_answers_and_to_pieces_are_named():
    """The two that people look for."""
    assert "llm.samples" in INSTEAD["n"]
    assert "llm.on_token" in INSTEAD["stream"]
    assert "llm.samples" in GenerateConfig.__doc__
    assert "llm.on_token" in GenerateConfig.__doc__


def test_a_single_stop_text_is_one():
    """As in the endpoints' APIs, where it may be a text or a list."""
    assert GenerateConfig(stop="END").stop == GenerateConfig(stop=["END"]).stop == ("END",)


@pytest.mark.parametrize("place", ["OpenAIModel", "resolve", "ChatCompletion", "chat_completion"])
def test_wrong_sampling_settings_are_told_alike_wherever_they_are_given(place):
    """Which one, what is wrong about it, and what it was given to; and of a name that is none, what there is."""
    ways = {
        "OpenAIModel": lambda **config: OpenAIModel("m", base_url="http://localhost:1/v1", **config),
        "resolve": lambda **config: resolve("simulated/tickets", **config),
        "ChatCompletion": lambda **config: nn.ChatCompletion("{word}", **config),
        "chat_completion": lambda **config: ops.chat_completion(None, "Hello", **config),
    }
    with pytest.raises(ValueError, match=f"^{place}: temperature: Input should be a valid number") as caught:
        ways[place](temperature="hot")
    assert not isinstance(caught.value, ValidationError)
    with pytest.raises(TypeError, match=r"unknown sampling setting 'temperatur'.*temperature"):
        ways[place](temperatur=0.5)
