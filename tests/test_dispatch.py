import asyncio
import gc
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from textgrad_engine import dispatch
from textgrad_engine.errors import CallCancelled, DispatchError

from .pressing import press_ctrl_c

COLOUR = ContextVar("colour", default="grey")


class Blocked:
    """A piece of work on the loop thread that is under way until `release`: what is posted meanwhile comes after it."""

    def __init__(self):
        self._entered, self._go_on = threading.Event(), threading.Event()
        dispatch.call_soon(self._work)

    def _work(self):
        self._entered.set()
        self._go_on.wait(60)

    def entered(self):
        assert self._entered.wait(60)

    def release(self):
        self._go_on.set()


def held(label="the answer"):
    """A call that ends when its gate does."""
    gate = Future()

    async def work():
        return await asyncio.wrap_future(gate)

    return gate, dispatch.submit(work, label=label, where="program.py:3")


def failed(error, label="the answer"):
    def work():
        raise error

    return dispatch.submit(work, label=label, where="program.py:3")


def settled(call):
    """Wait until it is done, without raising."""
    done = threading.Event()
    call.on_done(lambda _: done.set())
    assert done.wait(60)


def test_an_error_is_raised_where_the_value_is_read_with_what_and_where():
    """The user learns which call it was and the line that made it, not only the loop thread's traceback."""
    call = failed(KeyError("queue"))
    with pytest.raises(KeyError) as caught:
        call.result()
    assert caught.value.__notes__ == ["while computing the answer, asked for at program.py:3"]
    assert call.done
    assert call.failed


def test_reading_twice_piles_up_neither_notes_nor_traceback():
    """A notebook cell that is run again shows the same message."""
    call = failed(KeyError("queue"))
    lengths = []
    for _ in range(4):
        with pytest.raises(KeyError) as caught:
            call.result()
        lengths.append(len(caught.traceback))
    assert len(caught.value.__notes__) == 1
    assert len(set(lengths)) == 1


def test_one_exception_of_two_calls_is_noted_once():
    """A shared exception object does not grow with every call that raises it."""
    error = ValueError("down")
    calls = [failed(error, label) for label in ("one", "two", "three")]
    for call in calls:
        settled(call)
    assert len(error.__notes__) == 1


def test_dependents_fail_with_the_same_exception_and_never_start():
    """One failed call is one exception, however much was built on it."""
    started = []
    gate, first = held()
    second = dispatch.submit(lambda: started.append(2), [first], label="second")
    third = dispatch.submit(lambda: started.append(3), [second, first, second], label="third")
    error = ValueError("down")
    gate.set_exception(error)
    for call in (first, second, third):
        with pytest.raises(ValueError, match="down") as caught:
            call.result()
        assert caught.value is error
    late = dispatch.submit(lambda: started.append(4), [first], label="late")
    with pytest.raises(ValueError, match="down"):
        late.result()
    assert started == []
    assert len(error.__notes__) == 1


def test_a_long_chain_fails_without_recursion():
    """20,000 values that depend on a failed one all fail."""
    gate, call = held()
    for _ in range(20_000):
        call = dispatch.submit(lambda: None, [call])
    gate.set_exception(ValueError("down"))
    with pytest.raises(ValueError, match="down"):
        call.result()


def test_waiting_on_the_loop_thread_raises_instead_of_hanging():
    """The message says to await."""
    gate, slow = held()
    reader = dispatch.submit(lambda: slow.result(), label="the reader")

    async def work():
        return slow.result()

    for call in (reader, dispatch.submit(work, label="the reader")):
        with pytest.raises(DispatchError, match=r"the answer is not there yet.*event loop.*`await variable`"):
            call.result()
    gate.set_result(1)
    assert slow.result() == 1
    assert dispatch.submit(lambda: slow.result()).result() == 1  # it is there now


