import asyncio

import pytest

from textgrad_engine.errors import AuthenticationFailed, QuotaExhausted, RateLimited
from textgrad_engine.llm import Limit
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
