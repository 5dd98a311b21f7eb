import asyncio
import logging
import random
import re
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine.errors import (
    AnswerError,
    BadRequest,
    BudgetExceeded,
    ConnectionFailed,
    ServerFailed,
    Stopped,
    UnknownPriceError,
)
from textgrad_engine.llm import (
    Budgeted,
    Check,
    Completion,
    Defaults,
    GenerateConfig,
    Limit,
    Message,
    Request,
    ResponseFormat,
    Stop,
    Usage,
    budget,
    price,
    resolve,
    set_price,
)
from textgrad_engine.llm.account import Budget, Hold
from textgrad_engine.llm.amounts import Amount
from textgrad_engine.llm.budget import DEFAULT_MAX_TOKENS
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.reserve import Reserve
from textgrad_engine.llm.tokens import most_of_request
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

    with pytest.raises(BudgetExceeded, match="the budget of 100 tokens does not allow a single call") as caught:
        run(main())
    assert re.search(r"may need \d{3}, for its text .*; raise the budget to that or more, or set a", str(caught.value))
    assert (model.requests, caught.value.too_small) == ([], True)


def test_millions_of_tokens_are_told_to_the_last_one(run, ask):
    """Who raises a limit by what a message says needs all of its digits."""

    async def main():
        with budget(tokens=2_000_123):
            await Budgeted(ScriptedModel(["never"])).complete(ask(config=GenerateConfig(max_tokens=3_000_456)))

    with pytest.raises(BudgetExceeded, match=r"the budget of 2,000,123 tokens .* may need 3,000,\d{3}, for its text"):
        run(main())


def test_a_budget_that_is_used_up_is_not_called_too_small(run, ask):
    """It allowed a call, and what is left of it is another matter."""

    async def main():
        with budget(calls=1):
            await Budgeted(ScriptedModel(["first"])).complete(ask())
            await Budgeted(ScriptedModel(["never"])).complete(ask())

    with pytest.raises(BudgetExceeded, match="the budget of 1 call does not allow the next call: 1 spent") as caught:
        run(main())
    assert not caught.value.too_small


def test_of_nested_budgets_the_one_without_room_is_told_from_the_others(run, ask):
    """A search with a limit of its own ends there; at a limit around it, the run does."""

    async def main(inner, outer):
        asked = Budgeted(ScriptedModel(["x"]))
        with budget(calls=outer) as around, budget(calls=inner) as within, pytest.raises(BudgetExceeded) as caught:
            await asyncio.gather(*[asked.complete(ask()) for _ in range(2)])
        return within.refused(caught.value), around.refused(caught.value)

    assert run(main(1, 5)) == (True, False)
    assert run(main(5, 1)) == (False, True)


def test_a_budget_that_is_kept_for_later_is_not_called_too_small(run, ask):
    """Where the cache answers what comes first nothing is spent, and a call would have room but for what is kept."""

    async def main():
        with budget(calls=10), Reserve() as later:
            later.keep(Amount(calls=10))
            await Budgeted(ScriptedModel(["never"])).complete(ask())

    with pytest.raises(BudgetExceeded, match="10 kept for the rest of the run, and the next call may need 1") as caught:
        run(main())
    assert not caught.value.too_small


def test_who_comes_while_the_queue_is_being_served_queues_up(run):
    """What was in flight is settled, and those who wait are not told yet: nothing is short then."""

    async def main():
        account = Budget(None, 1, None)
        assert account.reserve(Amount(1))
        first = account.queue(Amount(1))
        with mock.patch.object(account, "serve"):
            account.settle(Amount(1), None, charged=False)
            assert not account.reserve(Amount(1))
        account.serve()
        return await first

    assert run(main())


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
        with budget(tokens=100 + 2 * most_of_request(request)) as b:
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
        request = ask(config=GenerateConfig(max_tokens=30))
        with budget(tokens=50 + most_of_request(request)), Stop() as stop:
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


