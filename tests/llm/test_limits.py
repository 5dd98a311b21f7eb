import asyncio
import itertools
import logging

import pytest

from textgrad_engine.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    DeadlineExceeded,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    TruncatedResponse,
)
from textgrad_engine.llm import Completion, GenerateConfig, Limit, Retry, Usage
from textgrad_engine.llm.rates import hear
from textgrad_engine.testing import FunctionModel


def now():
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("kind", [AuthenticationFailed, QuotaExhausted])
def test_after_a_refused_key_only_those_in_flight_reach_the_server(run, ask, kind):
    """64 queued calls with a wrong key must not become 64 refused requests."""
    answers = {"bad": True}

    async def answer(request):
        await asyncio.sleep(1)
        if answers["bad"]:
            raise kind("no", status=401)
        return "ok"

    model = FunctionModel(answer)

    async def main():
        limited = Limit(model, 8)
        results = await asyncio.gather(*(limited.complete(ask()) for _ in range(64)), return_exceptions=True)
        sent = len(model.requests)
        answers["bad"] = False
        return results, sent, await limited.complete(ask())

    results, sent, later = run(main())
    assert sent == 8
    assert all(type(result) is kind for result in results)
    assert len({id(result) for result in results}) == 64
    assert later.text == "ok"


def refusing(setting, wrong=lambda config: True, **defaults):
    """A model that takes a second, and refuses a setting of requests where it is wrong."""

    async def answer(request):
        await asyncio.sleep(1)
        if wrong(request.config):
            error = BadRequest("no", status=400)
            error.setting = setting
            raise error
        return "ok"

    model = FunctionModel(answer)
    model.defaults = GenerateConfig(**defaults)
    return model


def asked_of(run, model, most, *requests):
    """What a `Limit` gives for requests at the same time ("" for a failure), what failed, and how many were sent."""

    async def main():
        limited = Limit(model, most)
        return await asyncio.gather(*map(limited.complete, requests), return_exceptions=True)

    results = run(main())
    failed = [each for each in results if isinstance(each, Exception)]
    return [getattr(each, "text", "") for each in results], failed, len(model.requests)


def test_where_a_model_is_not_there_only_those_in_flight_reach_the_server(run, ask):
    """600 examples made 600 requests, each refused in the same words."""
    _, failed, sent = asked_of(run, refusing("model"), 8, *[ask()] * 64)
    assert sent == 8
    assert [type(each) for each in failed] == [BadRequest] * 64
    assert [bool(getattr(each, "__notes__", ())) for each in failed] == [False] * 8 + [True] * 56


def of_replies(replies):
    """A model that takes a second; of each request the reply is the next one, the last of them for all others."""
    replies = iter(replies)
    last = "ok"

    async def answer(request):
        nonlocal last
        last = next(replies, last)
        said = last
        await asyncio.sleep(1)
        if isinstance(said, str):
            return said
        raise said()

    return FunctionModel(answer)


def unserved():
    error = BadRequest("status 404: page not found; check the model's name and the base_url", status=404)
    error.unserved = True
    error.add_note("it was asked at http://a/v1/chat/completions")
    return error


def test_where_nothing_is_at_an_address_what_is_queued_fails_after_eight_refusals(run, ask):
    """600 examples made 600 refusals of a base_url that lacks its /v1."""
    _, failed, sent = asked_of(run, of_replies([unserved]), 4, *[ask()] * 64)
    assert sent <= 8 + 3
    assert [str(each) for each in failed] == [str(unserved())] * 64
    assert all("http://a/v1/chat/completions" in each.__notes__[0] for each in failed)


@pytest.mark.parametrize(
    "other", ["ok", lambda: ServerFailed("restarting", status=503), lambda: TruncatedResponse("cut"), BadRequest]
)
def test_a_gateway_that_has_said_anything_else_may_find_its_way_again(run, ask, other):
    """It may give 404 for what is behind it while that is restarted."""
    other = (lambda: BadRequest("no images", status=404)) if other is BadRequest else other
    for at in (0, 7):
        replies = [unserved] * at + [other] + [unserved] * 12 + ["ok"]
        answers, _, sent = asked_of(run, of_replies(replies), 4, *[ask()] * 64)
        assert sent == 64
        assert answers.count("ok") == 64 - len(replies) + 1 + (other == "ok")


