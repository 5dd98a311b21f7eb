import asyncio
import logging

import pytest

from textgrad_engine.errors import (
    AuthenticationFailed,
    BadRequest,
    BudgetExceeded,
    ConnectionFailed,
    ContextOverflow,
    DeadlineExceeded,
    EmptyResponse,
    ModelError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    Stopped,
)
from textgrad_engine.llm import (
    DOWN,
    Completion,
    Fallback,
    RetryPolicy,
    Stop,
    Usage,
    budget,
    innermost,
    meter,
    observe,
    resolve,
    use_models,
)
from textgrad_engine.llm.roles import model_for
from textgrad_engine.testing import FunctionModel, ScriptedModel

ONCE = RetryPolicy(max_attempts=1)


def pair(first, second=("second",), **settings):
    """A resolved Fallback, and the models in it."""
    one, two = ScriptedModel(first, name="one"), ScriptedModel(second, name="two")
    return resolve(Fallback(resolve(one, policy=ONCE), resolve(two, policy=ONCE), **settings)), one, two


REFUSED = [
    BadRequest("wrong", status=400),
    AuthenticationFailed("key", status=401),
    EmptyResponse("nothing"),
]


@pytest.mark.parametrize("failure", REFUSED, ids=lambda failure: type(failure).__name__)
def test_what_is_not_listed_is_the_caller_s(run, ask, failure):
    """A wrong key or a wrong request is to be mended, not paid for elsewhere."""
    model, _, two = pair([failure])
    with pytest.raises(type(failure)):
        run(model.complete(ask()))
    assert two.requests == []
    model, _, two = pair([failure], on=[*DOWN, type(failure)])
    assert run(model.complete(ask())).text == "second"


@pytest.mark.parametrize("turns", [True, False], ids=["to the second", "not for that"])
def test_a_days_quota_is_waited_for_only_where_no_other_model_answers(run, ask, turns):
    """OpenAI's rolls, and is back by one request each 8.6 s: 30 calls took minutes, while the second had time."""

    def answer(request):
        if times and asyncio.get_running_loop().time() < times[-1] + 8.64:
            raise QuotaExhausted("a day's", status=429, retry_after=8.64)
        times.append(asyncio.get_running_loop().time())
        return "first"

    async def main():
        on = DOWN if turns else [kind for kind in DOWN if kind is not QuotaExhausted]
        one, two = FunctionModel(answer, name="one"), FunctionModel(lambda _: "second", name="two")
        model = resolve(Fallback(resolve(one, max_in_flight=4), two, on))
        found = await asyncio.gather(*(model.complete(ask(f"{n}")) for n in range(20)))
        ended = asyncio.get_running_loop().time()
        await asyncio.sleep(61)
        later = await model.complete(ask("later"))
        return [each.text for each in (*found, later)], ended

    times = []
    said, ended = run(main())
    assert said == ["first", *["second" if turns else "first"] * 19, "first"]
    assert (ended < 1) is turns


def test_a_stop_and_a_spent_budget_end_both(run, ask):
    """Neither is a sign that the first model is down."""
    model, one, two = pair(["x"])

    async def main():
        with Stop() as stop:
            stop.set()
            await model.complete(ask())

    with pytest.raises(Stopped):
        run(main())

    async def poor():
        with budget(tokens=1):
            await model.complete(ask())

    with pytest.raises(BudgetExceeded):
        run(poor())
    assert one.requests == two.requests == []


def test_when_both_are_down_the_error_tells_of_both(run, ask):
    """The second's error alone would hide why it was asked."""
    first, second = ServerFailed("one is broken", status=500), ConnectionFailed("two is gone")
    first.usage, second.usage = Usage(calls=1, output_tokens=3), Usage(calls=1, output_tokens=4)
    model, _, _ = pair([first], [second])
    with pytest.raises(ConnectionFailed, match="two is gone") as caught:
        run(model.complete(ask()))
    assert "in place of 'one', which was down (ServerFailed: one is broken)" in " ".join(caught.value.__notes__)
    assert caught.value.usage == Usage(calls=2, output_tokens=7)


def test_a_cancelled_second_keeps_what_the_first_used(run, ask):
    """It was paid, whatever became of the call."""
    down = ServerFailed("x", status=500)
    down.usage = Usage(calls=1, output_tokens=5)
    model = resolve(Fallback(ScriptedModel([down]), FunctionModel(lambda request: "late", latency=60)))

    async def main():
        with meter() as m:
            task = asyncio.ensure_future(model.complete(ask()))
            await asyncio.sleep(30)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return m.total

    assert run(main()) == down.usage


@pytest.mark.parametrize("wrong", [[ValueError], ["RateLimited"], [RateLimited("an instance")]])
def test_on_lists_kinds_of_model_errors(wrong):
    """A bug in a model must not be answered by another model."""
    with pytest.raises(TypeError, match="ModelError"):
        Fallback(ScriptedModel([]), ScriptedModel([]), on=wrong)
    with pytest.raises(ValueError, match="cooldown must be at least 0, got -1"):
        Fallback(ScriptedModel([]), ScriptedModel([]), cooldown=-1)


SIGNS = [
    ConnectionFailed("\x1b[2J\n"),
    DeadlineExceeded("x"),
    QuotaExhausted("x", status=429),
    RateLimited("x", status=429),
    ServerFailed("x", status=503),
]