def test_a_call_is_refused_only_when_it_would_not_fit_alone(run, ask, priced):
    """The bound is far above what is used: it may make a call wait, and must not end a run that has money left."""
    request = ask("x" * 1000, config=GenerateConfig(max_tokens=100))
    most = most_of_request(request) + 100
    model = priced(lambda request: used(input_tokens=250, output_tokens=10), latency=1)

    async def main():
        with budget(tokens=most + 260 * 9) as b:  # the tenth call fits to the token, and the eleventh no more
            calls = (Budgeted(model).complete(request) for _ in range(20))
            return b, await asyncio.gather(*calls, return_exceptions=True)

    b, results = run(main())
    refused = [result for result in results if isinstance(result, BudgetExceeded)]
    assert (len(refused), b.spent.calls, b.reserved.calls) == (10, 10, 0)
    assert f"the next call may need {most:,}" in str(refused[0])


def test_a_waiting_call_that_is_given_up_leaves_its_room_to_the_next(run, ask):
    """Who is gone must not keep those behind it waiting."""

    def request(seconds):
        return ask(config=GenerateConfig(max_tokens=10, extra={"seconds": seconds}))

    async def main():
        async def answer(request):
            await asyncio.sleep(request.config.extra["seconds"])
            given_up.cancel()
            return used(input_tokens=1)

        model = Budgeted(FunctionModel(answer))
        with budget(tokens=2 * (most_of_request(request(1)) + 10) + 1):
            _, _, given_up, last = [
                asyncio.ensure_future(model.complete(request(seconds))) for seconds in (100, 1, 1, 1)
            ]
            await last
        return asyncio.get_running_loop().time(), given_up.cancelled()

    assert run(main()) == (pytest.approx(2), True)


def test_what_was_set_aside_for_a_call_that_is_gone_goes_to_the_next(run):
    """A call may be cancelled in the very turn in which its room was found."""
    one = Amount(calls=1)

    async def main():
        b = Budget(calls=1)
        assert b.reserve(one)
        first, second = b.queue(one), b.queue(one)
        b.settle(one, None, charged=False)
        assert first.result() is True
        b.give_up(first, one)
        assert second.result() is True
        third = b.queue(one)
        third.cancel()
        b.give_up(second, one)
        b.give_up(third, one)
        return b

    assert run(main()).remaining.calls == 1


def test_a_large_call_that_gives_up_waiting_lets_the_small_ones_behind_it_go(run):
    """They fit; it was only their turn that they waited for."""
    large, small = Amount(calls=1, tokens=8), Amount(calls=1, tokens=3)

    async def main():
        b = Budget(tokens=10)
        assert b.reserve(small)
        first, second = b.queue(large), b.queue(small)
        assert not b.reserve(small)
        b.give_up(first, large)
        return second.result(), b.reserved.total_tokens

    assert run(main()) == (True, 6)


def test_a_large_call_is_not_starved_by_small_ones(run, ask):
    """First come, first served: what comes later and would fit stands behind it."""
    order = []

    async def answer(request):
        order.append(request.config.max_tokens)
        await asyncio.sleep(1)
        return used(output_tokens=1)

    async def main():
        model = Budgeted(FunctionModel(answer))
        room = most_of_request(ask())
        with budget(tokens=4 * room + 1000):
            sizes = [200, 200, 900, 200, 200]
            await asyncio.gather(*(model.complete(ask(config=GenerateConfig(max_tokens=size))) for size in sizes))

    run(main())
    assert order == [200, 200, 900, 200, 200]


def test_nested_budgets_hold_nothing_of_each_other_while_a_call_waits(run, ask):
    """A call that waits for the inner one must not keep others out of the outer one."""
    model = Budgeted(FunctionModel(lambda request: used(input_tokens=1), latency=1))

    async def main():
        request = ask(config=GenerateConfig(max_tokens=10))
        most = most_of_request(request) + 10
        with budget(tokens=2 * most) as outer:
            with budget(tokens=most + 2):
                inside = [asyncio.ensure_future(model.complete(request)) for _ in range(3)]
            await asyncio.sleep(0)
            outside = asyncio.ensure_future(model.complete(request))
            await asyncio.gather(*inside, outside)
        return outer, asyncio.get_running_loop().time()

    outer, seconds = run(main())
    assert (outer.spent.calls, outer.reserved.calls) == (4, 0)
    assert seconds == pytest.approx(3)
    assert model.inner.peak == 2


