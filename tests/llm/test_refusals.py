import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm.refusals import Refusal, read
from textgrad_engine.llm.statuses import error_of


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 6m0s. Need more?", 360.0),
        ("try again in 1m2.5s", 62.5),
        ("Please retry after 10 seconds.", 10.0),
        ("Please wait 57890 seconds before retrying.", 57890.0),
        ("try again in 864ms", 0.864),
        ("Please retry in 45.578569677s.", 45.578569677),
        ("Try again in 5 minutes", 300.0),
        ("wait 3 hours", 10800.0),
        ("try again in 2 days", None),
        ("If you created it within the last 5 minutes, please wait a moment and try again.", None),
        ("retry 3 times", None),
        ("try again later", None),
    ],
)
def test_a_time_to_wait_is_read_from_words(said, seconds):
    """Where no header says it, as in a stream that has begun."""
    assert read({"error": {"message": said}}).wait == seconds


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ([{"error": {"details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}], 34.0),
        ({"error": "Model x is currently loading", "estimated_time": 20.5}, 20.5),
        ({"error": {"message": "slow", "retry_after": True}}, None),
        ({"error": {"message": "slow", "retry_after": "soon"}}, None),
    ],
)
def test_a_time_to_wait_has_fields_of_its_own(body, seconds):
    """Gemini's and Hugging Face's."""
    assert read(json.dumps(body)).wait == seconds


def test_what_stands_in_several_places_is_said_once():
    """A gateway repeats what it was told, as JSON in its own message or beside it."""
    inner = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    for body in (
        {"error": {"message": json.dumps(inner), "code": 400}},
        {"error": {"message": "too long", "code": 400, "metadata": {"raw": json.dumps(inner)}}},
    ):
        assert read(json.dumps(body)) == Refusal("400 context_length_exceeded", "too long")


def test_the_field_that_is_refused_is_named():
    """FastAPI's validation errors, in the two shapes that Mistral has had."""
    detail = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
    for message in ({"detail": detail}, json.dumps({"detail": detail})):
        found = read({"object": "error", "message": message})
        assert (found.parameter, found.said) == ("seed", "Extra inputs are not permitted (body.seed)")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "raw", "metadata", "code", "msg", "loc"]), below
        )
    ),
    max_leaves=12,
)


@given(ANYTHING)
def test_whatever_a_body_is_it_is_read(body):
    """The error must not be one of reading the error."""
    found = read(json.dumps(body))
    assert len(found.said) <= 1000
    assert found.wait is None or found.wait >= 0


def test_a_body_that_is_nested_without_end_is_read():
    """Its text is shown, or nothing."""
    for text in ("[" * 100_000, "[" * 900 + "]" * 900, '{"error":' * 900 + "1" + "}" * 900):
        assert len(read(text).said) <= 1000


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"retry_after": "1" * 100_000}),
        (429, {"code": "request too large for " * 100_000}),
        (400, {"code": "unsupported field " * 100_000}),
        (403, {"message": "flagged " + "key_" * 200}),
        (403, {"code": "flagged " + "organization_" * 100_000}),
    ],
)
def test_a_hostile_body_is_read_at_once(status, error):
    """Each of these took longer than a test may, with the event loop held up meanwhile."""
    began = time.process_time()
    assert len(str(error_of(status, json.dumps({"error": error}), {}, "m", "w"))) < 2000
    assert time.process_time() - began < 2.0