def test_work_that_raises_does_not_stop_what_was_posted_with_it(caplog):
    """One faulty callback must not leave other calls waiting for ever."""
    blocked = Blocked()
    blocked.entered()
    with caplog.at_level(logging.CRITICAL, logger="asyncio"):
        dispatch.call_soon(lambda: 1 / 0)
        call = dispatch.submit(lambda: "here")
        blocked.release()
        assert call.wait(60)
    assert call.result() == "here"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_an_exit_inside_a_call_is_the_calls_result(error, asynchronous):
    """`sys.exit` in a forward ends the reader, not the thread that every other call needs."""

    async def work():
        raise error

    call = dispatch.submit(work) if asynchronous else failed(error)
    with pytest.raises(type(error)):
        call.result()
    assert dispatch.submit(lambda: "alive").result() == "alive"


def test_ctrl_c_while_waiting():
    """The wait can be interrupted, and the value is not lost by it."""
    start, first = held()
    gate = Future()

    async def work():
        press_ctrl_c()
        return await asyncio.wrap_future(gate)

    call = dispatch.submit(work, [first])

    def read():
        start.set_result(None)
        return call.result()

    with pytest.raises(KeyboardInterrupt):
        read()
    gate.set_result("later")
    assert call.result() == "later"


def test_a_wait_can_end_before_the_value_is_there():
    """A timeout says that it is not done, and raises nothing."""
    gate, call = held()
    assert not call.wait(0.001)
    assert not call.done
    gate.set_result(1)
    assert call.wait(60)
    assert call.wait(0)


def test_waiting_is_counted_for_this_thread_only():
    """A program that waits for answers can be told from one that does not."""
    gate, call = held()
    before = dispatch.times_waited()
    assert not call.wait(0.001)
    gate.set_result(1)
    thread = threading.Thread(target=call.result)
    thread.start()
    thread.join()
    settled(call)
    assert call.result() == 1
    assert dispatch.times_waited() == before + 1


# other event loops


def test_await_in_a_loop_of_the_users():
    """A web handler waits without blocking its loop."""
    gate, call = held()

    async def main():
        waiting = asyncio.create_task(read())
        await asyncio.sleep(0)
        gate.set_result("value")
        return await waiting

    async def read():
        return await call

    assert asyncio.run(main()) == "value"


def test_await_raises_what_the_call_failed_with():
    """Awaiting and reading fail alike."""

    async def main():
        await failed(KeyError("queue"))

    with pytest.raises(KeyError) as caught:
        asyncio.run(main())
    assert len(caught.value.__notes__) == 1


def test_a_blocking_read_where_a_loop_is_running():
    """A notebook's cell runs inside a running loop and reads as any other code does."""

    async def cell():
        return dispatch.run(answer)

    async def answer():
        return 42

    assert asyncio.run(cell()) == 42


def test_a_waiter_that_gives_up_does_not_cancel_the_call():
    """Others may want the value."""
    gate, call = held()

    async def main():
        task = asyncio.create_task(read())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def read():
        await call

    asyncio.run(main())
    gate.set_result("value")
    assert call.result() == "value"


def test_a_loop_that_was_closed_meanwhile_keeps_nobody_else_waiting():
    """The first waiter's loop is gone when the value comes; the second one gets it."""
    gate, call = held()
    loop = asyncio.new_event_loop()

    async def read():
        await call

    task = loop.create_task(read())
    loop.run_until_complete(asyncio.sleep(0))
    got = Future()
    call.on_done(got.set_result)
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    gate.set_result("value")
    assert got.result(60) is call
    assert call.result() == "value"


def test_many_threads_read_one_value():
    """All of them are woken."""
    gate, call = held()
    got = []
    threads = [threading.Thread(target=lambda: got.append(call.result())) for _ in range(20)]
    for thread in threads:
        thread.start()
    gate.set_result("value")
    for thread in threads:
        thread.join(60)
    assert got == ["value"] * 20


# cancellation


