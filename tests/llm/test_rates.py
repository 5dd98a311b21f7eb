from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm.rates import Allowance, Bucket, Learned, duration


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), 0.5])
def test_a_rate_that_lets_nothing_through_is_refused(wrong):
    """It would wait for ever."""
    with pytest.raises(ValueError, match="per minute"):
        Bucket(wrong)


@given(st.integers(1, 500), st.lists(st.floats(0, 20), max_size=300))
def test_no_minute_passes_more_requests_than_stated(limit, gaps):
    """Whenever requests come, any sixty seconds hold at most so many."""
    bucket, now, sent = Bucket(limit), 0.0, []
    for gap in gaps:
        now += gap
        now += bucket.wait(1, now)
        while not bucket.take(1, now):
            now += 1e-6
        sent.append(now)
    for first in range(len(sent)):
        assert sum(1 for moment in sent[first:] if moment < sent[first] + 60 - 1e-3) <= limit


@given(st.integers(100, 100_000), st.lists(st.integers(1, 50_000), max_size=60))
def test_no_minute_passes_more_tokens_than_stated_but_for_the_last_call(limit, sizes):
    """One call may be larger than the bucket; what it takes too much is waited for after it."""
    bucket, now, sent = Bucket(limit), 0.0, []
    for size in sizes:
        now += bucket.wait(size, now)
        while not bucket.take(size, now):
            now += 1e-6
        sent.append((now, size))
    for first, (begin, _) in enumerate(sent):
        inside = [size for moment, size in sent[first:] if moment < begin + 60 - 1e-3]
        assert sum(inside) <= limit + max(inside) + 1


def test_what_was_taken_too_much_comes_back():
    """A call that reserved 900 tokens and used 100 must not hold up the next."""
    bucket = Bucket(10_000)
    assert bucket.take(900, 0.0)
    assert not bucket.take(900, 0.0)
    bucket.correct(100 - 900)
    assert bucket.take(900, 0.0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("6m0s", 360.0), ("1h2m3s", 3723.0), ("20ms", 0.02), ("0s", 0.0), ("1.5", 1.5), (" 7s ", 7.0)]
    + [
        (text, None) for text in ("", None, "soon", "1x", "s", "-1", "nan", "inf", "1760000000", "2025-01-01T00:00:00Z")
    ],
)
def test_times_in_headers_are_read_or_passed_over(text, seconds):
    """Endpoints write them in many ways; what cannot be read must not stop a run."""
    assert duration(text) == (None if seconds is None else pytest.approx(seconds))


HEADER = st.one_of(
    st.none(), st.text(max_size=8), st.integers(-5, 10**6).map(str), st.sampled_from(["nan", "inf", "1m"])
)


@given(HEADER, HEADER, HEADER, st.floats(0, 1e6), st.integers(1, 100))
def test_whatever_headers_say_the_wait_is_a_number_of_seconds(limit, remaining, reset, now, amount):
    """Rubbish from a proxy must not crash or stall a run."""
    learned = Learned("x-ratelimit-remaining-tokens")
    names = ("limit", "remaining", "reset")
    said = {
        f"x-ratelimit-{name}-tokens": value
        for name, value in zip(names, (limit, remaining, reset))
        if value is not None
    }
    learned.hear(said, in_flight=3, now=now)
    assert 0 <= learned.wait(amount, now + 1) < float("inf")


def test_what_is_left_is_shared_by_what_is_under_way():
    """Five left and five in flight: the next one waits for the refill."""
    learned = Learned("x-ratelimit-remaining-requests")
    said = {
        "x-ratelimit-limit-requests": "65",
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-reset-requests": "60s",
    }
    learned.hear(said, in_flight=5, now=0.0)
    assert learned.wait(1, 0.0) == pytest.approx(1.0)
    assert learned.wait(1, 1.0) == 0.0


