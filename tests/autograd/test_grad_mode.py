import asyncio
import gc
import threading

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn


@pytest.fixture(autouse=True)
def mode_is_left_alone():
    """No test leaks its mode."""
    assert tg.is_grad_enabled()
    yield
    assert tg.is_grad_enabled()


def test_the_mode_comes_back_after_an_exception():
    """Also through nesting."""
    with pytest.raises(KeyError), tg.no_grad(), tg.enable_grad(), tg.no_grad():
        raise KeyError
    assert tg.is_grad_enabled()


def test_modes_nest():
    """Each block ends with what was before it."""
    seen = []
    with tg.no_grad():
        seen.append(tg.is_grad_enabled())
        with tg.enable_grad():
            seen.append(tg.is_grad_enabled())
            with tg.set_grad_enabled(False):
                seen.append(tg.is_grad_enabled())
            seen.append(tg.is_grad_enabled())
        seen.append(tg.is_grad_enabled())
    assert seen == [False, True, False, True, False]


def test_one_mode_object_can_be_entered_again_inside_itself():
    """It keeps a stack, not one value."""
    mode = tg.no_grad()
    with mode:
        with mode:
            pass
        assert not tg.is_grad_enabled()
    assert tg.is_grad_enabled()


def test_one_mode_object_may_be_used_by_several_threads_and_tasks_at_once():
    """As a module that keeps one is in `func.pmap`: each gets back the mode that it came with."""
    mode = tg.no_grad()
    entered = threading.Barrier(2, timeout=60)

    def in_thread(outer):
        with tg.set_grad_enabled(outer):
            with mode:
                entered.wait()  # both are inside, and leave in any order
                inside = tg.is_grad_enabled()
            return inside, tg.is_grad_enabled()

    assert func.pmap(in_thread)([True, False]) == [(False, True), (False, False)]

    async def in_task(outer, waits):
        with tg.set_grad_enabled(outer):
            with mode:
                await asyncio.sleep(waits)
            return tg.is_grad_enabled()

    async def main():  # what was entered first is left first
        return await asyncio.gather(in_task(True, 0), in_task(False, 0.01))

    assert asyncio.run(main()) == [True, False]


@pytest.mark.parametrize(
    "decorator",
    [lambda: tg.no_grad, lambda: tg.no_grad(), lambda: tg.set_grad_enabled(False)],
    ids=["bare", "()", "set"],
)
def test_decorators_with_and_without_parentheses(decorator):
    """The function runs in the mode, and keeps its name, its result and its exceptions."""

    @decorator()
    def program(fail=False):
        if fail:
            raise KeyError
        return tg.is_grad_enabled()

    assert program() is False
    assert program.__name__ == "program"
    with pytest.raises(KeyError):
        program(fail=True)
    with tg.no_grad():
        assert tg.enable_grad(tg.is_grad_enabled)() is True
        assert tg.enable_grad()(tg.is_grad_enabled)() is True


def test_what_is_no_function_is_not_decorated():
    """A program of a decorated class would be made in the mode, and record all the same; and it would be no class."""
    for wrong, message in [
        (nn.Sequential, "got the class Sequential; its forward, say"),
        (True, r"got True; a block is `with no_grad\(\):`, without arguments"),
    ]:
        for decorator in (tg.no_grad, tg.enable_grad(), tg.set_grad_enabled(False)):
            with pytest.raises(TypeError, match="a grad mode decorates a function or a method, " + message):
                decorator(wrong)


def test_a_decorator_sets_the_mode_inside_the_function_only():
    """Decorating with set_grad_enabled changes nothing outside."""

    @tg.set_grad_enabled(False)
    def program():
        return tg.is_grad_enabled()

    assert tg.is_grad_enabled()
    assert program() is False


def test_set_grad_enabled_holds_from_the_call_on():
    """As in PyTorch it needs no block."""
    tg.set_grad_enabled(False)
    assert not tg.is_grad_enabled()
    tg.set_grad_enabled(True)


def test_a_coroutine_function_runs_in_the_mode():
    """Across its awaits, and without the other tasks noticing."""

    @tg.no_grad
    async def program():
        before = tg.is_grad_enabled()
        await asyncio.sleep(0)
        return before, tg.is_grad_enabled()

    async def other():
        await asyncio.sleep(0)
        return tg.is_grad_enabled()

    async def main():
        return await asyncio.gather(program(), other())

    assert asyncio.run(main()) == [(False, False), True]


