"""A key that was given in the wrong place stands in no message."""

from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm
from textgrad_engine.errors import UnknownModelError
from textgrad_engine.keys import HIDDEN, without_keys
from textgrad_engine.wording import told

KEY = "sk-proj-0123456789abcdefABCDEF0123456789"


FORMS = [
    KEY,
    "gsk_" + "aB3dE6gH9" * 6,
    "AIzaSy" + "aB3dE6gH9_-" * 3,
    "hf_" + "aB3dE6gH" * 4,
    "xai-" + "aB3dE6gH9" * 8,
    "csk-" + "ab3de6gh" * 6,
    "nvapi-" + "aB-dE_gH9" * 7,
    "hf_" + "aBcdEfgHiJklMnopQ" * 2,
    "ghp_" + "aB3dE6gH9" * 4,
    "github_pat_11" + "aB3dE6gH9_" * 8,
    "tgp_v1_" + "aB-dE_gH9" * 5,
    "nvapi-" + "aB3dE6gH9_-" * 6,
    "csk-" + "aB3dE6gH" * 6,
    "pplx-" + "aB3dE6gH" * 6,
    "AKIA" + "B3DE6GH9" * 2,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.aB3dE6gH9_x",
]
AZURE = "0a1b2c3d" * 4


@pytest.mark.parametrize("key", FORMS)
def test_the_form_of_a_provider_is_known_within_a_text(key: str) -> None:
    assert without_keys(f"it is {key}, and {key!r}") == "it is [redacted], and '[redacted]'"


@pytest.mark.parametrize(
    ("text", "left"), [("sk-0123456789abcdef", "[redacted]"), ("Basic 0123456789abcdef", "Basic [redacted]")]
)
def test_the_shortest_key_is_known_by_itself(text: str, left: str) -> None:
    assert without_keys(text) == left
    assert without_keys(text[:-1]) == text[:-1]


@pytest.mark.parametrize("key", [*FORMS, AZURE])
@pytest.mark.parametrize(
    "give",
    [
        lambda key: llm.OpenAIModel("m", key),
        lambda key: llm.resolve(key),
        lambda key: tg.set_models(forward=key),
    ],
)
def test_a_key_of_any_provider_is_not_shown_where_a_name_or_an_address_was_meant(give: Any, key: str) -> None:
    with pytest.raises((ValueError, UnknownModelError), match=r"key|\[redacted\]") as caught:
        give(key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "give",
    [
        lambda: llm.GenerateConfig(temperature=KEY),  # type: ignore[arg-type]
        lambda: llm.GenerateConfig(stop=[1, KEY]),  # type: ignore[arg-type,list-item]
        lambda: llm.Request(messages=KEY),  # type: ignore[arg-type]
        lambda: llm.Message(role=KEY, content=""),  # type: ignore[arg-type]
        lambda: llm.OpenAIModel("m", temperature=KEY),
    ],
)
def test_what_a_record_refuses_is_not_shown(give: Any) -> None:
    """It may be a key, or a whole dataset."""
    with pytest.raises(ValueError, match=r"temperature|stop|messages|role") as caught:
        give()
    assert KEY[8:20] not in str(caught.value)


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


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-compatible-estimator",
        "xai-grok-4-fast-reasoning-2025",
        "pplx-70b-online-instruct-x",
        "pplx-sonar-70b-chat-online",
        "nvapi-nemotron-70b-instruct",
        "Basic understanding of it",
        "http://host/v1",
        "hf_hub_download_with_retries_version2",
        f"the digest {AZURE}",
        "AIza is how keys of Google begin, AKIA those of AWS",
        "eyJhbGciOiJIUzI1NiJ9 is base64",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    """Words that begin as one does, and addresses without a password."""
    assert without_keys(text) == text


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["-eyJ", "eyJ.", "-eyJaaaaaaaa.", "sk-", "://a@", "bearer "])
def test_a_megabyte_of_what_keys_begin_with_is_looked_through_at_once(piece: str) -> None:
    """An answer, or an error of an endpoint, may be full of it."""
    text = piece * (1_000_000 // len(piece))
    assert without_keys(f"{text} {FORMS[0]}").endswith(f" {HIDDEN}")


def test_a_web_token_behind_others_parts_is_taken_out_whole() -> None:
    """In the middle of a word, and behind one that has no first part."""
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.aB3dE6gH9_x"
    assert without_keys(f"id_{token}, word.{token} and {token}.end") == f"id_{HIDDEN}, word.{HIDDEN} and {HIDDEN}.end"
