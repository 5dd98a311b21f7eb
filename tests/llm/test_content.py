import pytest

from textgrad_engine.llm.content import refusal_in, text_in


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("yes", "yes"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"text": "b"}, {"type": "refusal", "refusal": "no"}], "ab"),
        ([{"type": "text", "text": None}], ""),
        ([{"type": "text", "text": 5}], None),
        (["yes"], None),
        ({"text": "yes"}, None),
        (42, None),
    ],
)
def test_the_text_of_a_content_in_any_of_its_forms(content, text):
    """What is neither text nor parts is none, so that it is refused and not taken for silence."""
    assert text_in(content) == text


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"content": None, "refusal": "no"}, "no"),
        ({"content": [{"type": "refusal", "refusal": "n"}, {"type": "refusal", "refusal": "o"}]}, "no"),
        ({"content": "no"}, ""),
        ({"content": [5], "refusal": 5}, ""),
        ({}, ""),
    ],
)
def test_a_refusal_has_a_field_or_parts(message, words):
    """Of both APIs."""
    assert refusal_in(message) == words