def app_that_asks(ask, other):
    """An app of the user's own, whose call is one, and asks a model of ours inside of it."""

    async def answer(request):
        return Completion(text=(await other.complete(ask())).text)

    return Budgeted(Check(FunctionModel(answer)))


@pytest.mark.parametrize(("limit", "answered"), [(1, 0), (4, 2), (5, 2), (11, 5), (12, 6)])
def test_apps_that_ask_models_inside_of_their_calls_do_not_wait_for_each_other(run, ask, limit, answered):
    """Each had set a call aside, and waited for another one, which the others had: for ever, or until a deadline."""
    app = app_that_asks(ask, Budgeted(FunctionModel(lambda request: used(), latency=1)))

    async def main():
        with budget(calls=limit) as b:
            async with asyncio.timeout(100):
                return b, await asyncio.gather(*(app.complete(ask()) for _ in range(6)), return_exceptions=True)

    b, results = run(main())
    assert sum(isinstance(result, Completion) for result in results) == answered
    assert all(isinstance(result, Completion | BudgetExceeded) for result in results)
    assert (b.spent.calls, b.unknown.calls, b.reserved.calls) == (2 * answered, 0, 0)


def test_a_call_inside_of_another_one_waits_for_what_others_give_back(run, ask):
    """It is refused only where nothing in flight could make room."""
    request = ask(config=GenerateConfig(max_tokens=100))
    most = most_of_request(request) + 100
    plain = Budgeted(FunctionModel(lambda request: used(input_tokens=1), latency=1))
    app = app_that_asks(lambda: request, plain)

    async def main():
        with budget(tokens=2 * most + 9) as outer, budget(tokens=2 * most + 9) as inner:
            await asyncio.gather(plain.complete(request), app.complete(request), plain.complete(request))
        return outer, inner

    for each in run(main()):
        assert (each.spent.calls, each.reserved.calls) == (4, 0)


def test_a_call_inside_of_another_one_does_not_queue_up_behind_what_waits_for_that(run, ask):
    """Else the one that waits at the head of the queue, the call around, and the one inside wait for each other."""
    small, large = (ask(config=GenerateConfig(max_tokens=size)) for size in (100, 250))
    most = most_of_request(small)
    plain = Budgeted(FunctionModel(lambda request: used(input_tokens=1), latency=1))

    async def answer(request):
        await asyncio.sleep(1)  # meanwhile the large one has queued up
        return await plain.complete(small)

    app = Budgeted(FunctionModel(answer))

    async def main():
        with budget(tokens=3 * most + 300) as b:
            async with asyncio.timeout(100):
                await asyncio.gather(app.complete(small), plain.complete(large), plain.complete(large))
        return b

    assert run(main()).spent.calls == 4


def test_a_call_that_ends_before_one_inside_of_it_gives_back_no_more_than_it_had():
    """Else another one that is made inside of a call would wait for room that nothing can make."""
    one = Amount(calls=1)
    with budget(calls=2) as b:
        assert b.reserve(one)
        around = Hold((b,), one)
        around.wait(1)
        around.end()
        b.settle(one, Usage(calls=1), charged=True)
        around.wait(-1)
        assert b.reserve(one)
        with pytest.raises(BudgetExceeded):
            b.reserve(Amount(calls=2), inside=True)


def test_a_call_that_is_cancelled_as_it_gets_its_room_gives_it_back(run, ask):
    """It has not been told yet that there is some, and nobody else would give it back."""
    request = ask(config=GenerateConfig(max_tokens=100))
    model = Budgeted(FunctionModel(lambda request: used(output_tokens=9), latency=1))

    async def main():
        async def first():
            await model.complete(request)  # what it had set aside is settled, and the second one is served
            second.cancel()

        with budget(tokens=most_of_request(request) + 150) as b:
            running = asyncio.ensure_future(first())
            await asyncio.sleep(0.5)
            second = asyncio.ensure_future(model.complete(request))
            await asyncio.gather(running, second, return_exceptions=True)
        return b, second

    b, second = run(main())
    assert second.cancelled()
    assert (b.spent.calls, b.reserved.calls) == (1, 0)