def test_an_address_where_nothing_was_is_asked_again(run, ask):
    """One by one at first, as nobody knows; a notebook goes on when the server is up."""

    async def main():
        limited = Limit(of_replies([unserved] * 10 + ["ok"]), 8)
        first = await asyncio.gather(*(limited.complete(ask()) for _ in range(9)), return_exceptions=True)
        second = await asyncio.gather(*(limited.complete(ask()) for _ in range(9)), return_exceptions=True)
        third = await asyncio.gather(*(limited.complete(ask()) for _ in range(9)), return_exceptions=True)
        return [sum(isinstance(each, BadRequest) for each in some) for some in (first, second, third)]

    assert run(main()) == [9, 9, 0]


def test_after_a_model_that_is_not_there_one_call_at_a_time_asks_for_it(run, ask):
    """As after a key that is refused: the next 64 examples are one request more."""
    model = refusing("model")

    async def main():
        limited = Limit(model, 8)
        for _ in range(2):
            await asyncio.gather(*(limited.complete(ask()) for _ in range(64)), return_exceptions=True)

    run(main())
    assert len(model.requests) == 8 + 1


def test_the_longest_answer_is_one_setting_by_whichever_name_it_is_refused(run, ask):
    """Endpoints call it `max_completion_tokens`, and requests have it as `max_tokens`."""
    model = refusing("max_completion_tokens", lambda own: own.max_tokens == 9)
    config = GenerateConfig(max_tokens=9)
    answers, _, sent = asked_of(run, model, 1, ask(config=config), ask(config=config), ask())
    assert (answers, sent) == (["", "", "ok"], 2)


@pytest.mark.parametrize("given", [{"temperature": 0.2}, {"extra": {"top_k": 5}}])
def test_a_setting_that_is_refused_fails_what_is_queued_with_it_and_nothing_else(run, ask, given):
    """A critic that is asked without it is answered."""
    config = GenerateConfig(**given)
    model = refusing(next(iter(config.extra or given)), lambda own: own == config)
    answers, _, sent = asked_of(run, model, 8, *[ask(), ask(config=config)] * 32)
    assert answers == ["ok", ""] * 32
    assert sent <= 32 + 8


def test_a_setting_of_the_model_is_one_of_each_request_that_has_no_other(run, ask):
    """As of `llm.resolve(name, temperature=...)`, or of [models.config]."""
    model = refusing("temperature", lambda own: own.temperature is None, temperature=0.2)
    answers, _, sent = asked_of(run, model, 1, ask(), ask(), ask(config=GenerateConfig(temperature=1.0)), ask())
    assert answers == ["", "", "ok", ""]
    assert sent == 2


@pytest.mark.parametrize("setting", ["", "temperature", "messages[0].role"])
def test_a_refusal_of_what_others_do_not_have_fails_nobody_else(run, ask, setting):
    """A filter, a context that is too small for one, or a setting that none of them has."""
    _, _, sent = asked_of(run, refusing(setting), 2, *[ask()] * 9)
    assert sent == 9


def test_of_a_failed_queue_each_call_has_notes_of_its_own(run, ask):
    """What is noted on one error on its way up says nothing about the others."""

    async def answer(request):
        await asyncio.sleep(1)
        error = AuthenticationFailed("no", status=401)
        error.add_note("by the proxy")
        raise error

    async def main():
        limited = Limit(FunctionModel(answer), 1)
        return await asyncio.gather(*(limited.complete(ask()) for _ in range(3)), return_exceptions=True)

    sent, *queued = run(main())
    assert sent.__notes__ == ["by the proxy"]
    assert [len(error.__notes__) for error in queued] == [2, 2]
    assert [error.sent for error in (sent, *queued)] == [None, False, False]