def test_a_scope_cancels_what_runs_and_refuses_what_has_not_begun():
    """Their readers get CallCancelled with the label; calls outside of the scope go on."""
    outside_gate, outside = held("outside")
    with dispatch.Scope() as scope:
        _, running = held("running")
        waiting = dispatch.submit(lambda: "never", [outside], label="waiting")
        dependent = dispatch.submit(lambda: "never", [running], label="dependent")
    dispatch.run(_nothing)  # what runs is running now
    scope.cancel()
    with pytest.raises(CallCancelled, match="running was cancelled"):
        running.result()
    with pytest.raises(CallCancelled, match="running was cancelled"):
        dependent.result()
    outside_gate.set_result("value")
    with pytest.raises(CallCancelled, match="waiting was cancelled before it began"):
        waiting.result()
    assert outside.result() == "value"
    with scope, pytest.raises(CallCancelled):
        dispatch.submit(lambda: "never").result()


async def _nothing():
    pass


def test_a_scope_inside_another_one_belongs_to_it():
    """What cancels the outer one cancels its calls; not the other way round."""
    with dispatch.Scope() as outer:
        _, beside = held("beside")
        with dispatch.Scope() as inner:
            _, within = held("within")
    dispatch.run(_nothing)  # both are running now
    inner.cancel()
    with pytest.raises(CallCancelled, match="within was cancelled"):
        within.result()
    assert (inner.cancelled, outer.cancelled, beside.done) == (True, False, False)
    with outer, dispatch.Scope() as another:
        assert dispatch.current_scope() is another
        _, later = held("later")
    dispatch.run(_nothing)
    outer.cancel()
    for call, name in ((beside, "beside"), (later, "later")):
        with pytest.raises(CallCancelled, match=f"{name} was cancelled"):
            call.result()
    assert another.cancelled


def test_a_call_that_is_cancelled_between_its_start_and_its_first_step():
    """It is done all the same: nobody waits for ever, and its coroutine leaves no warning."""
    blocked = Blocked()
    blocked.entered()
    before = Blocked()
    with dispatch.Scope() as scope:
        _, call = held()
    after = Blocked()
    blocked.release()
    before.entered()
    dispatch.call_soon(lambda: None)  # wakes the loop once more, ahead of the call's first step
    before.release()
    after.entered()
    scope.cancel()
    after.release()
    assert call.wait(60)
    with pytest.raises(CallCancelled, match="the answer was cancelled"):
        call.result()


def test_a_call_that_catches_its_cancellation_keeps_its_value():
    """Cancelling asks; a call that has its value already may answer."""
    started = threading.Event()

    async def work():
        try:
            started.set()
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "saved"

    with dispatch.Scope() as scope:
        call = dispatch.submit(work)
    assert started.wait(60)
    scope.cancel()
    assert call.result() == "saved"


def test_calls_of_a_scope_are_forgotten_when_they_are_done():
    """A long run does not collect them."""
    with dispatch.Scope() as scope:
        calls = [dispatch.submit(_nothing) for _ in range(10)]
    for call in calls:
        call.result()
    assert not scope._calls


def test_calls_in_the_background_are_cancelled_with_the_scope_and_not_waited_for():
    """A piece of work that goes on behind the block that began it waits for them itself."""
    with dispatch.Scope() as outer:
        failure = failed(ValueError("not yours"))
        with dispatch.Scope(background=True), dispatch.Scope() as piece:
            _, call = held("behind")
            settled(failed(KeyError("theirs")))
        settled(failure)
    assert outer.wait() == []
    assert piece.wait(0.0) == [call]
    assert (outer.failures, piece.failures) == ({ValueError}, {KeyError})
    assert outer.busy
    dispatch.run(_nothing)  # it is running now
    outer.cancel()
    with pytest.raises(CallCancelled, match="behind was cancelled"):
        call.result()
    assert (piece.wait(), outer.busy) == ([], False)


