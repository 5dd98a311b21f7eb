import asyncio
import threading

import pytest

from textgrad_engine import dispatch
from textgrad_engine.dispatch import Scope, aside


def next_of_nothing():
    return next(iter(()))


@pytest.mark.parametrize("in_turn", [False, True])
def test_a_stop_iteration_ends_the_wait(in_turn):
    """It cannot leave a coroutine, and a future that is told of one never ends."""
    with pytest.raises(
        RuntimeError, match=r"test_to_thread\.py:\d+: next\(\) found nothing; give next\(\) a default"
    ) as told:
        asyncio.run(asyncio.wait_for(aside(next_of_nothing, in_turn=in_turn), 60))
    assert isinstance(told.value.__cause__, StopIteration)


def test_work_that_is_cancelled_while_it_waits_for_its_turn_never_begins(monkeypatch):
    """Nobody wants it any more."""
    monkeypatch.setattr(dispatch.threads, "_turns", dispatch.threads._Turns(most=1))
    gate, begun = threading.Event(), []

    async def main():
        first = asyncio.ensure_future(aside(lambda: gate.wait(60), in_turn=True))
        second = asyncio.ensure_future(aside(lambda: begun.append("second"), in_turn=True))
        third = asyncio.ensure_future(aside(lambda: begun.append("third"), in_turn=True))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.set()
        await asyncio.gather(first, third)

    asyncio.run(main())
    assert begun == ["third"]


@pytest.mark.parametrize("error", [None, ValueError("half done")])
def test_a_wait_with_a_stop_goes_on_until_the_work_has_ended(error):
    """What it still does is done when the wait is over; how it failed is the cause."""
    begun, asked, ended = threading.Event(), threading.Event(), threading.Event()

    def work():
        begun.set()
        asked.wait(60)
        ended.set()
        if error is not None:
            raise error

    async def main():
        waiting = asyncio.ensure_future(aside(work, stop=lambda scope: asked.set()))
        assert await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await waiting
        assert ended.is_set()
        assert cancelled.value.__cause__ is error

    asyncio.run(main())


def test_a_wait_that_is_cancelled_again_ends_at_once():
    """Also when the work does not listen; its calls are cancelled then."""
    begun, go_on = threading.Event(), threading.Event()
    scopes: list[Scope] = []

    def work():
        begun.set()
        go_on.wait(60)

    async def main():
        waiting = asyncio.ensure_future(aside(work, stop=scopes.append))
        assert await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        await asyncio.sleep(0)
        assert [scope.cancelled for scope in scopes] == [False]
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [scope.cancelled for scope in scopes] == [True]

    asyncio.run(main())
    go_on.set()
