import hashlib
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm import GenerateConfig, Message, Request, ResponseFormat, tokens


@pytest.fixture
def vocabulary(tmp_path, monkeypatch):
    """A folder in tiktoken's place, with a file where it keeps a vocabulary."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    tokens._vocabulary.cache_clear()
    tokens._encoding.cache_clear()
    url = f"{tokens._SOURCE}o200k_base.tiktoken"
    yield tmp_path / hashlib.sha1(url.encode()).hexdigest()
    tokens._vocabulary.cache_clear()
    tokens._encoding.cache_clear()


def test_a_damaged_vocabulary_is_not_fetched_anew(vocabulary, monkeypatch):
    """tiktoken downloads without a timeout when the file is wrong; we must never get there."""

    def no_network(*args, **kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    vocabulary.write_bytes(b"damaged")
    assert tokens.method("gpt-5-mini") == "estimate"
    assert tokens.count("Sort the ticket.", "openai/gpt-5-mini") == 4


def test_without_a_vocabulary_the_count_is_labelled_an_estimate(vocabulary):
    """Reports can say how far to trust a number."""
    assert not vocabulary.exists()
    assert tokens.method("gpt-5-mini") == "estimate"
    assert tokens.method("llama3.2") == "estimate"


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
    assert tokens.count_request(seen) == tokens.count_request(plain) + tokens.IMAGE