# first steps, see NOTE [First steps]


def test_a_call_that_waits_stays_in_the_task_that_it_began_in():
    """Timeouts and cancel scopes remember the current task; calls that are there at once may share one."""

    async def work():
        async with asyncio.timeout(30):
            before = asyncio.current_task()
            await asyncio.sleep(0)
            return before, asyncio.current_task()

    pairs = [call.result() for call in [dispatch.submit(work) for _ in range(10)]]
    assert all(before is after is not None for before, after in pairs)
    assert len({before for before, _ in pairs}) == 10


def test_a_timeout_that_was_set_in_the_first_step_ends_that_call_only():
    """And what the call makes of it is its result."""
    gates, others = zip(*[held() for _ in range(3)], strict=True)

    async def work():
        try:
            async with asyncio.timeout(0):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            return "late"

    assert [call.result() for call in [dispatch.submit(work) for _ in range(3)]] == ["late"] * 3
    for gate, call in zip(gates, others):
        assert not call.done
        gate.set_result("there")
        assert call.result() == "there"


def test_a_call_that_cancels_its_own_task_and_ends_disturbs_no_other():
    """The next one has a task of its own."""

    async def rash(waits):
        asyncio.current_task().cancel()
        if waits:
            await asyncio.sleep(0)
        return "rash"

    blocked = Blocked()
    blocked.entered()
    calls = [dispatch.submit(lambda n=number: rash(n % 4 == 2) if n % 2 == 0 else _quiet()) for number in range(12)]
    blocked.release()
    for number, call in enumerate(calls):
        if number % 4 == 2:
            with pytest.raises(CallCancelled):
                call.result()
        else:
            assert call.result() == ("rash" if number % 4 == 0 else "quiet")


def test_a_call_that_cancels_every_task_of_the_loop_stops_nothing_that_comes_later():
    """Also those that were about to begin calls: what they would have begun is begun by others."""

    async def rash():
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    for burst in range(1, 9):
        blocked = Blocked()
        blocked.entered()
        calls = [dispatch.submit(_quiet) for _ in range(burst)]
        calls += [dispatch.submit(rash)] + [dispatch.submit(_quiet) for _ in range(20)]
        blocked.release()
        for call in calls:
            settled(call)
        assert dispatch.run(_quiet) == "quiet"


async def _quiet():
    await asyncio.sleep(0)
    return "quiet"


def test_a_call_sees_its_own_context_in_every_step():
    """Also what it set itself, also after it waited, and no other call does."""

    async def work(colour):
        COLOUR.set(colour)
        seen = []
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append(COLOUR.get())
        try:
            await asyncio.wait_for(asyncio.get_running_loop().create_future(), 0)
        except TimeoutError:
            seen.append(COLOUR.get())
        return seen

    calls = [dispatch.submit(lambda c=colour: work(c)) for colour in "abc"]
    assert [call.result() for call in calls] == [[colour] * 4 for colour in "abc"]
    assert dispatch.submit(lambda: COLOUR.get()).result() == "grey"


def test_calls_that_make_calls_leave_the_loop_time_for_others():
    """A timer comes due while a chain of calls, none of which waits, goes on."""
    due = threading.Event()
    ended = threading.Event()

    def link(left):
        if due.is_set() or not left:
            ended.set()
        else:
            dispatch.submit(lambda: link(left - 1))

    async def work():
        asyncio.get_running_loop().call_later(0, due.set)

    dispatch.submit(lambda: link(1_000_000))
    dispatch.run(work)
    assert ended.wait(60)
    assert due.is_set()


def test_calls_start_in_the_order_of_dispatch_whether_they_wait_or_not():
    """What a burst asks for first is asked first."""
    started = []

    async def work(number):
        started.append(number)
        if number % 3:
            await asyncio.sleep(0)

    for call in [dispatch.submit(lambda n=number: work(n)) for number in range(1000)]:
        call.result()
    assert started == list(range(1000))