def test_a_429_pauses_everybody(run, ask):
    """Retry-After is the endpoint's word, not one worker's."""
    sent = []

    async def answer(request):
        sent.append((request.messages[0].content, now()))
        if len(sent) == 1:
            raise RateLimited("slow down", status=429, retry_after=10)
        return "ok"

    async def main():
        limited = Limit(FunctionModel(answer), 1)
        return await asyncio.gather(*(limited.complete(ask(str(i))) for i in range(3)), return_exceptions=True)

    first, *_rest = run(main())
    assert isinstance(first, RateLimited)
    assert sent == [("0", 0), ("1", pytest.approx(10)), ("2", pytest.approx(10))]


def test_a_pause_is_no_longer_than_allowed(run, ask):
    """An endpoint that says 'in a day' does not hold a run for a day."""

    async def main():
        failing = iter([RateLimited("x", status=429, retry_after=86400)])

        def answer(request):
            for error in failing:
                raise error
            return "ok"

        limited = Limit(FunctionModel(answer), max_pause=60)
        with pytest.raises(RateLimited):
            await limited.complete(ask())
        await limited.complete(ask())
        return now()

    assert run(main()) == pytest.approx(60)


def test_calls_go_out_in_order_and_never_too_many(run, ask):
    """First come, first served; the limit holds."""
    model = FunctionModel(lambda request: "ok", latency=1)

    async def main():
        limited = Limit(model, 3)
        await asyncio.gather(*(limited.complete(ask(str(i))) for i in range(10)))
        return now()

    assert run(main()) == pytest.approx(4)
    assert model.peak == 3
    assert [request.messages[0].content for request in model.requests] == [str(i) for i in range(10)]


def test_cancelled_calls_give_their_place_back(run, ask):
    """A place lost to a cancelled call would stop the run for ever."""

    async def main():
        model = FunctionModel(lambda request: "ok", latency=1)
        limited = Limit(model, 1)
        tasks = [asyncio.ensure_future(limited.complete(ask())) for _ in range(4)]
        await asyncio.sleep(0.5)
        tasks[1].cancel()  # in the queue
        tasks[0].cancel()  # in flight; its place goes to tasks[2] ...
        await asyncio.sleep(0)
        tasks[2].cancel()  # ... which may be cancelled before it notices
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await limited.complete(ask())
        return results

    results = run(main())
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [True, True, True, False]


def test_one_model_works_on_one_loop_after_the_other(run, ask):
    """State of a closed loop must not leak into the next (asyncio.run twice, a forked child)."""
    limited = Limit(FunctionModel(lambda request: "ok", latency=1), 1)

    async def leave_one_behind():
        task = asyncio.ensure_future(limited.complete(ask()))
        await asyncio.sleep(0)
        assert not task.done()

    run(leave_one_behind())
    assert run(limited.complete(ask())).text == "ok"


def test_a_limit_below_one_is_refused():
    """Zero would wait for ever."""
    with pytest.raises(ValueError, match="at least 1"):
        Limit(FunctionModel(lambda request: "x"), 0)


@pytest.mark.parametrize("wrong", [{"start": 9}, {"floor": 0}, {"floor": 9}, {"requests_per_minute": 0}])
def test_limits_that_contradict_each_other_are_refused(wrong):
    """Before the first call, not in the middle of a run."""
    with pytest.raises(ValueError, match=r"must"):
        Limit(FunctionModel(lambda request: "x"), 8, **wrong)


def test_a_429_without_a_time_slows_everybody(run, ask):
    """Half as much in flight, and a short pause for all; the pause doubles while nothing is answered."""
    sent = []

    async def answer(request):
        sent.append(now())
        if len(sent) <= 3:
            raise RateLimited("slow down", status=429)
        await asyncio.sleep(1)
        return "ok"

    async def main():
        limited = Limit(FunctionModel(answer), 1)
        await asyncio.gather(*(limited.complete(ask()) for _ in range(5)), return_exceptions=True)

    run(main())
    assert sent == pytest.approx([0, 0.25, 0.75, 1.75, 2.75])