@pytest.mark.parametrize("failure", SIGNS, ids=lambda failure: type(failure).__name__)
def test_the_second_answers_when_the_first_is_down(run, ask, failure, caplog):
    """The run goes on, the answer says who gave it, and the log says why."""
    records = []
    model, one, two = pair([failure])

    async def main():
        with observe(records.append):
            return await model.complete(ask())

    with caplog.at_level(logging.WARNING):
        answer = run(main())
    assert (answer.text, answer.model, answer.attempts) == ("second", "two", 2)
    assert (len(one.requests), len(two.requests)) == (1, 1)
    assert "'one' is down, so 'two' is asked" in caplog.text
    assert caplog.records[0].getMessage().isprintable()
    assert [each.completion.model for each in records] == ["two"]


def test_an_answer_without_a_name_gets_one(run, ask):
    """Endpoints of one's own may not say what they are."""
    bare = Completion(text="x")
    model, _, _ = pair([bare, ServerFailed("x", status=500)], [bare])

    async def main():
        return [(await model.complete(ask())).model for _ in range(2)]

    assert run(main()) == ["one", "two"]


def test_the_first_keeps_its_retries_and_there_is_no_second_loop(run, ask):
    """Retry loops inside retry loops: a defect of earlier systems."""
    down = FunctionModel(lambda request: (_ for _ in ()).throw(ServerFailed("x", status=500)), name="one")
    both = Fallback(resolve(down, policy=RetryPolicy(max_attempts=3)), resolve(down, policy=ONCE))
    with pytest.raises(ServerFailed):
        run(resolve(both).complete(ask()))
    assert len(down.requests) == 4


def test_once_down_the_first_is_left_alone_for_a_while(run, ask):
    """Each call would else wait through all retries of an endpoint that is known to be down."""
    down = ServerFailed("x", status=500)
    model, one, two = pair([down, down, "back", "well"], ["a", "b", "c", "d"], cooldown=60)

    async def main():
        answers = []
        for wait in (0, 10, 55, 55, 10, 0):
            await asyncio.sleep(wait)
            answers.append((await model.complete(ask())).text)
        return answers

    assert run(main()) == ["a", "b", "c", "d", "back", "well"]
    assert (len(one.requests), len(two.requests)) == (4, 4)


def test_only_one_call_tries_the_first_again(run, ask):
    """A hundred calls at once do not all wait for a dead endpoint."""
    calls = 0

    async def answer(request):
        nonlocal calls
        calls += 1
        await asyncio.sleep(5)
        raise ServerFailed("x", status=500)

    one, two = FunctionModel(answer, name="one"), FunctionModel(lambda request: "x", name="two")
    model = resolve(Fallback(resolve(one, policy=ONCE), two, cooldown=60))

    async def main():
        await model.complete(ask())
        await asyncio.sleep(61)
        await asyncio.gather(*(model.complete(ask()) for _ in range(100)))

    run(main())
    assert calls == 2


@pytest.mark.parametrize("end", [ContextOverflow("too long", status=400), "cancelled"], ids=["overflow", "cancelled"])
def test_a_try_that_says_nothing_about_the_first_is_repeated_by_the_next_call(run, ask, end):
    """The first is back, and would be left alone for another minute."""
    state = ["down"]

    async def answer(request):
        if state[0] == "down":
            raise ServerFailed("x", status=500)
        if state[0] == "cancelled":
            await asyncio.sleep(30)
        elif state[0] != "up":
            raise state[0]
        return "first"

    one, two = FunctionModel(answer, name="one"), FunctionModel(lambda request: "second", name="two")
    model = resolve(Fallback(resolve(one, policy=ONCE), two, cooldown=60))

    async def main():
        before = await model.complete(ask())
        await asyncio.sleep(61)
        state[0] = end
        trying = asyncio.ensure_future(model.complete(ask()))
        await asyncio.sleep(1)
        trying.cancel()
        (failure,) = await asyncio.gather(trying, return_exceptions=True)
        state[0] = "up"
        return before.text, type(failure), [(await model.complete(ask())).text for _ in range(2)]

    kind = asyncio.CancelledError if end == "cancelled" else ContextOverflow
    assert run(main()) == ("second", kind, ["first", "first"])


def test_calls_are_counted_once_with_all_they_used(run, ask):
    """A Fallback inside a stack of its own must not count twice, nor lose what the first attempt cost."""
    failure = ServerFailed("x", status=500)
    failure.usage = Usage(calls=1, output_tokens=5)
    model, _, _ = pair([failure], [Completion(text="x", usage=Usage(calls=1, output_tokens=2))])

    async def main():
        with meter() as m:
            await model.complete(ask())
        return m

    m = run(main())
    assert (m.total.calls, m.total.output_tokens, m.failed, m.in_flight) == (2, 7, 0, 0)


def test_the_repr_shows_both_and_names_are_resolved():
    """What a run will ask is visible before it asks."""
    both = Fallback("openai/gpt-5", Fallback("openai/gpt-5-mini", ScriptedModel([])))
    assert repr(both) == (
        "Fallback(OpenAIModel('gpt-5'), Fallback(OpenAIModel('gpt-5-mini'), ScriptedModel(0 answers, name='scripted')))"
    )
    assert repr(resolve(both)) == f"Metered(Traced(Taped({both!r})))"
    assert (both.name, innermost(both).name) == ("gpt-5", "gpt-5")
    with use_models(forward=both):
        assert model_for("forward").inner.inner.inner is both
        assert both.inner is model_for("judge", "openai/gpt-5").inner.inner.inner, "one endpoint has one limit"


def test_a_bare_fallback_is_a_model_too(run, ask):
    """It needs no resolving to be asked."""
    down = ScriptedModel([ConnectionFailed("x")])
    both = Fallback(resolve(down, policy=ONCE), ScriptedModel(["yes"]))
    assert run(both.complete(ask())).text == "yes"
    assert all(issubclass(kind, ModelError) for kind in DOWN)