def test_an_error_in_a_callback_after_a_wait_stops_nobody(caplog):
    """The call is done, and the next one begins."""
    gate, call = held()
    dispatch.run(_nothing)
    call.on_done(lambda _: 1 / 0)
    with caplog.at_level(logging.CRITICAL, logger="asyncio"):
        gate.set_result("there")
        assert call.result() == "there"
        assert dispatch.submit(lambda: "next").result() == "next"
        gc.collect()  # the task that carried the error is reported, and logged below the level above


# order, context, place


def test_a_call_starts_when_all_that_it_waits_for_is_there():
    """In whatever order that comes; the same call twice counts as it should."""
    gates, calls = zip(*[held() for _ in range(3)], strict=True)
    total = dispatch.submit(lambda: [call.result() for call in calls], [*calls, calls[0]])
    for number in (2, 0, 1):
        assert not total.done
        gates[number].set_result(number)
    assert total.result() == [0, 1, 2]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_of_several_that_fail_the_first_in_order_is_told(order):
    """Whichever failed first in time; as soon as those before it are there, and not only when all are."""
    gates, calls = zip(*[held() for _ in range(4)], strict=True)
    total = dispatch.submit(lambda: "never", calls)
    both = dispatch.joint(calls)
    ended = []
    for number in order:
        ended.append(number)
        if number in (1, 2):
            gates[number].set_exception(ConnectionError(f"{number} is down"))
        else:
            gates[number].set_result(number)
        assert calls[number].wait(60)
        for call in (total, both):
            if {0, 1} <= set(ended):
                with pytest.raises(ConnectionError, match="1 is down"):
                    call.result()
            else:
                assert not call.done


def test_a_call_behind_a_hundred_thousand_others():
    """They are waited for without recursion, those that are there already and those that are not."""
    gate, last = held()
    calls = [dispatch.submit(lambda: 1) for _ in range(100_000)]
    total = dispatch.submit(lambda: sum(call.result() for call in calls), [last, *calls])
    gate.set_result(1)
    assert total.result() == 100_000


def test_the_context_is_that_of_the_moment_of_dispatch():
    """Later changes do not reach the call, and changes in the call do not leak."""
    gate, first = held()

    async def work():
        seen = COLOUR.get()
        COLOUR.set("black")
        return seen

    token = COLOUR.set("red")
    call = dispatch.submit(work, [first])
    COLOUR.reset(token)
    gate.set_result(None)
    assert call.result() == "red"
    assert COLOUR.get() == "grey"
    assert dispatch.submit(lambda: COLOUR.get()).result() == "grey"


def test_ten_thousand_calls_at_once():
    """All under way together, none lost."""
    gate = Future()

    async def work(number):
        await asyncio.wrap_future(gate)
        return number

    calls = [dispatch.submit(lambda n=number: work(n)) for number in range(10_000)]
    assert not any(call.done for call in calls)
    gate.set_result(None)
    assert [call.result() for call in calls] == list(range(10_000))


def test_who_makes_calls_under_a_lock_that_the_loop_waits_for_goes_on():
    """However many they are, making calls waits for nothing."""
    lock, begun = threading.Lock(), []

    def first():
        with lock:
            begun.append(-1)

    with lock:
        dispatch.submit(first)
        for number in range(1_000):
            dispatch.submit(lambda n=number: begun.append(n))
        assert begun == []
    dispatch.run(lambda: asyncio.sleep(0))
    assert begun == list(range(-1, 1_000))


def test_a_callback_on_a_finished_call_comes_at_once():
    """In the caller's thread, exactly once."""
    call = dispatch.submit(lambda: 1)
    call.result()
    seen = []
    call.on_done(lambda done: seen.append((done, threading.get_ident())))
    assert seen == [(call, threading.get_ident())]