@pytest.mark.parametrize(("own", "other"), [(100, 500), (500, 100)])
def test_of_two_settings_of_the_longest_answer_the_larger_one_is_set_aside(run, ask, own, other):
    """Nobody knows which of them an endpoint goes by."""
    request = ask(config=GenerateConfig(max_tokens=own, extra={"max_completion_tokens": other}))
    model = FunctionModel(lambda request: used(output_tokens=400))

    async def main():
        with budget(tokens=most_of_request(request) + 499):
            await Budgeted(model).complete(request)

    with pytest.raises(BudgetExceeded):
        run(main())
    assert not model.requests


def test_calls_that_wait_for_two_budgets_do_not_take_turns_for_ever(ask):
    """Each got room in one, gave it back as there was none in the other, and so on, and nothing was in flight."""
    draw = random.Random(73)  # such sizes, in such an order

    async def answer(request):
        if draw.random() < 0.5:
            await asyncio.sleep(0)
        return used(input_tokens=1)

    async def main():
        model = Budgeted(FunctionModel(answer))
        with budget(tokens=draw.randint(300, 600)), budget(tokens=draw.randint(300, 600)):
            async with asyncio.timeout(20):  # on a clock: a loop that never rests would not come to it on ours
                sizes = [draw.randint(10, 200) for _ in range(draw.randint(3, 30))]
                requests = [ask(config=GenerateConfig(max_tokens=size)) for size in sizes]
                return await asyncio.gather(*map(model.complete, requests), return_exceptions=True)

    assert all(isinstance(each, Completion | BudgetExceeded) for each in asyncio.run(main()))


@pytest.mark.parametrize("limits", [{"tokens": 100_000}, {"dollars": 1.0}])
def test_a_request_without_max_tokens_gets_one_where_its_answer_could_pass_a_limit(run, ask, priced, limits):
    """What has no end has no worst case, and nothing true could be reserved for it."""
    model = priced(lambda request: "x")

    async def main():
        with budget(**limits):
            await Budgeted(model).complete(ask())
            await Budgeted(model).complete(ask(config=GenerateConfig(max_tokens=7)))
            await Budgeted(model).complete(ask(config=GenerateConfig(extra={"max_completion_tokens": 9})))
            await Budgeted(Defaults(model, GenerateConfig(max_tokens=5))).complete(ask())

    run(main())
    assert [request.config.max_tokens for request in model.requests] == [DEFAULT_MAX_TOKENS, 7, None, 5]


def test_nothing_is_added_to_a_request_where_no_answer_could_pass_a_limit(run, ask):
    """A limit of calls, and one of dollars for a model that is free, leave requests as they are."""
    model = FunctionModel(lambda request: "x")

    async def main():
        with budget(calls=2, dollars=0.0):
            await Budgeted(model).complete(ask())

    run(main())
    assert model.requests[0].config.max_tokens is None


def refusing(most, words):
    def answer(request):
        if request.config.max_tokens > most:
            raise BadRequest(words.format(request.config.max_tokens, most), status=400)
        return "x"

    return FunctionModel(answer)


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: {}. This model supports at most {} completion tokens",
        "This model's maximum context length is 8192 tokens. However, you requested 8256 ({} in the completion)",
        "`max_completion_tokens` must be less than or equal to {}, the maximum output of this model",
    ],
)
def test_a_model_that_cannot_say_so_much_is_asked_for_half_and_that_is_remembered(run, ask, words):
    """A run must not fail by a setting that its user never made."""
    model = refusing(4096, words)
    budgeted = Budgeted(model)

    async def main():
        with budget(tokens=100_000) as b:
            await budgeted.complete(ask())
            await budgeted.complete(ask())
        return b

    b = run(main())
    assert [request.config.max_tokens for request in model.requests] == [8192, 4096, 4096]
    assert (b.spent.calls, b.unknown.calls, b.reserved.total_tokens) == (2, 0, 0)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("max_tokens is too large", [8192, 4096, 2048, 1024]),
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'", [8192]),
    ],
)
def test_a_setting_that_is_refused_whatever_its_value_says_where_it_came_from(run, ask, words, asked):
    """The user sees an error about a setting that is in none of their files."""
    model = refusing(0, words)

    async def main():
        with budget(tokens=100_000), pytest.raises(BadRequest, match="max_tokens") as caught:
            await Budgeted(model).complete(ask())
        return caught.value

    error = run(main())
    assert "under a limit in tokens or dollars a request that sets no max_tokens is sent with" in error.__notes__[0]
    assert [request.config.max_tokens for request in model.requests] == asked


