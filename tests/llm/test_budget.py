import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine.errors import (
    BadRequest,
    BudgetExceeded,
    ConnectionFailed,
    ServerFailed,
    Stopped,
    UnknownPriceError,
)
from textgrad_engine.llm import Budgeted, Completion, GenerateConfig, Stop, Usage, budget, resolve, set_price
from textgrad_engine.llm.usage import mark
from textgrad_engine.testing import FunctionModel, ScriptedModel


class Priced(FunctionModel):
    free = False


@pytest.fixture
def priced():
    set_price("priced", 1.0, 2.0)
    yield lambda fn, latency=0.0: Priced(fn, name="priced", latency=latency)
    set_price("priced", None)


def used(**fields):
    return Completion(text="ok", usage=Usage(calls=1, dollars=None, **fields))


def test_a_call_that_could_pass_the_limit_is_not_sent(run, ask):
    """The money must not be gone before it is looked at."""
    model = ScriptedModel(["never"])

    async def main():
        with budget(tokens=100):
            await Budgeted(model).complete(ask(config=GenerateConfig(max_tokens=95)))

    with pytest.raises(BudgetExceeded, match="the budget of 100 tokens does not allow the next call: 0 spent"):
        run(main())
    assert model.requests == []


def test_an_unknown_price_under_a_dollar_limit_is_an_error_before_sending(run, ask):
    """Unknown models costing $0: a defect of earlier systems."""
    model = Priced(lambda request: "x", name="nobody-knows-this-model")

    async def main():
        with budget(dollars=1):
            await Budgeted(model).complete(ask())

    with pytest.raises(UnknownPriceError, match="set_price"):
        run(main())
    assert model.requests == []


@pytest.mark.parametrize("wrong", [{"calls": -1}, {"dollars": float("nan")}, {"tokens": float("inf")}])
def test_a_limit_that_is_no_amount_is_refused(wrong):
    """A typo must not become an unlimited budget."""
    with pytest.raises(ValueError, match=next(iter(wrong))), budget(**wrong):
        pass


def test_the_call_limit_holds_at_any_concurrency(run, ask):
    """Sixty-four at once cannot all see the last free call."""
    model = FunctionModel(lambda request: "x", latency=1)

    async def main():
        with budget(calls=10) as b:
            calls = (resolve(model).complete(ask()) for _ in range(64))
            results = await asyncio.gather(*calls, return_exceptions=True)
        return b, results

    b, results = run(main())
    assert len(model.requests) == b.spent.calls == 10
    assert sum(isinstance(result, BudgetExceeded) for result in results) == 54
    assert b.remaining.calls == 0


def test_a_call_waits_for_others_to_settle_rather_than_fail(run, ask, priced):
    """Worst cases are pessimistic: what does not fit now may fit when the calls in flight turn out cheap."""
    model = priced(lambda request: used(input_tokens=2, output_tokens=1), latency=1)

    async def main():
        request = ask(config=GenerateConfig(max_tokens=40))
        with budget(tokens=100) as b:
            await asyncio.gather(*(Budgeted(model).complete(request) for _ in range(10)))
        return b

    assert run(main()).spent.total_tokens == 30
    assert model.peak == 2


def test_what_failed_at_unknown_cost_stays_held(run, ask):
    """A timeout may have been charged; believing otherwise would pass the limit."""

    async def main():
        with budget(calls=2) as b, pytest.raises(ServerFailed):
            await Budgeted(ScriptedModel([ServerFailed("x", status=500)])).complete(ask())
        return b

    b = run(main())
    assert (b.spent.calls, b.unknown.calls, b.reserved.calls, b.remaining.calls) == (0, 1, 0, 1)


@pytest.mark.parametrize(
    "error",
    [BadRequest("x", status=400), mark(ConnectionFailed("refused"), sent=False), mark(Stopped("x"), sent=False)],
)
def test_what_was_certainly_not_charged_is_given_back(run, ask, error):
    """A refused request costs nothing."""

    async def main():
        with budget(calls=1) as b, pytest.raises(type(error)):
            await Budgeted(ScriptedModel([error])).complete(ask())
        return b

    assert run(main()).remaining.calls == 1


