import asyncio
import random
import time

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
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    Stopped,
    TruncatedResponse,
)
from textgrad_engine.llm import (
    Check,
    Completion,
    Deadline,
    Metered,
    Retry,
    RetryPolicy,
    Stop,
    Usage,
    budget,
    meter,
    observe,
    on_token,
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


def retrying(answers, policy=None, seed=0):
    sleeps = Sleeps()
    model = ScriptedModel(answers)
    return Retry(model, policy, clock=sleeps.clock, sleep=sleeps, rng=random.Random(seed)), model, sleeps


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


def test_a_call_that_hangs_is_given_up(run, ask):
    """The read timeout of the SDK starts anew with each byte; the wall deadline does not."""
    model = Deadline(FunctionModel(lambda request: "late", latency=1000), 30)

    async def main():
        with pytest.raises(DeadlineExceeded, match="30 s"):
            await model.complete(ask())
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(30)


class OneAtATime(ScriptedModel):
    """A server of one's own: it takes a call when the one before it is answered."""

    def __init__(self, seconds):
        super().__init__([])
        self.seconds = list(seconds)
        self.turn = asyncio.Lock()

    async def complete(self, request):
        async with self.turn:
            await asyncio.sleep(self.seconds.pop(0))
        return Completion(text="there", finish_reason="stop")


def test_a_server_that_takes_one_call_at_a_time_is_waited_for(run, ask):
    """Sixty-four calls of twenty seconds are 21 minutes; none of them is late, as each has its turn for twenty."""
    model = Deadline(OneAtATime([20] * 64), 30)

    async def main():
        answers = await asyncio.gather(*(model.complete(ask()) for _ in range(64)))
        return [answer.text for answer in answers], asyncio.get_running_loop().time()

    assert run(main()) == (["there"] * 64, pytest.approx(64 * 20))


def test_calls_that_nobody_answers_are_told_of(run, ask, caplog):
    """After half a minute, and again after a minute, with how many wait and for how long; once for all of them."""
    model = Deadline(FunctionModel(lambda request: "late", latency=1000, name="slow"), 100)
    model._where = " at http://localhost:1/v1"
    told = []

    async def main():
        loop = asyncio.get_running_loop()
        calls = [asyncio.ensure_future(model.complete(ask())) for _ in range(8)]
        for seconds in (29, 2, 28, 2, 38):
            await asyncio.sleep(seconds)
            told.append((loop.time(), len(caplog.records)))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert {type(error) for error in run(main())} == {DeadlineExceeded}
    assert told == [(29, 0), (31, 1), (59, 1), (61, 2), (99, 2)]
    assert caplog.messages == [
        f"'slow' at http://localhost:1/v1 has said nothing for {seconds} s, and 8 calls wait for it; one is given up "
        "after 100 s (call_deadline of RetryPolicy, or under [models] in a config), and Ctrl-C ends the run"
        for seconds in (30, 60)
    ]


def test_an_answer_that_is_seen_as_it_comes_is_no_silence(run, ask, caplog):
    """However long it takes."""
    model = Deadline(FunctionModel(lambda request: "late", latency=90, name="slow"), 100)

    async def main():
        with on_token(lambda request, piece: None):
            return (await model.complete(ask())).text

    assert run(main()) == "late"
    assert not caplog.records


def test_who_answers_now_and_then_is_not_told_of(run, ask, caplog):
    """A server that takes a call every twenty seconds is slow; one that takes forty is told of once, not each time."""

    async def main(seconds):
        model = Deadline(OneAtATime([seconds] * 8), 100)
        await asyncio.gather(*(model.complete(ask()) for _ in range(8)))
        await asyncio.sleep(1000)  # nobody asks
        return len(caplog.records)

    assert run(main(20)) == 0
    assert run(main(40)) == 1


def test_a_call_that_hangs_in_its_turn_is_given_up_and_the_next_ones_after_it(run, ask):
    """A server that has stopped answering is not waited for longer than the deadline after its last answer."""
    model = Deadline(OneAtATime([20, 1000]), 30)

    async def main():
        return await asyncio.gather(*(model.complete(ask()) for _ in range(3)), return_exceptions=True), now()

    def now():
        return asyncio.get_running_loop().time()

    (first, second, third), ended = run(main())
    assert first.text == "there"
    assert isinstance(second, DeadlineExceeded)
    assert isinstance(third, DeadlineExceeded)
    assert ended == pytest.approx(20 + 30)


def test_a_call_that_hangs_beside_others_is_given_up(run, ask):
    """Calls that are sent later, and answered, say nothing about one that hangs."""

    class Hangs(ScriptedModel):
        async def complete(self, request):
            first = not self.requests
            self.requests.append(request)
            await asyncio.sleep(1000 if first else 1)
            return Completion(text="there", finish_reason="stop")

    model = Deadline(Hangs([]), 30)

    async def main():
        hangs = asyncio.ensure_future(model.complete(ask()))
        await asyncio.sleep(0)  # it is sent
        for _ in range(29):
            await model.complete(ask())
        with pytest.raises(DeadlineExceeded, match="call_deadline under"):
            await hangs
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(30)


def test_a_refusal_is_the_end_of_a_turn_and_a_timeout_is_none(run, ask):
    """An endpoint that refuses one call has come to the next; one that was given up may still be worked at."""

    async def ends(error):
        class Refuses(ScriptedModel):
            async def complete(self, request):
                self.requests.append(request)
                if len(self.requests) == 1:
                    await asyncio.sleep(20)
                    raise error
                return await asyncio.get_running_loop().create_future()

        model = Deadline(Refuses([]), 30)
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(model.complete(ask()) for _ in range(2)), return_exceptions=True)
        return asyncio.get_running_loop().time() - began

    assert run(ends(ServerFailed("x", status=500))) == pytest.approx(50)
    assert run(ends(ConnectionFailed("x"))) == pytest.approx(30)


