import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm import GenerateConfig, Message, Request, ResponseFormat, tokens


def test_other_scripts_count_more_than_ascii():
    """Four characters a token is far off for Japanese."""
    assert tokens.count("a" * 40) == 10
    assert tokens.count("猫" * 40) == 40


def test_schema_and_tools_count_too():
    """They are sent and billed; a budget that leaves them out would be passed."""
    plain = Request(messages=(Message(role="user", content="hello"),))
    format_ = ResponseFormat(name="A", json_schema={"type": "object", "properties": {"answer": {"type": "string"}}})
    asked = plain.model_copy(update={"config": GenerateConfig(response_format=format_, tools=({"type": "function"},))})
    assert tokens.count_request(asked) > tokens.count_request(plain) + 10


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(one, other):
    """Fitting text into a context relies on it; hostile text (lone surrogates) counts too."""
    assert tokens.count(one + other) >= max(tokens.count(one), tokens.count(other))


def test_an_image_counts_too():
    """A budget that leaves images out would be passed."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = Request(messages=(Message(role="user", content=[{"type": "text", "text": "hello"}, image]),))
    plain = Request(messages=(Message(role="user", content="hello"),))
    assert tokens.count_request(seen) == tokens.count_request(plain) + 1700


BYTES = tiktoken.Encoding(
    "bytes", pat_str=r"[\s\S]", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={}
)
"""The tokenizer that needs the most tokens: it knows no more than the bytes."""

ROLE = st.sampled_from(["system", "user", "assistant"])


@given(st.lists(st.tuples(ROLE, st.text(st.characters(codec="utf-8"))), max_size=5))
def test_no_tokenizer_passes_the_most_that_a_request_can_be(messages):
    """A budget reserves this; it must hold for emoji, for rare scripts and for what no vocabulary has seen."""
    request = Request(messages=tuple(Message(role=role, content=text) for role, text in messages))
    worst = sum(len(BYTES.encode_ordinary(text)) + 5 for _, text in messages) + 3
    assert worst <= tokens.most_of_request(request)
    assert tokens.count_request(request) <= tokens.most_of_request(request)


SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
AUDIO_PART = {"type": "input_audio", "input_audio": {"data": "A" * 5000, "format": "wav"}}


@pytest.mark.parametrize(
    ("model", "content", "config", "least"),
    [
        (None, "x", {"response_format": ResponseFormat(name="A", json_schema=SCHEMA)}, 2 * 66),
        (None, "x", {"tools": ({"type": "function", "function": {"name": "look"}},)}, 1024),
        (None, [{"type": "text", "text": "x" * 500}], {}, 500),
        (None, [IMAGE_PART, IMAGE_PART], {}, 2 * 6404),
        ("openai/gpt-4o-mini", [IMAGE_PART], {}, 2833 + 8 * 5667),
        (None, [AUDIO_PART], {}, 5000),
    ],
)
def test_everything_that_is_sent_is_in_the_most_that_a_request_can_be(model, content, config, least):
    """Schemas, tools, images and sounds are billed as text is."""
    request = Request(messages=(Message(role="user", content=content),), config=GenerateConfig(**config))
    plain = Request(messages=(Message(role="user", content=""),))
    assert tokens.most_of_request(request, model) >= tokens.most_of_request(plain) + least
    assert tokens.most_of_request(request, model) >= tokens.count_request(request, model)


def test_tool_calls_of_an_answer_that_is_sent_back_count():
    """A conversation with tools is mostly made of them."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "x" * 1000}}
    said = Message(role="assistant", content="", tool_calls=(call,))
    request = Request(messages=(said, Message(role="tool", content="", tool_call_id="call_1")))
    assert tokens.count_request(request) > 250
    assert tokens.most_of_request(request) > 1000


def test_the_size_of_a_schema_belongs_to_that_schema():
    """It is kept by identity, and an identity is given anew when an object is gone."""
    for length in range(1, 600):
        schema = {"type": "object", "description": "d" * length}
        request = Request(
            messages=(), config=GenerateConfig(response_format=ResponseFormat(name="A", json_schema=schema))
        )
        plain = Request(messages=())
        assert tokens.most_of_request(request) - tokens.most_of_request(plain) > 2 * length