def test_a_cancelled_call_keeps_its_reservation(run, ask):
    """The endpoint may finish, and charge for, what we no longer wait for."""

    async def main():
        with budget(calls=3) as b:
            task = asyncio.ensure_future(Budgeted(FunctionModel(lambda request: "x", latency=9)).complete(ask()))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return b

    b = run(main())
    assert (b.unknown.calls, b.reserved.calls) == (1, 0)


def test_every_one_of_nested_budgets_applies(run, ask):
    """An inner budget cannot buy what the outer one has not."""

    async def main():
        model = Budgeted(FunctionModel(lambda request: "x"))
        with budget(calls=3) as outer, budget(calls=2) as inner:
            await model.complete(ask())
            await model.complete(ask())
            with pytest.raises(BudgetExceeded, match="budget of 2 calls"):
                await model.complete(ask())
        return outer, inner

    outer, inner = run(main())
    assert (outer.spent.calls, inner.spent.calls) == (2, 2)
    assert outer.remaining.calls == 1


def test_money_is_settled_exactly(run, ask, priced):
    """A million small amounts must not drift."""

    async def main():
        model = Budgeted(priced(lambda request: used(input_tokens=1)))
        with budget(dollars=1.0) as b:
            for _ in range(30):
                await model.complete(ask(config=GenerateConfig(max_tokens=1)))
        return b

    b = run(main())
    assert b.spent.dollars == 30e-6
    assert b.remaining.dollars == 1.0 - 30e-6


def test_the_price_is_on_the_answer_without_a_budget_too(run, ask, priced):
    """Reports need the cost whether or not there is a limit."""
    completion = run(Budgeted(priced(lambda request: used(input_tokens=10, output_tokens=5))).complete(ask()))
    assert completion.usage.dollars == pytest.approx(20e-6)
    unknown = Priced(lambda request: used(), name="nobody-knows-this-model")
    assert run(Budgeted(unknown).complete(ask())).usage.dollars is None


def test_a_stop_ends_the_wait_for_a_reservation(run, ask):
    """Waiting for others to settle must not hold up Ctrl-C."""
    model = FunctionModel(lambda request: "x", latency=100)

    async def main():
        with budget(tokens=50), Stop() as stop:
            request = ask(config=GenerateConfig(max_tokens=30))
            tasks = [asyncio.ensure_future(Budgeted(model).complete(request)) for _ in range(2)]
            asyncio.get_running_loop().call_later(1, stop.set)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            at = asyncio.get_running_loop().time()
            await asyncio.wait(tasks)
            return done, at

    done, at = run(main())
    assert at == pytest.approx(1)
    with pytest.raises(Stopped):
        done.pop().result()


CALL = st.tuples(st.integers(1, 30), st.integers(0, 30), st.floats(0, 3), st.sampled_from(["ok", "5xx", "4xx"]))


@settings(deadline=None, max_examples=40)
@given(calls=st.lists(CALL, min_size=1, max_size=30), limit=st.integers(0, 300), width=st.sampled_from([1, 16, 64]))
def test_the_sum_never_exceeds_the_limit(calls, limit, width):
    """Settled, reserved and unknown together stay within the limit, at any concurrency and with any mix of failures."""
    from textgrad_engine.llm import Limit, Message, Request

    async def main(b):
        async def answer(request):
            most, used_tokens, seconds, end = request.config.extra["call"]
            await asyncio.sleep(seconds / 1000)
            total = b.spent.total_tokens + b.unknown.total_tokens + b.reserved.total_tokens
            assert total <= limit
            if end != "ok":
                raise (ServerFailed if end == "5xx" else BadRequest)("x", status=500 if end == "5xx" else 400)
            return used(output_tokens=min(most, used_tokens))

        model = Limit(Budgeted(FunctionModel(answer)), width)
        requests = [
            Request(
                messages=(Message(role="user", content="x"),),
                config=GenerateConfig(max_tokens=call[0], extra={"call": call}),
            )
            for call in calls
        ]
        return await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True)

    with budget(tokens=limit) as b:
        results = asyncio.run(main(b))
    assert not any(isinstance(result, AssertionError) for result in results)
    assert len(results) == len(calls)
    assert b.spent.total_tokens + b.unknown.total_tokens <= limit
    assert b.reserved.calls == 0