def test_a_request_that_is_refused_for_something_else_is_sent_once(run, ask):
    """Only a refused length is worth another try."""
    too_long = "This model's maximum context length is 8192 tokens, and your messages have 9000"
    model = FunctionModel(lambda request: (_ for _ in ()).throw(BadRequest(too_long, status=400)))

    async def main():
        with budget(tokens=100_000), pytest.raises(BadRequest):
            await Budgeted(model).complete(ask())

    run(main())
    assert len(model.requests) == 1


def test_an_answer_that_does_not_say_what_it_used_holds_its_worst_case(run, ask):
    """An estimate of ours is no bill: counting it as one could pass the limit."""
    request = ask("a" * 400, config=GenerateConfig(max_tokens=50))
    told = Completion(text="x", usage=Usage(input_tokens=100, output_tokens=1, calls=1), raw={"usage_estimated": True})

    async def main():
        with budget(tokens=10_000) as b:
            await Budgeted(ScriptedModel([told])).complete(request)
        return b

    b = run(main())
    assert b.spent.total_tokens == 101
    assert b.spent.total_tokens + b.unknown.total_tokens == most_of_request(request) + 50
    assert (b.spent.calls, b.unknown.calls) == (1, 0)


@pytest.mark.parametrize("finish_reason", ["stop", "length", "content_filter"])
def test_a_useless_answer_that_does_not_say_what_it_used_holds_its_worst_case_too(run, ask, finish_reason):
    """What was cut off, withheld or empty may have been thousands of tokens of thought."""
    request = ask("a" * 400, config=GenerateConfig(max_tokens=50))
    usage = Usage(input_tokens=100, output_tokens=0, calls=1)
    told = Completion(text="", finish_reason=finish_reason, usage=usage, raw={"usage_estimated": True})

    async def main():
        with budget(tokens=10_000) as b, pytest.raises(AnswerError):
            await Budgeted(Check(ScriptedModel([told]))).complete(request)
        return b

    b = run(main())
    assert b.spent.total_tokens + b.unknown.total_tokens == most_of_request(request) + 50
    assert (b.spent.calls, b.unknown.calls) == (1, 0)


def test_an_endpoint_that_uses_more_than_is_possible_is_named_in_the_log_once(run, ask, caplog):
    """The limit can be passed then, and nobody should have to find out from a bill."""
    model = Budgeted(FunctionModel(lambda request: used(output_tokens=10_000), name="talker"))
    request = ask(config=GenerateConfig(max_tokens=10))

    async def main():
        with budget(tokens=100_000):
            await model.complete(request)
            await model.complete(request)

    with caplog.at_level(logging.WARNING, logger="textgrad_engine"):
        run(main())
    (record,) = caplog.records
    assert "'talker' says that a call used 10000 tokens" in record.getMessage()


def test_money_counts_at_the_higher_of_fresh_and_cached_input(run, ask):
    """A price that was stated the wrong way round must not make the worst case too low."""
    set_price("priced", 1.0, 1.0, cached=10.0)
    model = Priced(lambda request: used(input_tokens=100, cached_tokens=100), name="priced")
    request = ask("a" * 100, config=GenerateConfig(max_tokens=1))
    most = most_of_request(request)

    async def main(dollars):
        with budget(dollars=dollars) as b:
            await Budgeted(model).complete(request)
        return b

    try:
        with pytest.raises(BudgetExceeded):
            run(main((10 * most) * 1e-6))
        assert run(main((10 * most + 1) * 1e-6)).spent.dollars == 1000e-6
    finally:
        set_price("priced", None)


