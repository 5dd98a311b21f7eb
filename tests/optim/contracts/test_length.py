from __future__ import annotations

import pytest

from textgrad_engine.llm import tokens
from textgrad_engine.optim.contracts import MaxTokens, NotEmpty


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
