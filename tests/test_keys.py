"""A key that was given in the wrong place stands in no message."""

from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm
from textgrad_engine.errors import UnknownModelError
from textgrad_engine.keys import without_keys
from textgrad_engine.kinds import told

KEY = "sk-proj-0123456789abcdefABCDEF0123456789"


@pytest.mark.parametrize(
    "give",
    [
        lambda: llm.OpenAIModel("m", KEY),
        lambda: llm.OpenAIModel("m", timeout=KEY),  # type: ignore[arg-type]
        lambda: llm.OpenAIModel("m", max_in_flight=KEY),  # type: ignore[arg-type]
        lambda: llm.OpenAIModel("m", api=KEY),  # type: ignore[arg-type]
        lambda: llm.OpenAIModel([KEY]),  # type: ignore[arg-type]
        lambda: llm.resolve(KEY),
        lambda: tg.set_models(forward=KEY),
    ],
)
def test_a_key_in_the_place_of_something_else_is_not_shown(give: Any) -> None:
    """The message still says what was wrong."""
    with pytest.raises((ValueError, TypeError, UnknownModelError)) as caught:
        give()
    assert KEY[8:20] not in str(caught.value)
    assert "key" in str(caught.value) or "[redacted]" in str(caught.value)


@pytest.mark.parametrize("given", [f"\n{KEY}", f"\t{KEY}\r\n", [f"\n{KEY}"], b"\r" + KEY.encode()])
def test_a_key_is_not_shown_with_white_space_before_it(given: Any) -> None:
    """Messages show it by `repr`, which puts a letter there."""
    assert KEY[8:20] not in told(given)


@pytest.mark.parametrize("text", ["sk-learn-compatible-estimator", "Basic understanding of it", "http://host/v1"])
def test_what_is_no_key_stays(text: str) -> None:
    """Words that begin as one does, and addresses without a password."""
    assert without_keys(text) == text