@pytest.mark.parametrize("cents", range(1, 100))
def test_a_limit_is_the_decimal_number_that_was_written(cents):
    """0.57 times a million million is less than it should be in binary, and its last call would be refused."""
    whole = Amount(calls=1, pico=cents * 10**10)
    assert Budget(dollars=cents / 100).reserve(whole)


def test_a_service_tier_counts_at_its_own_price(run, ask):
    """Priority costs more, and would pass a limit that is counted at the usual price."""
    usage = {"input_tokens": 1000, "output_tokens": 1000}
    usual, dear = price("gpt-5-mini", Usage(**usage)), price("gpt-5-mini", Usage(**usage), "priority")
    assert dear > usual > 0
    config = GenerateConfig(max_tokens=1000, extra={"service_tier": "priority"})
    model = Priced(lambda request: used(**usage), name="gpt-5-mini")
    asked = ask("a" * 1000, config=config)

    async def main(budgeted, request):
        with budget(dollars=1.0) as b:
            await budgeted.complete(request)
        return b.spent.dollars

    assert run(main(Budgeted(model), asked)) == pytest.approx(dear)
    defaults = Budgeted(Defaults(model, config))
    assert run(main(defaults, ask("a" * 1000))) == pytest.approx(dear)
    most = price("gpt-5-mini", Usage(input_tokens=most_of_request(asked), output_tokens=1000), "priority")

    async def refused():
        with budget(dollars=0.99 * most):
            await Budgeted(model).complete(asked)

    with pytest.raises(BudgetExceeded):
        run(refused())


TEXT = st.text(max_size=30)
CALL = st.tuples(TEXT, st.integers(1, 300), st.floats(0, 1), st.floats(0, 1), st.floats(0, 3), st.sampled_from("okx4"))
"""What is said, max_tokens, which share of the worst case is used of input and output, milliseconds, how it ends."""


@settings(deadline=None, max_examples=60)
@given(
    calls=st.lists(CALL, min_size=1, max_size=40),
    limit=st.integers(0, 6000),
    width=st.sampled_from([1, 16, 64]),
    schema=st.booleans(),
    money=st.booleans(),
)
def test_the_sum_never_exceeds_the_limit(calls, limit, width, schema, money):
    """Whatever is used up to the worst case, at any concurrency and with any mix of failures; and who is refused would
    not have fitted alone.
    """
    set_price("priced", 1.0, 1.0)
    form = ResponseFormat(name="a", json_schema={"type": "object", "properties": {}}) if schema else None
    refusals = []

    async def main(b):
        async def answer(request):
            _, most, read, written, seconds, end = request.config.extra["call"]
            await asyncio.sleep(seconds / 1000)
            assert within(b)
            if end in "x4":
                raise (ServerFailed if end == "x" else BadRequest)("x", status=500 if end == "x" else 400)
            tokens = round(read * most_of_request(request)), round(written * most)
            return used(input_tokens=tokens[0], output_tokens=tokens[1])

        model = Limit(Budgeted(Priced(answer, name="priced")), width)
        requests = [
            Request(
                messages=(Message(role="user", content=call[0]),),
                config=GenerateConfig(max_tokens=call[1], extra={"call": call}, response_format=form),
            )
            for call in calls
        ]

        async def one(request):
            try:
                return await model.complete(request)
            except BudgetExceeded:
                alone = most_of_request(request) + request.config.max_tokens
                settled = (b.spent.dollars + b.unknown.dollars) * 1e6 if money else committed(b)
                refusals.append(settled + alone > limit - 0.001)
                raise

        return await asyncio.gather(*(one(request) for request in requests), return_exceptions=True)

    def committed(b):
        return b.spent.total_tokens + b.unknown.total_tokens

    def within(b):
        if money:
            return (b.spent.dollars + b.unknown.dollars + b.reserved.dollars) * 1e6 <= limit + 0.001
        return committed(b) + b.reserved.total_tokens <= limit

    try:
        with budget(**({"dollars": limit / 1e6} if money else {"tokens": limit})) as b:
            results = asyncio.run(main(b))
    finally:
        set_price("priced", None)
    assert not any(isinstance(result, AssertionError) for result in results)
    assert len(results) == len(calls)
    assert all(refusals)
    assert within(b)
    assert b.reserved.calls == 0
