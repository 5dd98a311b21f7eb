import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import (
    APIError,
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    DeadlineExceeded,
    EmptyResponse,
    MalformedResponse,
    ModelError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    Stopped,
    TruncatedResponse,
)
from textgrad_engine.llm import (
    Check,
    Completion,
    Metered,
    Retry,
    RetryPolicy,
    Stop,
    Usage,
    budget,
    meter,
    observe,
    resolve,
)
from textgrad_engine.llm.charged import mark, usage_of
from textgrad_engine.testing import FunctionModel, ScriptedModel


class Sleeps:
    def __init__(self):
        self.all = []
        self.now = 0.0

    async def __call__(self, seconds):
        self.all.append(seconds)
        self.now += seconds

    def clock(self):
        return self.now


def retrying(answers, policy=None):
    sleeps = Sleeps()
    model = ScriptedModel(answers)
    return Retry(model, policy, clock=sleeps.clock, sleep=sleeps, rng=random.Random(0)), model, sleeps


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("x", status=401),
        QuotaExhausted("x", status=429),
        QuotaExhausted("x", status=429, retry_after=301),
        BadRequest("x", status=400),
        ContextOverflow("x", status=400),
        ContentFiltered("x"),
        TruncatedResponse("x"),
    ],
)
def test_what_cannot_be_mended_is_not_tried_again(run, ask, error):
    """Auth errors retried, truncation asked for again: defects of earlier systems."""
    model, inner, sleeps = retrying([error, "never"])
    with pytest.raises(type(error)):
        run(model.complete(ask()))
    assert (len(inner.requests), sleeps.all) == (1, [])


def test_a_quota_that_is_back_before_the_deadline_is_waited_for_as_long_as_the_endpoint_says(run, ask):
    """OpenAI's and Groq's limits a day roll. Asking in between would be refused, and may count."""
    model, _, sleeps = retrying([QuotaExhausted("x", status=429, retry_after=290.5), "fine"])
    assert run(model.complete(ask())).attempts == 2
    assert sleeps.all == [290.5]


def test_a_quota_is_not_waited_for_beyond_the_deadline_of_all_attempts(run, ask):
    """Each wait is short enough, all of them are not: the run ends, and goes on with `resume`."""
    error = QuotaExhausted("x", status=429, retry_after=200)
    model, _, sleeps = retrying([error, error, "never"])
    with pytest.raises(QuotaExhausted):
        run(model.complete(ask()))
    assert sleeps.all == [200]


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("x", status=429),
        ServerFailed("x", status=503),
        ConnectionFailed("x"),
        DeadlineExceeded("x"),
        DeadlineExceeded("x", status=408),
        APIError("x", status=409),
        EmptyResponse("x"),
        MalformedResponse("x"),
    ],
)
def test_what_may_pass_is_tried_again(run, ask, error):
    """The one retry loop covers everything that can help, and says how often it asked."""
    model, inner, sleeps = retrying([error, error, "fine"])
    completion = run(model.complete(ask()))
    assert (completion.text, completion.attempts, len(inner.requests)) == ("fine", 3, 3)
    assert 0 <= sleeps.all[0] <= 0.5
    assert 0 <= sleeps.all[1] <= 1.0


def test_the_final_error_says_how_often_it_was_tried(run, ask):
    """Somebody reading the log must see that it was no single hiccup."""
    model, inner, _ = retrying([ServerFailed("x", status=500)] * 4, RetryPolicy(max_attempts=4))
    with pytest.raises(ServerFailed) as caught:
        run(model.complete(ask()))
    assert len(inner.requests) == 4
    assert any("4 attempts" in note for note in caught.value.__notes__)


def test_answers_that_are_paid_for_are_asked_for_less_often(run, ask):
    """Malformed answers cost money each time."""
    model, inner, _ = retrying([MalformedResponse("x")] * 9)
    with pytest.raises(MalformedResponse):
        run(model.complete(ask()))
    assert len(inner.requests) == RetryPolicy().answer_attempts


def test_attempts_that_gave_no_answer_take_none_from_those_that_are_paid_for(run, ask):
    """Two refusals of a busy endpoint left the first malformed answer after them without a second attempt."""
    busy = [RateLimited("x", status=429), ServerFailed("x", status=500)]
    model, inner, _ = retrying([*busy, MalformedResponse("x"), "fine"])
    assert run(model.complete(ask())).text == "fine"
    assert len(inner.requests) == 4
    model, inner, _ = retrying([*busy, *[EmptyResponse("x")] * 9])
    with pytest.raises(EmptyResponse):
        run(model.complete(ask()))
    assert len(inner.requests) == 2 + RetryPolicy().answer_attempts
    model, inner, _ = retrying([*busy * 2, *[EmptyResponse("x")] * 9])
    with pytest.raises(EmptyResponse):
        run(model.complete(ask()))
    assert len(inner.requests) == RetryPolicy().max_attempts


def test_retry_after_is_obeyed_up_to_its_cap(run, ask):
    """The endpoint knows better than our backoff, within reason."""
    errors = [RateLimited("x", status=429, retry_after=7.5), RateLimited("x", status=429, retry_after=9999)]
    model, _, sleeps = retrying([*errors, "fine"], RetryPolicy(max_retry_after=20))
    run(model.complete(ask()))
    assert sleeps.all == [7.5, 20]


