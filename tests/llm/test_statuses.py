from email.utils import formatdate

import pytest

from textgrad_engine.errors import QuotaExhausted, ServerFailed
from textgrad_engine.llm.statuses import error_of, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(900, usegmt=True)}, 0.0),
        ({"llm_provider-retry-after": "60"}, 60.0),
        ({"retry-after": "2", "llm_provider-retry-after": "60"}, 2.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    """Seconds, milliseconds, a date; rubbish is no wait at all."""
    assert retry_after(headers, now=lambda: 1000.0) == seconds


@pytest.mark.parametrize(
    "text", ["", "plain words", "[1, 2]", '"text"', "null", '{"error": null}', "[" * 100_000, "\x00"]
)
def test_whatever_a_refusal_says_it_is_an_error_of_ours(text):
    """Its status counts; its words are shown as far as there are any."""
    error = error_of(503, text, {}, "m", "http://host/v1")
    assert type(error) is ServerFailed
    assert "http://host/v1" in str(error)
    assert len(str(error)) < 1500


def test_an_empty_account_is_told_from_a_busy_endpoint_by_its_code_or_its_words():
    """Both come as 429, and only one of them passes by waiting."""
    for text in ('{"error": {"code": "insufficient_quota"}}', "insufficient_quota", '{"error": "insufficient_quota"}'):
        assert type(error_of(429, text, {}, "m", "w")) is QuotaExhausted
