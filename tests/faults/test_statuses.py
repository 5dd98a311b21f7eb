"""Statuses and Retry-After: what is asked again, how often, and after how long."""

import asyncio
import time
from email.utils import formatdate

import pytest

from textgrad_engine import errors
from textgrad_engine.llm import budget
from textgrad_engine.testing import Fault


def refusal(status, code="", message="no"):
    return Fault(status, body={"error": {"message": message, "code": code}})


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (refusal(400), errors.BadRequest),
        (refusal(400, "context_length_exceeded"), errors.ContextOverflow),
        (refusal(413, message="maximum context length is 10"), errors.ContextOverflow),
        (refusal(401, "invalid_api_key"), errors.AuthenticationFailed),
        (refusal(402), errors.QuotaExhausted),
        (refusal(403), errors.AuthenticationFailed),
        (refusal(404, "model_not_found"), errors.BadRequest),
        (refusal(422), errors.BadRequest),
        (refusal(429, "insufficient_quota"), errors.QuotaExhausted),
    ],
)
def test_what_waiting_cannot_mend_fails_at_once(bench, fault, kind):
    """One request, no sleep, nothing charged."""
    here = bench(fault)
    with budget(calls=5) as b:
        (error,) = here.ask()
    assert type(error) is kind
    assert (here.server.requests, here.sleeps) == (1, [])
    assert (b.spent.calls, b.unknown.calls) == (0, 0)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_asked_again_once(bench, status):
    """Two requests, and one sleep of exactly the policy's backoff."""
    here = bench(Fault(status))
    (completion,) = here.ask()
    assert (completion.text, completion.attempts) == ("echo of hello", 2)
    assert here.server.requests == 2
    assert here.sleeps == here.backoff(1)


def test_a_sequence_of_failures_is_survived(bench):
    """Four kinds of weather in a row; the waits double."""
    here = bench(Fault(500), Fault(429), Fault(0), Fault(503))
    (completion,) = here.ask()
    assert completion.attempts == here.server.requests == 5
    assert here.sleeps == here.backoff(4)


def test_an_endpoint_that_stays_down_is_given_up(bench):
    """Six requests, five sleeps, and the error that the endpoint gave."""
    here = bench(*[Fault(503, body="upstream down")] * 9)
    (error,) = here.ask()
    assert isinstance(error, errors.ServerFailed)
    assert here.server.requests == 6
    assert here.sleeps == here.backoff(5)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1250"}, 1.25),
        ({"retry-after": "86400"}, 60.0),
        ({"retry-after-ms": "9999999"}, 60.0),
    ],
)
def test_retry_after_is_slept_exactly_up_to_its_cap(bench, headers, seconds):
    """In seconds and milliseconds; an endpoint that says 'tomorrow' gets a minute."""
    here = bench(Fault(429, headers))
    here.ask()
    assert (here.server.requests, here.sleeps) == (2, [seconds])


def test_retry_after_as_a_date(bench):
    """Proxies send the moment, not the time until then."""
    here = bench(Fault(503, {"retry-after": formatdate(time.time() + 30, usegmt=True)}))
    here.ask()
    assert here.server.requests == 2
    assert 10 < here.sleeps[0] <= 30  # a backoff would be half a second


@pytest.mark.parametrize("rubbish", ["soon", "nan", "-5", ""])
def test_a_retry_after_that_says_nothing_is_passed_over(bench, rubbish):
    """The backoff holds instead."""
    here = bench(Fault(429, {"retry-after": rubbish}))
    here.ask()
    assert (here.server.requests, here.sleeps) == (2, here.backoff(1))


def test_after_a_refused_key_at_most_those_in_flight_reach_the_server(bench):
    """64 calls queued behind a wrong key are failed, not sent; so are those that come later, but one."""
    everybody = asyncio.Event()

    async def refused(request):
        if here.server.requests == 8:
            everybody.set()
        await everybody.wait()
        raise errors.AuthenticationFailed("no", status=401)

    here = bench(answer=refused, max_in_flight=8)
    results = here.ask(*map(str, range(72)))
    assert all(type(result) is errors.AuthenticationFailed for result in results)
    assert here.server.requests == 8
    assert here.sleeps == []


def test_the_headers_of_an_endpoint_slow_what_comes_next(bench):
    """It says that nothing is left for now: the next request waits instead of running into a 429."""
    times = []
    said = {
        "x-ratelimit-limit-requests": "3",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "300ms",
    }
    first = Fault(200, said, {"choices": [{"message": {"content": "first"}, "finish_reason": "stop"}]})
    here = bench(first, answer=lambda request: times.append(time.perf_counter()) or "second", max_in_flight=1)
    began = time.perf_counter()
    assert [completion.text for completion in here.ask("a", "b")] == ["first", "second"]
    assert times[0] - began >= 0.1  # a third of the reset, in which one request comes back
    assert here.server.requests == 2