def test_no_attempt_begins_after_the_total_deadline(run, ask):
    """A dead endpoint ends the call in bounded time."""
    model, inner, sleeps = retrying([RateLimited("x", status=429, retry_after=30)] * 9, RetryPolicy(deadline=70))
    with pytest.raises(RateLimited) as caught:
        run(model.complete(ask()))
    assert sleeps.all == [30, 30]
    assert len(inner.requests) == 3
    assert any("deadline" in note for note in caught.value.__notes__)


def test_what_failed_attempts_used_is_in_the_sum(run, ask):
    """Money spent on answers that were thrown away is not lost to the books."""
    bad = Completion(text=" ", usage=Usage(output_tokens=3, calls=1))
    good = Completion(text="fine", usage=Usage(output_tokens=4, calls=1))

    async def no_sleep(seconds):
        pass

    assert run(Retry(Check(ScriptedModel([bad, good])), sleep=no_sleep).complete(ask())).usage.output_tokens == 7
    with pytest.raises(EmptyResponse) as caught:
        run(Retry(Check(ScriptedModel([bad] * 3)), sleep=no_sleep).complete(ask()))
    assert usage_of(caught.value) == Usage(output_tokens=9, calls=3)


def test_what_failed_attempts_may_have_used_is_told(run, ask):
    """The worst case of those whose cost nobody knows; a refusal is free, and an answer says what it used."""
    lost, refused = ConnectionFailed("it broke"), RateLimited("too many", status=429)
    quick = RetryPolicy(base=0, cap=0, max_attempts=4)

    def told(answers, limit):
        model = resolve(ScriptedModel(answers), policy=quick)

        async def main():
            with budget(calls=limit, tokens=10**6) as account:
                try:
                    found = await model.complete(ask())
                except ModelError as error:
                    found = error
            return type(found).__name__, found.unknown, account.unknown

        name, own, held = run(main())
        assert (own or Usage(dollars=0.0)) == held
        return name, held.calls

    assert told([lost, refused, lost, "fine"], 9) == ("Completion", 2)
    assert told([refused, "fine"], 9) == ("Completion", 0)
    assert told([lost, lost, lost, lost], 9) == ("ConnectionFailed", 4)
    assert told([lost, lost, lost], 2) == ("BudgetExceeded", 2)


EMPTY = Completion(text=" ", usage=Usage(output_tokens=3, calls=1))


def test_a_stop_in_the_pause_keeps_what_was_paid_before(run, ask):
    """The request that the stop holds back is free, those before it were not."""

    async def main():
        async def until_stopped(seconds):
            stop.set()
            await asyncio.sleep(60)

        with Stop() as stop, meter() as m, pytest.raises(Stopped) as caught:
            await Metered(Retry(Check(ScriptedModel([EMPTY])), sleep=until_stopped)).complete(ask())
        return caught.value, m

    error, m = run(main())
    assert usage_of(error) == m.total == EMPTY.usage


@pytest.mark.parametrize("end", ["cancelled", "bug"])
def test_what_ends_a_further_attempt_keeps_what_was_paid_before(run, ask, end):
    """Neither says by itself what it cost; meter and journal must agree with the budget."""
    asked, seen = [], []

    async def answer(request):
        asked.append(request)
        if len(asked) == 1:
            return EMPTY
        if end == "bug":
            raise TypeError("bug")
        return await asyncio.sleep(60)

    async def main():
        model = resolve(FunctionModel(answer), policy=RetryPolicy(base=0))
        with budget(calls=9) as b, meter() as m, observe(seen.append):
            task = asyncio.ensure_future(model.complete(ask()))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return b, m

    b, m = run(main())
    assert m.total == b.spent == EMPTY.usage
    assert [usage_of(record.error) for record in seen] == [EMPTY.usage]
    assert (m.failed, m.in_flight) == (int(end == "bug"), 0)


def test_a_bug_is_not_retried(run, ask):
    """Only errors of the model family are weather; a TypeError is a bug."""
    model, inner, _ = retrying([TypeError("bug"), "never"])
    with pytest.raises(TypeError):
        run(model.complete(ask()))
    assert len(inner.requests) == 1


@given(st.integers(1, 200), st.one_of(st.none(), st.floats(0, 1e6)), st.integers())
def test_waits_are_never_longer_than_the_caps(attempt, asked, seed):
    """Whatever the attempt and whatever the endpoint says, the wait is bounded."""
    policy = RetryPolicy()
    wait = policy.wait(attempt, asked, random.Random(seed))
    assert 0 <= wait <= max(policy.cap, policy.max_retry_after)
    assert wait >= min(asked or 0.0, policy.max_retry_after)


@pytest.mark.parametrize("wrong", [{"max_attempts": 0}, {"base": -1}, {"call_deadline": 0}])
def test_a_policy_that_makes_no_sense_is_refused(wrong):
    """A typo must not turn retries off, or into a busy loop."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RetryPolicy(**wrong)


def test_an_end_that_was_paid_for_itself_adds_to_what_came_before(run, ask):
    """A model of one's own, or a Fallback inside, knows what its last try took; all of it was paid."""
    down = ServerFailed("x", status=500)
    down.usage = Usage(calls=1, output_tokens=5)
    end = mark(KeyError("mine"), usage=Usage(calls=1, output_tokens=3))
    with pytest.raises(KeyError) as caught:
        run(Retry(ScriptedModel([down, end])).complete(ask()))
    assert usage_of(caught.value) == Usage(calls=2, output_tokens=8)