def test_many_429s_of_one_moment_are_one_cut(run, ask):
    """64 workers that meet the same wall must not bring the endpoint to a crawl."""
    model_at = {"bad": True}

    async def answer(request):
        bad = model_at["bad"]
        await asyncio.sleep(1)
        if bad:
            raise RateLimited("slow down", status=429)
        return "ok"

    async def main():
        model = FunctionModel(answer)
        limited = Limit(model, 16)
        await asyncio.gather(*(limited.complete(ask()) for _ in range(16)), return_exceptions=True)
        model_at["bad"], model.peak = False, 0
        await asyncio.gather(*(limited.complete(ask()) for _ in range(8)))
        return model.peak, now()

    assert run(main()) == (8, pytest.approx(2.25))  # and one pause, of a quarter of a second


@pytest.mark.parametrize("error", [DeadlineExceeded("x"), ServerFailed("x", status=503), ServerFailed("x", status=529)])
def test_timeouts_and_overload_narrow_the_window_and_success_widens_it(run, ask, error):
    """It finds what the endpoint can take, down and up again."""
    script = iter([error])

    async def answer(request):
        await asyncio.sleep(1)
        for failure in script:
            raise failure
        return "ok"

    async def main():
        model = FunctionModel(answer)
        limited = Limit(model, 32)
        await asyncio.gather(limited.complete(ask()), return_exceptions=True)
        await asyncio.gather(*(limited.complete(ask()) for _ in range(100)))
        narrow, model.peak = model.peak, 0
        for _ in range(10):
            await asyncio.gather(*(limited.complete(ask()) for _ in range(100)))
        return narrow, model.peak

    narrow, wide = run(main())
    assert 16 < narrow < 24
    assert wide == 32


def test_a_broken_server_says_nothing_about_load(run, ask):
    """A 500 for one request is no reason to send fewer of the others."""
    script = iter([ServerFailed("x", status=500)] * 20)

    async def answer(request):
        await asyncio.sleep(1)
        for failure in script:
            raise failure
        return "ok"

    async def main():
        model = FunctionModel(answer)
        limited = Limit(model, 32)
        await asyncio.gather(*(limited.complete(ask()) for _ in range(100)), return_exceptions=True)
        return model.peak, now()

    assert run(main()) == (32, pytest.approx(4))


def test_a_backward_pass_is_not_starved_by_a_long_evaluation(run, ask):
    """Purposes take turns; within one, first come first served."""
    order = []

    async def answer(request):
        order.append((request.purpose, request.messages[0].content))
        await asyncio.sleep(1)
        return "ok"

    async def main():
        limited = Limit(FunctionModel(answer), 2)
        many = [asyncio.ensure_future(limited.complete(ask(str(i)))) for i in range(50)]
        await asyncio.sleep(0.5)
        few = [limited.complete(ask(str(i), purpose="backward")) for i in range(3)]
        await asyncio.gather(*few)
        at = now()
        await asyncio.gather(*many)
        return at

    assert run(main()) == pytest.approx(4)
    assert [number for purpose, number in order if purpose == "forward"] == [str(i) for i in range(50)]
    assert [number for purpose, number in order if purpose == "backward"] == ["0", "1", "2"]


def test_requests_per_minute_hold(run, ask):
    """Twelve at most in any minute, however many are asked for at once."""
    sent = []

    async def main():
        limited = Limit(FunctionModel(lambda request: sent.append(now()) or "ok"), 64, requests_per_minute=12)
        await asyncio.gather(*(limited.complete(ask()) for _ in range(30)))

    run(main())
    for first in sent:
        assert sum(first <= moment < first + 59.99 for moment in sent) <= 12
    assert sent[-1] == pytest.approx(29 * 5)


def test_tokens_per_minute_hold_and_what_was_not_used_comes_back(run, ask):
    """A call counts with its max_tokens until it is answered."""
    sent = []

    async def answer(request):
        sent.append(now())
        await asyncio.sleep(1)
        return Completion(text="ok", usage=Usage(input_tokens=10, output_tokens=10, calls=1))

    async def main():
        limited = Limit(FunctionModel(answer), 64, tokens_per_minute=1000)
        request = ask(config=GenerateConfig(max_tokens=90))
        await asyncio.gather(*(limited.complete(request) for _ in range(5)))

    run(main())
    assert sent[0] == 0
    assert 0.9 < sent[1] <= 1.1  # not the six seconds after which 90 tokens would have come back by themselves
    assert sent[-1] < 10


