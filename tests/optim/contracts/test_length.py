from __future__ import annotations

import pytest

from textgrad_engine.llm import tokens
from textgrad_engine.optim.contracts import MaxCharacters, MaxTokens, NotEmpty


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_a_text_must_not_become_empty(text: str) -> None:
    """White space is no prompt."""
    assert NotEmpty().problem("before", text) == "the new text is empty"
    assert NotEmpty().describe("") == ""


def test_a_text_may_not_grow_past_its_limit() -> None:
    """The message has both numbers; a text that was too long may still be shortened step by step."""
    contract = MaxTokens(5)
    problem = contract.problem("short", "word " * 20)
    assert problem == f"the new text has {tokens.count('word ' * 20)} tokens, and 5 are allowed"
    assert contract.problem("word " * 30, "word " * 20) is None
    assert contract.problem("word " * 20, "word " * 20) is not None


def test_the_limit_is_named_beforehand() -> None:
    """With how much of it is used."""
    assert MaxTokens(5).describe("one") == "At most 5 tokens; the text in use has 1."


def test_one_token_is_one() -> None:
    """Limits are told in the singular, too."""
    assert MaxTokens(1).describe("one").startswith("At most 1 token;")
    assert str(MaxTokens(1).problem("one", "word " * 20)).endswith("tokens, and 1 is allowed")


def test_a_limit_of_characters_is_one_of_an_endpoint() -> None:
    """Counted as it counts them, wide ones and line breaks too; a text that was longer may get shorter."""
    contract = MaxCharacters(4)
    assert contract.problem("a", "äß漢\n") is None
    assert contract.problem("a", "12345") == "the new text has 5 characters, and 4 are allowed"
    assert contract.problem("1234567", "123456") is None
    assert contract.problem("1234567", "1234567") is not None
    assert contract.describe("one") == "At most 4 characters; the text in use has 3."
    assert MaxCharacters(1).problem("", "ab") == "the new text has 2 characters, and 1 is allowed"
