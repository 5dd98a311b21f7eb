import asyncio
import time

import pytest

from textgrad_engine.errors import ServerFailed, TruncatedResponse
from textgrad_engine.llm import (
    Completion,
    Message,
    Metered,
    Request,
    Usage,
    Wrapper,
    call_key_scope,
    meter,
    observe,
    resolve,
    usage,
)
from textgrad_engine.store.records import timestamp
from textgrad_engine.testing import FunctionModel, ScriptedModel


def test_a_failed_call_is_counted_and_reported(run, ask):
    """A failure must not leave a call in flight for ever, nor be lost to the journal."""
    seen = []

    async def main():
        with meter() as m, observe(seen.append), pytest.raises(ServerFailed):
            await Metered(ScriptedModel([ServerFailed("broken", status=500)])).complete(ask())
        return m

    m = run(main())
    assert (m.in_flight, m.failed, m.total.calls) == (0, 1, 0)
    assert [type(record.error) for record in seen] == [ServerFailed]
    assert seen[0].completion is None


def test_a_call_is_over_when_all_were_told(run, ask):
    """Who waits until nothing is in flight may close the journal then; what it used is in the sums before."""
    seen = []

    async def main():
        with meter() as m, observe(lambda record: seen.append((m.in_flight, m.total.calls))):
            await Metered(FunctionModel(lambda request: "x")).complete(ask())
        return m

    assert run(main()).in_flight == 0
    assert seen == [(1, 1)]


def test_what_a_thrown_away_answer_used_is_added_up(run, ask):
    """Truncated answers are paid for, so they are in the sums."""
    model = resolve(
        ScriptedModel([Completion(text="x", finish_reason="length", usage=Usage(output_tokens=50, calls=1))])
    )

    async def main():
        with meter() as m, pytest.raises(TruncatedResponse):
            await model.complete(ask())
        return m

    assert run(main()).total == Usage(output_tokens=50, calls=1)


def test_a_cancelled_call_is_no_longer_in_flight_and_is_no_failure(run, ask):
    """Cancelling (Ctrl-C twice, a lost race) keeps the counters right."""

    async def main():
        with meter() as m:
            task = asyncio.ensure_future(Metered(FunctionModel(lambda request: "x", latency=5)).complete(ask()))
            await asyncio.sleep(1)
            assert m.in_flight == 1
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return m

    seen = []
    with observe(seen.append):
        m = run(main())
    assert (m.in_flight, m.failed, seen) == (0, 0, [])


def test_a_record_names_the_key_in_force_at_dispatch(run, ask):
    """The trainer finds the example of each completion by its key, also when the call ends after the block."""
    seen = []

    async def main():
        model = Metered(FunctionModel(lambda request: "x", latency=1))
        with observe(seen.append), call_key_scope("train/7"):
            task = asyncio.ensure_future(model.complete(ask()))
        await task

    run(main())
    assert [(record.key, record.model, record.purpose) for record in seen] == [("train/7", "function", "forward")]
    assert seen[0].completion.text == "x"


def test_an_observer_that_fails_stops_the_call(run, ask):
    """A journal that cannot be written must not be passed over in silence."""

    def full(record):
        raise OSError("disk full")

    async def main():
        with observe(full):
            await Metered(FunctionModel(lambda request: "x")).complete(ask())

    with pytest.raises(OSError, match="disk full"):
        run(main())


def test_usages_add_up_by_sum_without_a_start():
    """As any list of numbers does; what is no usage is still refused."""
    assert sum([Usage(input_tokens=1, calls=1), Usage(output_tokens=2, calls=1)]) == Usage(
        input_tokens=1, output_tokens=2, calls=2
    )
    with pytest.raises(TypeError):
        1 + Usage()


def test_a_record_says_how_long_and_how_often(run, ask):
    """Latency, attempts, and whether the cache answered: what a report of costs needs."""
    seen = []
    cached = Completion(text="x", usage=Usage(), saved=Usage(calls=1, dollars=0.5), cached=True, attempts=0)

    async def main():
        with meter() as m, observe(seen.append):
            await Metered(ScriptedModel([Completion(text="x", attempts=3)])).complete(ask())
            await Metered(ScriptedModel([cached])).complete(ask())
            await asyncio.gather(
                Metered(ScriptedModel([ServerFailed("x", status=500)])).complete(ask()), return_exceptions=True
            )
        return m

    m = run(main())
    assert [(each.attempts, each.cached) for each in seen] == [(3, False), (0, True), (None, False)]
    assert all(0 <= each.latency < 5 for each in seen)
    assert (m.cached, m.saved, m.total.calls) == (1, Usage(calls=1, dollars=0.5), 1)


@pytest.mark.parametrize("ticks", [[5.0], [5.0, 4.0, 4.0, 9.0]], ids=["it stands", "it is set back"])
def test_calls_are_in_order_by_the_time_when_they_were_asked(run, ask, monkeypatch, ticks):
    """Equal requests are told apart by it when a run is resumed, and the clock of Windows ticks 64 times a second."""
    left = list(ticks)
    monkeypatch.setattr(time, "time", lambda: left.pop(0) if len(left) > 1 else left[0])
    monkeypatch.setattr(usage, "_moment", 0.0)
    asked, seen = iter(range(100)), []
    model = Metered(FunctionModel(lambda _: str(next(asked))))

    async def main():
        with observe(seen.append):
            await asyncio.gather(*(model.complete(ask()) for _ in range(100)))

    run(main())
    seen.sort(key=lambda record: int(record.completion.text))
    moments = [timestamp(record.started, "microseconds") for record in seen]
    assert moments == sorted(set(moments))


def test_a_model_that_counts_others_once_more_is_named(caplog):
    """Once; a wrapper around what was resolved has its calls inside counted, and says nothing of its own."""

    async def both(model, request):
        answers = await asyncio.gather(model.complete(request), model.complete(request))
        return answers[0]

    class Twice:
        name = "twice"

        def __init__(self, inner):
            self.inner = inner

        async def complete(self, request):
            return await both(self.inner, request)

    class Wrapped(Wrapper):
        async def complete(self, request):
            return await both(self.inner, request)

    request = Request(messages=(Message(role="user", content="?"),))
    usage = Usage(input_tokens=3, output_tokens=1, calls=1)
    inner = FunctionModel(lambda request: Completion(text="yes", usage=usage))
    for kind, calls in ((Wrapped, 4), (Twice, 6)):
        model = resolve(kind(resolve(inner)))
        with meter() as used:
            asyncio.run(model.complete(request))
            asyncio.run(model.complete(request))
        assert used.total.calls == calls
    (said,) = caplog.messages
    assert said.startswith("the model 'twice' asks models that are counted by themselves")
    assert "derive Twice from llm.Wrapper" in said