def test_a_call_without_max_tokens_counts_with_what_answers_usually_have(run, ask):
    """Else many would be sent at once that all come to more than a minute allows."""
    sent = []

    async def answer(request):
        sent.append(now())
        await asyncio.sleep(60)
        return Completion(text="ok", usage=Usage(input_tokens=10, output_tokens=190, calls=1))

    async def main():
        limited = Limit(FunctionModel(answer), 64, tokens_per_minute=1000)
        for _ in range(30):
            await limited.complete(ask())
        await asyncio.gather(*(limited.complete(ask()) for _ in range(4)))

    run(main())
    assert all(later - before > 10 for before, later in itertools.pairwise(sent[-4:]))  # 200 tokens take 12 seconds


@pytest.mark.parametrize("name", ["{}-requests", "{}-requests-day", "{}-req-minute", "requests-{}"])
def test_what_an_endpoint_says_it_has_left_is_kept_to(run, ask, name):
    """Its headers are read where the adapter hears them, under the names of several providers."""
    whose = "anthropic" if name == "requests-{}" else "x"
    sent = []

    async def answer(request):
        sent.append(now())
        left = "1" if len(sent) == 1 else "0"
        hear.get()(
            {
                f"{whose}-ratelimit-{name.format(word)}": value
                for word, value in (("limit", "10"), ("remaining", left), ("reset", "20s"))
            }
        )
        return "ok"

    async def main():
        limited = Limit(FunctionModel(answer), 1)
        await asyncio.gather(*(limited.complete(ask()) for _ in range(4)))

    run(main())
    assert sent == pytest.approx([0, 0, 2, 4])


def test_an_endpoint_that_says_nothing_is_left_is_asked_again_after_the_longest_pause(run, ask, caplog):
    """A day's quota in the headers must not stop a run for hours without a word; one call at a time finds out."""
    sent = []

    async def answer(request):
        sent.append(now())
        await asyncio.sleep(1)
        hear.get()(
            {
                "x-ratelimit-limit-requests": "100",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "86400s",
            }
        )
        return "ok"

    async def main():
        limited = Limit(FunctionModel(answer, name="far"), 8, max_pause=60)
        await limited.complete(ask())
        await asyncio.gather(*(limited.complete(ask()) for _ in range(3)))

    with caplog.at_level(logging.WARNING):
        run(main())
    assert sent == pytest.approx([0, 61, 122, 183])
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        "'far' is asked again in 60 s: the x-ratelimit headers of its answers say that the account's limit is used up "
        "until then"
    )


def test_after_a_refused_key_calls_go_out_one_by_one_until_one_succeeds(run, ask):
    """Calls that are asked for later must not become a flood of refused requests either."""
    good = {"key": False}

    async def answer(request):
        await asyncio.sleep(1)
        if not good["key"]:
            raise AuthenticationFailed("no", status=401)
        return "ok"

    async def main():
        model = FunctionModel(answer)
        limited = Limit(model, 8)
        for _ in range(3):
            await asyncio.gather(*(limited.complete(ask()) for _ in range(64)), return_exceptions=True)
        refused = len(model.requests)
        good["key"] = True
        await asyncio.gather(*(limited.complete(ask()) for _ in range(64)))
        return refused, model.peak, now()

    assert run(main()) == (8 + 1 + 1, 8, pytest.approx(3 + 1 + 8))


def rolling(seconds, allowed):
    """An endpoint that allows so many calls at once, and another one each `seconds` seconds."""
    times = []

    async def answer(request):
        await asyncio.sleep(0.1)
        back = now() // seconds + allowed
        if len(times) >= back:
            raise QuotaExhausted("a day's", status=429, retry_after=seconds - now() % seconds)
        times.append(now())
        return "ok"

    return FunctionModel(answer)