def test_the_time_of_a_deadline_is_that_of_the_loop(run, ask):
    """One clock for all waits: what a busy machine takes beside it neither shortens nor lengthens the limit."""

    class Busy(ScriptedModel):
        async def complete(self, request):
            until = time.monotonic() + 5e-3
            while time.monotonic() < until:
                pass
            return await asyncio.get_running_loop().create_future()

    async def main():
        with pytest.raises(DeadlineExceeded):
            await Deadline(Busy([]), 30).complete(ask())
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(30)


def test_the_time_before_the_first_wait_counts(run, ask):
    """A model that blocks is late when it first lets go."""

    class Blocks(ScriptedModel):
        async def complete(self, request):
            until = asyncio.get_running_loop().time() + 1e-3
            while asyncio.get_running_loop().time() < until:
                pass
            await asyncio.sleep(0)
            await asyncio.get_running_loop().create_future()

    async def main():
        with pytest.raises(DeadlineExceeded):
            await Deadline(Blocks([]), 1e-4).complete(ask())

    asyncio.run(main())


def test_what_a_model_says_when_it_is_given_up_counts(run, ask):
    """A model may end its call in order, with an answer or another error, and may take its time for it."""

    class Late(ScriptedModel):
        async def complete(self, request):
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                await asyncio.sleep(self.pause)
                return await super().complete(request)

    for pause in (0, 1):
        model = Late(["half", KeyError("mine")])
        model.pause = pause

        async def main(model=model):
            answer = await Deadline(model, 30).complete(ask())
            with pytest.raises(KeyError, match="mine"):
                await Deadline(model, 30).complete(ask())
            return answer.text, asyncio.get_running_loop().time()

        assert run(main()) == ("half", pytest.approx(60 + 2 * pause))


def test_a_model_may_give_any_awaitable(run, ask):
    """`complete` need not be a coroutine function."""

    class Hands(ScriptedModel):
        def complete(self, request):
            return asyncio.ensure_future(super().complete(request))

    async def main():
        return await Deadline(Hands(["there"]), 30).complete(ask())

    assert run(main()).text == "there"


def test_a_timeout_of_the_model_s_own_is_not_taken_for_ours(run, ask):
    """A TimeoutError that a model raises is its own matter."""
    with pytest.raises(TimeoutError, match="mine"):
        run(Deadline(ScriptedModel([TimeoutError("mine")]), 30).complete(ask()))


def test_an_end_that_was_paid_for_itself_adds_to_what_came_before(run, ask):
    """A model of one's own, or a Fallback inside, knows what its last try took; all of it was paid."""
    down = ServerFailed("x", status=500)
    down.usage = Usage(calls=1, output_tokens=5)
    end = mark(KeyError("mine"), usage=Usage(calls=1, output_tokens=3))
    with pytest.raises(KeyError) as caught:
        run(Retry(ScriptedModel([down, end])).complete(ask()))
    assert usage_of(caught.value) == Usage(calls=2, output_tokens=8)
