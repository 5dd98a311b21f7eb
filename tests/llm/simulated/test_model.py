import asyncio

import pytest

from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import Message, Request
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.schema import fit


@pytest.mark.parametrize("noise", [-0.1, 1.1])
def test_an_impossible_noise_is_refused(noise):
    """A rate is between 0 and 1."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        TicketsModel(noise=noise)


def test_nothing_to_pick_from_is_an_error():
    """An empty choice is a bug, not an arbitrary answer."""
    with pytest.raises(ValueError, match="empty"):
        pick([], "key")


def test_an_empty_conversation_is_answered():
    """The model never fails, whatever it is sent."""
    assert asyncio.run(TicketsModel().complete(Request(messages=()))).text


def test_it_is_a_model_that_costs_nothing_and_counts_its_tokens():
    """It can stand wherever a real model stands."""
    model = TicketsModel()
    assert isinstance(model, Model)
    assert (model.name, model.free) == ("simulated/tickets", True)
    completion = asyncio.run(model.complete(Request(messages=(Message(role="user", content="refund please, now"),))))
    assert completion.finish_reason == "stop"
    assert completion.usage.calls == 1
    assert completion.usage.dollars == 0.0
    assert completion.usage.input_tokens >= 4
    assert completion.usage.output_tokens >= 1


def test_the_purpose_is_not_looked_at(ask, feedback_request):
    """Over HTTP the purpose is not sent, so it must not matter."""
    request = feedback_request([("gift card", "billing", "account")])
    assert ask(request) == ask(request.model_copy(update={"purpose": "judge"}))


def test_chance_is_even():
    """Rates mean what they say."""
    draws = [chance("test", number) for number in range(2000)]
    assert all(0 <= draw < 1 for draw in draws)
    assert 0.45 < sum(draws) / len(draws) < 0.55


def test_fit_follows_references_unions_and_enums():
    """Schemas written by pydantic are obeyed, too."""
    schema = {
        "$defs": {"Queue": {"enum": ["a", "b"]}},
        "properties": {"queue": {"$ref": "#/$defs/Queue"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    }
    assert fit(schema, {"extra": 1}, "b") == {"queue": "b", "note": ""}
    assert fit({"type": "array", "items": {"type": "integer"}}, [1.0, 2]) == [1, 2]
    assert fit({"const": 3}, 4) == 3