def test_a_days_quota_that_rolls_is_waited_for_by_all_and_then_taken_up_as_it_comes_back(run, ask, caplog):
    """OpenAI's limit of 10,000 requests a day is back with one of them after 8.6 s; the run had ended before."""

    async def main():
        model = rolling(8.64, 10)
        stack = Retry(Limit(model, 16, max_quota_wait=300))
        answers = await asyncio.gather(*(stack.complete(ask()) for _ in range(30)))
        return [each.text for each in answers], len(model.requests), now()

    with caplog.at_level(logging.WARNING):
        answers, sent, ended = run(main())
    assert answers == ["ok"] * 30
    assert 20 * 8.64 <= ended < 30 * 8.64
    assert sent < 50  # the six that were under way were refused, and hardly any after them
    (said,) = [record.getMessage() for record in caplog.records]
    assert "is asked again in 9 s" in said
    assert "the account's daily limit is used up" in said


def test_a_quota_that_is_back_too_late_fails_what_is_queued(run, ask):
    """Nobody waits hours without a word."""

    async def main():
        model = rolling(900, 2)
        limited = Limit(model, 4, max_quota_wait=300)
        return await asyncio.gather(*(limited.complete(ask()) for _ in range(30)), return_exceptions=True), model

    results, model = run(main())
    assert sum(isinstance(result, QuotaExhausted) for result in results) == 28
    assert len(model.requests) < 12


@pytest.mark.parametrize("seconds", [5, 60, 290])
def test_a_quota_of_which_nothing_comes_back_fails_what_is_queued(run, ask, seconds):
    """Somebody else may use up all that comes back: a thousand calls found that out one by one, for days."""

    async def answer(request):
        await asyncio.sleep(0.1)
        raise QuotaExhausted("a day's", status=429, retry_after=seconds)

    async def main():
        model = FunctionModel(answer)
        stack = Retry(Limit(model, 16, max_quota_wait=300))
        asked = await asyncio.gather(*(stack.complete(ask()) for _ in range(1000)), return_exceptions=True)
        return asked, len(model.requests), now()

    answers, sent, ended = run(main())
    assert all(isinstance(each, QuotaExhausted) for each in answers)
    assert 300 < ended < 1000
    assert sent < 100


@pytest.mark.parametrize("calls", [1, 300])
def test_an_endpoint_that_never_comes_is_given_up_however_many_calls_wait_for_it(run, ask, calls):
    """A server that says that it loads its model is asked every 15 s, by one call: 300 took two hours to fail."""

    async def main():
        def answer(request):
            raise ServerFailed("Loading model", status=503, retry_after=15)

        stack = Retry(Limit(FunctionModel(answer), 32))
        results = await asyncio.gather(*(stack.complete(ask()) for _ in range(calls)), return_exceptions=True)
        return results, now()

    results, ended = run(main())
    assert {type(result) for result in results} == {ServerFailed}
    assert 60 < ended < 500


def test_an_endpoint_that_comes_after_a_while_answers_all_that_wait(run, ask):
    """Four minutes, as a large model takes from a slow disk; and again later, for as long."""

    unsent = []

    async def main():
        def answer(request):
            if now() % 1000 < 240:
                raise ServerFailed("Loading model", status=503, retry_after=15)
            return "ok"

        limited = Limit(FunctionModel(answer), 1)

        async def persistent():
            while True:
                try:
                    return await limited.complete(ask())
                except ServerFailed as error:
                    unsent.append(error.sent is False)

        async def all_of_them():
            return [each.text for each in await asyncio.gather(*(persistent() for _ in range(20)))]

        first = await all_of_them()
        await asyncio.sleep(1000 - now())
        return first + await all_of_them()

    assert run(main()) == ["ok"] * 40
    assert not any(unsent), "it was given up in the queue"


def test_the_log_says_at_once_why_a_long_pause_is_made(run, ask, caplog):
    """A run stood still for five minutes without a word, as the endpoint had asked for a day."""

    async def main():
        def answer(request):
            raise RateLimited("come back tomorrow", status=429, retry_after=86400)

        with pytest.raises(RateLimited):
            await Limit(FunctionModel(answer, name="far")).complete(ask())

    with caplog.at_level(logging.WARNING):
        run(main())
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "'far' is asked again in 60 s (it wants 86,400 s): come back tomorrow"