def moment(seconds):
    """A moment so many seconds from now, as Anthropic writes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        # OpenAI: 50 missing in 30 s
        ({"limit-tokens": "100", "remaining-tokens": "50", "reset-tokens": "30s"}, 30.0),
        # Cerebras documents seconds, for a minute's tokens and a day's requests
        ({"limit-tokens-minute": "100", "remaining-tokens-minute": "50", "reset-tokens-minute": "30.0"}, 30.0),
        ({"limit-requests-day": "100", "remaining-requests-day": "0", "reset-requests-day": "200.0"}, 2.0),
        ({"limit-requests-hour": "36", "remaining-requests-hour": "0"}, 100.0),
        # Mistral says no reset: what it allows in a minute comes back in a minute
        ({"limit-req-minute": "120", "remaining-req-minute": "0"}, 0.5),
        ({"limit-tokens-minute": "600", "remaining-tokens-minute": "50", "tokens-query-cost": "52"}, 5.0),
        # and its limit per month is not one to wait for
        ({"limit-tokens-month": "100", "remaining-tokens-month": "0"}, 0.0),
        ({"remaining-tokens-": "0", "remaining-images": "0", "remaining": "0"}, 0.0),
    ],
)
def test_what_is_left_is_read_under_the_names_of_several_providers(said, seconds):
    """The sources are in docs/conformance.md."""
    allowance = Allowance()
    headers = {f"x-ratelimit-{name}": value for name, value in said.items()}
    assert allowance.hear(headers, requests=0, tokens=0, now=0.0) == (seconds > 0)
    assert allowance.wait(tokens=100, now=0.0) == pytest.approx(seconds)


@pytest.mark.parametrize("reset", [None, "soon", "T", "2026-01-01T00:00:00", "9999999-01-01T00:00:00Z", "T" * 5000])
def test_a_moment_that_cannot_be_read_is_passed_over(reset):
    """It must not stop a run; one without a zone is anybody's guess."""
    allowance = Allowance()
    said = {"limit": "60", "remaining": "0"} | ({} if reset is None else {"reset": reset})
    headers = {f"anthropic-ratelimit-requests-{name}": value for name, value in said.items()}
    assert allowance.hear(headers, requests=0, tokens=0, now=0.0)
    assert allowance.wait(tokens=1, now=0.0) == pytest.approx(1.0)


def test_a_reset_may_be_a_moment():
    """Anthropic's is when all of it is there again."""
    allowance = Allowance()
    said = {"limit": "60", "remaining": "0", "reset": moment(600)}
    headers = {f"anthropic-ratelimit-requests-{name}": value for name, value in said.items()}
    assert allowance.hear(headers, requests=0, tokens=0, now=0.0)
    assert allowance.wait(tokens=1, now=0.0) == pytest.approx(10.0, rel=0.1)


def test_the_longest_of_several_waits_counts_and_what_is_sent_is_taken_from_all():
    """A day's requests and a minute's tokens are said at once."""
    allowance = Allowance()
    headers = {
        "x-ratelimit-limit-requests-day": "1000",
        "x-ratelimit-remaining-requests-day": "2",
        "x-ratelimit-reset-requests-day": "998",
        "x-ratelimit-limit-tokens-minute": "600",
        "x-ratelimit-remaining-tokens-minute": "600",
    }
    allowance.hear(headers, requests=1, tokens=300, now=0.0)
    assert allowance.wait(tokens=300, now=0.0) == 0.0
    allowance.take(300)
    assert allowance.wait(tokens=10, now=0.0) == pytest.approx(1.0)
    assert allowance.wait(tokens=310, now=0.0) == pytest.approx(31.0)


def test_a_number_too_small_to_be_divided_is_none():
    """It failed all calls to the endpoint, as nothing came back in any time."""
    learned = Learned("x-ratelimit-remaining-requests")
    said = {"limit": "5e-324", "remaining": "0", "reset": "1d"}
    learned.hear({f"x-ratelimit-{word}-requests": value for word, value in said.items()}, in_flight=0.0, now=0.0)
    assert learned.wait(1, now=0.0) == pytest.approx(60)


def test_a_moment_beyond_a_day_is_no_reset():
    """As with seconds: a clock that is wrong, or a hostile endpoint, would stretch a limit per minute over a year."""
    learned = Learned("anthropic-ratelimit-requests-remaining")
    moment = (datetime.now(UTC) + timedelta(days=365)).isoformat()
    said = {"limit": "60", "remaining": "0", "reset": moment}
    learned.hear({f"anthropic-ratelimit-requests-{word}": value for word, value in said.items()}, 0.0, now=0.0)
    assert learned.wait(1, now=0.0) == pytest.approx(1)


def test_an_endpoint_that_says_only_what_is_left_has_the_most_that_it_said_as_its_limit():
    """Else it would be asked once a minute as soon as nothing is left."""
    learned = Learned("x-ratelimit-remaining-requests")
    for left in ("100", "0"):
        learned.hear({"x-ratelimit-remaining-requests": left}, 0, 0.0)
    assert learned.wait(1, 0.0) == pytest.approx(0.6)