def test_the_callers_line_is_the_users():
    """This file, not the library's."""
    file, line = str(dispatch.caller_line()).rsplit(":", 1)
    assert file == __file__
    assert int(line) == test_the_callers_line_is_the_users.__code__.co_firstlineno + 2


def test_the_line_of_a_pass_is_found_where_there_is_none():
    """Who vouches for the frames up to the pass gets a line also outside of one."""
    file, line = str(dispatch.caller_line(of_pass=True)).rsplit(":", 1)
    assert file == __file__
    assert int(line) == test_the_line_of_a_pass_is_found_where_there_is_none.__code__.co_firstlineno + 2
    token = dispatch.asked_from.set(dispatch.Line("program.py", 3))
    assert str(dispatch.caller_line(of_pass=True)) == "program.py:3"
    assert dispatch.caller_line().file == __file__
    dispatch.asked_from.reset(token)


def test_work_aside_knows_a_line_of_the_user():
    """The one that began it, not one of Python's threads."""

    async def line_aside():
        return await dispatch.aside(dispatch.caller_line)

    assert asyncio.run(line_aside()).file == __file__


def test_where_nobody_wrote_anything_there_is_no_line():
    """A thread of the user's own, with nothing but the library's code in it."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(dispatch.caller_line).result() == ""


def test_a_line_of_a_cell_is_called_as_the_notebook_calls_it(monkeypatch):
    """The file that a kernel names for a cell is nowhere, and has a number for its name."""
    names = {"/there/ipykernel_7/2210870316.py": ("Cell", "In[6]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert str(dispatch.Line("/there/ipykernel_7/2210870316.py", 2)) == "Cell In[6], line 2"
    assert str(dispatch.Line("program.py", 3)) == "program.py:3"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # imported, and no kernel
    assert str(dispatch.Line("/there/ipykernel_7/2210870316.py", 2)) == "/there/ipykernel_7/2210870316.py:2"


def test_what_begins_the_tasks_of_a_kernel_is_no_line_of_the_user():
    """Of `asyncio.create_task` in a cell nothing else is on the stack."""
    found = {}
    path = os.path.join("lib", "site-packages", "tornado", "platform", "asyncio.py")
    exec(compile("line = caller_line()", path, "exec"), {"caller_line": dispatch.caller_line}, found)
    assert found["line"].file == __file__


# processes


def in_a_fork(work):
    """What `work()` gives in a forked child, as text."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(5)
            try:
                text = str(work())
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
            os.write(writing, text.encode()[:4000])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text


def test_a_forked_child_has_a_loop_of_its_own():
    """It neither uses the parent's thread, which is not there, nor disturbs the parent's calls."""
    gate, call = held()
    assert in_a_fork(lambda: dispatch.submit(lambda: "fresh").result()) == "fresh"
    gate.set_result("value")
    assert call.result() == "value"


def test_a_value_under_way_is_lost_in_a_forked_child():
    """Reading it, awaiting it or building on it says so, instead of waiting for ever."""
    gate, call = held()

    async def read():
        await call

    for work in (
        call.result,
        lambda: dispatch.submit(lambda: "never", [call]).result(),
        lambda: dispatch.run(read),
        lambda: asyncio.run(read()),
    ):
        assert in_a_fork(work).startswith("DispatchError: the answer was under way in another process")
    gate.set_result("value")
    assert call.result() == "value"
    assert in_a_fork(call.result) == "value"


def test_a_script_that_ends_with_calls_under_way_ends_quietly():
    """Nothing is printed at exit, and nothing hangs."""
    script = (
        "import asyncio, logging; from textgrad_engine import dispatch\n"
        "logging.getLogger('asyncio').setLevel('ERROR')  # -X dev also tells of what took long, on a busy machine\n"
        "async def work(): await asyncio.get_running_loop().create_future()\n"
        "calls = [dispatch.submit(work) for _ in range(100)]\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