@pytest.mark.parametrize(
    "error",
    [
        ServerFailed("out of order", status=500),
        ConnectionFailed("nobody there"),
        RateLimited("not so fast", status=429, retry_after=2),
    ],
)
def test_the_log_tells_of_a_silence_when_it_is_long_and_when_it_is_twice_as_long(run, ask, caplog, error):
    """Not of each refusal, of which a busy endpoint sends hundreds."""
    broken = {"is": True}

    async def main():
        async def answer(request):
            await asyncio.sleep(1)
            if broken["is"]:
                raise error
            return "ok"

        limited = Limit(FunctionModel(answer, name="down"), 1)

        async def refused(until):
            while now() < until:
                with pytest.raises(type(error)):
                    await limited.complete(ask())

        await refused(6)
        assert not caplog.records
        await refused(60)
        first = [record.getMessage() for record in caplog.records]
        broken["is"] = False
        await limited.complete(ask())
        broken["is"] = True
        await refused(now() + 6)
        return first, len(caplog.records)

    with caplog.at_level(logging.WARNING):
        first, in_all = run(main())
    assert len(first) == 3
    assert in_all == 3, "a short one after an answer is not told"
    assert first[0].startswith("'down' has not answered for ")
    assert str(error) in first[0]


def test_a_time_in_which_nobody_asks_is_no_silence(run, ask, caplog):
    """A notebook is left for an hour after a call that failed."""

    async def main():
        async def answer(request):
            raise ConnectionFailed("nobody there")

        limited = Limit(FunctionModel(answer, name="down"), 1)
        for _ in range(3):
            with pytest.raises(ConnectionFailed):
                await limited.complete(ask())
            await asyncio.sleep(3600)

    with caplog.at_level(logging.WARNING):
        run(main())
    assert not caplog.records


def test_refusals_between_answers_are_not_told(run, ask, caplog):
    """An endpoint that is asked a little too fast answers all the same."""

    async def main():
        limited = Limit(FunctionModel(each_second_one(RateLimited("slow", status=429, retry_after=3))), 1)
        return await asyncio.gather(*(limited.complete(ask()) for _ in range(40)), return_exceptions=True)

    with caplog.at_level(logging.WARNING):
        results = run(main())
    assert sum(isinstance(each, RateLimited) for each in results) == 20
    assert not caplog.records


def test_one_call_that_fails_late_is_no_silence_while_others_are_answered(run, ask, caplog):
    """Of an endpoint that takes a minute for the longest answers, and gives them up."""

    async def main():
        async def answer(request):
            if request.messages[0].text == "long":
                await asyncio.sleep(60)
                raise ServerFailed("took too long", status=504)
            await asyncio.sleep(1)
            return "ok"

        limited = Limit(FunctionModel(answer), 2)
        long = asyncio.create_task(limited.complete(ask("long")))
        while not long.done():
            await limited.complete(ask())
        assert isinstance(long.exception(), ServerFailed)

    with caplog.at_level(logging.WARNING):
        run(main())
    assert not caplog.records


@pytest.mark.parametrize("other", [TruncatedResponse("cut off"), BadRequest("too many images", status=400)])
def test_who_answers_badly_is_not_silent(run, ask, caplog, other):
    """Between such answers it refuses now and then."""

    async def main():
        turns = itertools.count()

        async def answer(request):
            await asyncio.sleep(1)
            raise RateLimited("slow", status=429, retry_after=1) if next(turns) % 8 == 0 else other

        limited = Limit(FunctionModel(answer), 1)
        for _ in range(60):
            with pytest.raises((RateLimited, type(other))):
                await limited.complete(ask())

    with caplog.at_level(logging.WARNING):
        run(main())
    assert not caplog.records


def each_second_one(error):
    turns = itertools.count()

    def answer(request):
        if next(turns) % 2:
            raise error
        return "ok"

    return answer
