import asyncio
import threading

import pytest

from textgrad_engine.errors import ServerFailed, Stopped
from textgrad_engine.llm import Limit, Retry, Stop, resolve
from textgrad_engine.llm.stop import unless_stopped
from textgrad_engine.testing import FunctionModel, ScriptedModel


def test_queued_calls_fail_at_once_and_those_in_flight_finish(run, ask):
    """Ctrl-C must neither wait for the whole queue nor throw away what is paid for."""
    model = FunctionModel(lambda request: "done", latency=10)

    async def main():
        loop = asyncio.get_running_loop()
        limited = Limit(model, 2)
        with Stop() as stop:
            tasks = [asyncio.ensure_future(limited.complete(ask())) for _ in range(6)]
            await asyncio.sleep(1)
            stop.set()
            await asyncio.wait(tasks[2:])
            at = loop.time()
            return await asyncio.gather(*tasks, return_exceptions=True), at

    results, at = run(main())
    assert [result.text for result in results[:2]] == ["done", "done"]
    assert all(isinstance(result, Stopped) for result in results[2:])
    assert at == pytest.approx(1)
    assert len(model.requests) == 2


def test_nothing_is_sent_after_a_stop(run, ask):
    """A stopped run spends nothing more."""
    model = ScriptedModel(["never"])

    async def main():
        with Stop() as stop:
            stop.set()
            await resolve(model).complete(ask())

    with pytest.raises(Stopped):
        run(main())
    assert model.requests == []


def test_an_outer_switch_reaches_calls_under_an_inner_one(run, ask):
    """The command line's switch holds inside the trainer's."""

    async def main():
        with Stop() as outer, Stop():
            outer.set()
            await Limit(ScriptedModel(["never"])).complete(ask())

    with pytest.raises(Stopped):
        run(main())


def test_a_call_that_waits_to_be_tried_again_is_stopped_too(run, ask):
    """Backoff of a minute must not hold up Ctrl-C."""

    async def main():
        model = Retry(ScriptedModel([ServerFailed("x", status=500, retry_after=50)]))
        with Stop() as stop:
            asyncio.get_running_loop().call_later(1, stop.set)
            with pytest.raises(Stopped):
                await model.complete(ask())
            return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(1)


def test_another_thread_can_stop(run, ask):
    """The signal arrives in the main thread, the calls live on the loop's."""

    async def main():
        limited = Limit(FunctionModel(lambda request: "x", latency=3), 1)
        with Stop() as stop:
            first = asyncio.ensure_future(limited.complete(ask()))
            second = asyncio.ensure_future(limited.complete(ask()))
            await asyncio.sleep(0)
            thread = threading.Thread(target=stop.set)
            thread.start()
            thread.join()
            return await asyncio.gather(first, second, return_exceptions=True)

    first, second = run(main())
    assert first.text == "x"
    assert isinstance(second, Stopped)


def test_work_that_is_done_in_time_is_not_disturbed(run):
    """Waiting under a switch gives the result, or the error, of the work."""

    async def main():
        async def fail():
            raise KeyError("own")

        with Stop():
            with pytest.raises(KeyError):
                await unless_stopped(fail())
            return await unless_stopped(asyncio.sleep(1, "slept"))

    assert run(main()) == "slept"
