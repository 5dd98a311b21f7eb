"""A call that takes too long is given up, and none that only waits for those before it."""

import asyncio
import time

import pytest

from textgrad_engine.errors import ConnectionFailed, DeadlineExceeded, ServerFailed
from textgrad_engine.llm import Completion, Deadline, on_token
from textgrad_engine.testing import FunctionModel, ScriptedModel


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