def test_a_generator_runs_in_the_mode_and_its_consumer_does_not():
    """What is sent, thrown and returned passes through."""
    log = []

    @tg.no_grad()
    def program():
        log.append(tg.is_grad_enabled())
        try:
            got = yield "first"
            log.append((got, tg.is_grad_enabled()))
            yield "second"
        except KeyError:
            log.append(("thrown", tg.is_grad_enabled()))
            yield "third"
        finally:
            log.append(("closed", tg.is_grad_enabled()))
        return "result"

    steps = program()
    assert next(steps) == "first"
    assert tg.is_grad_enabled()
    assert steps.send("sent") == "second"
    assert steps.throw(KeyError()) == "third"
    assert tg.is_grad_enabled()
    with pytest.raises(StopIteration, match="result"):
        next(steps)
    assert log == [False, ("sent", False), ("thrown", False), ("closed", False)]
    steps = program()
    next(steps)
    steps.close()
    assert log[-1] == ("closed", False)
    assert tg.is_grad_enabled()


@pytest.mark.parametrize(
    ("decorator", "inside"),
    [(lambda: tg.no_grad, False), (lambda: tg.set_grad_enabled(False), False), (lambda: tg.enable_grad(), True)],
    ids=["no_grad", "set", "enable_grad"],
)
def test_an_async_generator_runs_in_the_mode_and_its_consumer_does_not(decorator, inside):
    """Across its awaits; what is sent and thrown passes through."""
    log = []

    @decorator()
    async def program():
        log.append(tg.is_grad_enabled())
        try:
            got = yield "first"
            await asyncio.sleep(0)
            log.append((got, tg.is_grad_enabled()))
            yield "second"
        except KeyError:
            log.append(("thrown", tg.is_grad_enabled()))
            yield "third"
        finally:
            await asyncio.sleep(0)
            log.append(("closed", tg.is_grad_enabled()))

    async def main():
        steps = program()
        assert await anext(steps) == "first"
        assert tg.is_grad_enabled() is not inside
        assert await steps.asend("sent") == "second"
        assert await steps.athrow(KeyError()) == "third"
        assert tg.is_grad_enabled() is not inside
        with pytest.raises(StopAsyncIteration):
            await anext(steps)
        assert log == [inside, ("sent", inside), ("thrown", inside), ("closed", inside)]
        steps = program()
        await anext(steps)
        await steps.aclose()
        assert log[-2:] == [inside, ("closed", inside)]
        steps = program()
        await anext(steps)
        with pytest.raises(LookupError, match="mine"):
            await steps.athrow(LookupError("mine"))
        assert log[-2:] == [inside, ("closed", inside)]
        assert tg.is_grad_enabled() is not inside

    with tg.set_grad_enabled(not inside):
        asyncio.run(main())


@pytest.mark.parametrize("forgotten", [True, False], ids=["forgotten", "kept until the loop ends"])
def test_an_async_generator_that_is_not_used_up_is_closed_once_and_in_the_mode(forgotten):
    """By the loop, which knows of the decorated one only."""
    log, kept, problems = [], [], []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        closed = asyncio.Event()

        @tg.no_grad
        async def program():
            try:
                yield "first"
            finally:
                await asyncio.sleep(0)
                log.append(tg.is_grad_enabled())
                closed.set()

        kept.append(program())
        await anext(kept[0])
        if forgotten:
            kept.clear()
            gc.collect()
            await closed.wait()

    asyncio.run(main())
    assert (log, problems) == ([False], [])


def test_the_mode_is_per_thread_and_per_task():
    """A new thread begins with recording on; a task that turns it off does so for itself."""
    seen = []
    with tg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]

    async def off():
        tg.set_grad_enabled(False)
        await asyncio.sleep(0)
        return tg.is_grad_enabled()

    async def main():
        return await asyncio.gather(off(), asyncio.to_thread(tg.is_grad_enabled)), tg.is_grad_enabled()

    assert asyncio.run(main()) == ([False, True], True)


def test_the_mode_is_captured_at_dispatch():
    """What is recorded depends on where the call was made, not on when it runs; forward itself records nothing."""
    inner = []

    class Later(tg.Function):
        @staticmethod
        async def forward(ctx, text):
            inner.append(tg.is_grad_enabled())
            return text + "!"

    prompt = tg.Variable("p", requires_grad=True)
    with tg.no_grad():
        silent = Later.apply(prompt)
    recorded = Later.apply(prompt)
    with tg.no_grad():
        assert recorded.data == "p!"
    assert (silent.requires_grad, silent.is_leaf) == (False, True)
    assert (recorded.requires_grad, recorded.is_leaf) == (True, False)
    assert inner == [False, False]


def test_results_under_no_grad_are_leaves():
    """They have no history, and can be made to require grad afterwards."""
    prompt = tg.Variable("p", requires_grad=True)
    with tg.no_grad():
        result = prompt + "!"
    assert result.is_leaf
    assert not result.requires_grad
    result.requires_grad_()
    (result + "?").backward("shorter")
    assert [item.data for item in result.grad] == ["shorter"]
    assert prompt.grad == []
