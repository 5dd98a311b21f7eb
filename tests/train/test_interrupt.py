from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import queue
import signal
import subprocess
import sys
import threading
import types
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.errors import CallCancelled, Stopped
from textgrad_engine.llm import Request, Stop
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import interrupt
from textgrad_engine.train.interrupt import (
    at_once,
    finishing_on_interrupt,
    interruptible,
    stopping_on_interrupt,
    telling,
)


def test_the_second_signal_is_a_keyboard_interrupt() -> None:
    """Who presses twice means it."""
    with stopping_on_interrupt() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_handler_of_before_is_put_back() -> None:
    """After success and after an error."""
    before = signal.getsignal(signal.SIGINT)
    with stopping_on_interrupt():
        assert signal.getsignal(signal.SIGINT) is not before
    with pytest.raises(ValueError, match="x"), stopping_on_interrupt():
        raise ValueError("x")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """A program that a script started in the background is not stopped by a Ctrl-C that was meant for another."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with finishing_on_interrupt(), stopping_on_interrupt() as stop:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
            assert not stop.is_set
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_after_the_signal_nothing_more_is_sent() -> None:
    """Calls that are dispatched afterwards fail at once."""
    model = FunctionModel(lambda request: "x")
    with stopping_on_interrupt():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped):
            _ = nn.ChatCompletion("{w}", model=model)(w="late").data
    assert model.requests == []


def test_an_answer_that_never_comes_is_given_up() -> None:
    """The grace is an upper bound, not a wait: without any, a call that hangs is cancelled."""
    under_way = threading.Event()

    async def hang(request: Request) -> Any:
        under_way.set()
        await asyncio.Event().wait()

    with stopping_on_interrupt(grace=0.0):
        answer = nn.ChatCompletion("{w}", model=FunctionModel(hang))(w="x")
        assert under_way.wait(60)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(CallCancelled):
            _ = answer.data


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM that a program hears")
def test_after_sigterm_answers_are_given_up_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends it kills some seconds later, and the result is to be written by then."""
    monkeypatch.setattr(interrupt, "HASTE", 0.0)
    under_way = threading.Event()

    async def hang(request: Request) -> Any:
        under_way.set()
        await asyncio.Event().wait()

    with finishing_on_interrupt(terminate=True), stopping_on_interrupt(grace=600.0):
        answer = nn.ChatCompletion("{w}", model=FunctionModel(hang))(w="x")
        assert under_way.wait(60)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(CallCancelled):
            _ = answer.data


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM that a program hears")
def test_sigterm_that_is_sent_to_a_program_and_to_its_group_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout 30m` ends a run with its result; who sends it again later means it."""
    with finishing_on_interrupt(terminate=True), stopping_on_interrupt() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set
        monkeypatch.setattr(interrupt, "ONCE", 0.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM that a program hears")
def test_sigterm_that_is_sent_again_and_again_is_heard_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `while kill $pid; do sleep 0.2; done`: each is soon after the one before it, and not after the first."""
    seconds = iter([10.0, 10.2, 10.4, 10.6])
    monkeypatch.setattr(interrupt, "time", types.SimpleNamespace(monotonic=lambda: next(seconds)))
    with finishing_on_interrupt(terminate=True), stopping_on_interrupt() as stop:
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert stop.is_set
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.skipif(sys.platform == "win32", reason="another signal stands for that of Windows")
def test_what_ends_a_program_on_windows_counts_as_sigterm() -> None:
    """Nobody can send SIGTERM there; Ctrl-Break is SIGBREAK, and what ends a job that was started in its own group."""
    code = (
        "import signal\n"
        "signal.SIGBREAK = signal.SIGUSR1\n"
        "from textgrad_engine.cli import output\n"
        "from textgrad_engine.train import interrupt\n"
        "with interrupt.finishing_on_interrupt(terminate=True) as heard, interrupt.stopping_on_interrupt() as stop:\n"
        "    signal.raise_signal(signal.SIGBREAK)\n"
        "assert stop.is_set\n"
        "print(output._after(heard, output.INTERRUPTED))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout == "143\n"


def test_outside_of_the_main_thread_only_the_switch_works() -> None:
    """Python delivers no signals there, and a web handler must not take them over."""
    before = signal.getsignal(signal.SIGINT)
    seen: list[Any] = []

    def work() -> None:
        with stopping_on_interrupt() as stop:
            seen.append(signal.getsignal(signal.SIGINT))
            stop.set()
            with pytest.raises(Stopped):
                _ = nn.ChatCompletion("{w}", model=FunctionModel(lambda request: "x"))(w="x").data
            seen.append("stopped")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert seen == [before, "stopped"]


def test_before_anything_is_asked_the_first_signal_raises() -> None:
    """There is nothing to save."""
    with finishing_on_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_after_all_was_asked_the_first_signal_changes_nothing() -> None:
    """What was paid for is worked out; the second signal raises all the same."""
    told: list[tuple[bool, str]] = []
    with finishing_on_interrupt(lambda asking, by: told.append((asking, by))):
        with stopping_on_interrupt() as stop:
            pass
        signal.raise_signal(signal.SIGINT)
        assert (told, stop.is_set) == ([(False, "Ctrl-C")], False)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert told == [(False, "Ctrl-C")]


def test_a_signal_while_models_are_asked_counts_afterwards() -> None:
    """It is the first of two, and what is asked later in the same block is not sent either."""
    told: list[tuple[bool, str]] = []
    with finishing_on_interrupt(lambda asking, by: told.append((asking, by))):
        with stopping_on_interrupt() as first:
            signal.raise_signal(signal.SIGINT)
        with stopping_on_interrupt() as second:
            assert (first.is_set, second.is_set, told) == (True, True, [(True, "Ctrl-C")])
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_innermost_is_told() -> None:
    """Who shows bars says it there; nobody says it twice."""
    outer: list[tuple[bool, str]] = []
    inner: list[tuple[bool, str]] = []
    with finishing_on_interrupt(lambda asking, by: outer.append((asking, by))), stopping_on_interrupt():
        with telling(lambda asking, by: inner.append((asking, by))):
            pass
        with telling(lambda asking, by: inner.append((asking, by))):
            signal.raise_signal(signal.SIGINT)
    assert (outer, inner) == ([], [(True, "Ctrl-C")])


def test_the_second_signal_gives_up_what_is_under_way() -> None:
    """Threads that wait for an answer must not hold up the end."""
    under_way = threading.Event()

    async def hang(request: Request) -> Any:
        under_way.set()
        await asyncio.Event().wait()

    with stopping_on_interrupt():
        answer = nn.ChatCompletion("{w}", model=FunctionModel(hang))(w="x")
        assert under_way.wait(60)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(CallCancelled):
            _ = answer.data


def test_a_run_in_another_thread_hears_what_the_main_thread_hears() -> None:
    """Of a block that is open there, by the context that the thread was given, as `Trainer.afit` does."""
    entered, pressed = threading.Event(), threading.Event()
    stopped: list[tuple[bool, str]] = []

    def work() -> None:
        with stopping_on_interrupt() as stop:
            entered.set()
            assert pressed.wait(60)
            stopped.append(stop.is_set)

    with finishing_on_interrupt():
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        assert entered.wait(60)
        signal.raise_signal(signal.SIGINT)
        pressed.set()
        thread.join(60)
    assert stopped == [True]


def test_interruptible_work_hears_what_the_block_around_it_hears() -> None:
    """Ctrl-C in the main thread, where a block listens, stops what is awaited there."""
    entered, pressed = threading.Event(), threading.Event()

    def work() -> bool:
        with stopping_on_interrupt() as stop:
            entered.set()
            assert pressed.wait(60)
            return stop.is_set

    async def main() -> bool:
        waiting = asyncio.ensure_future(interruptible(work))
        assert await asyncio.to_thread(entered.wait, 60)
        signal.raise_signal(signal.SIGINT)
        pressed.set()
        return await waiting

    async def listening() -> bool:
        with finishing_on_interrupt():
            return await main()

    assert asyncio.run(listening())


# several works at once


def test_works_at_once_give_their_results_in_order_and_know_the_callers_context() -> None:
    """Each in a thread of its own: all have begun before the first one ends."""
    begun, known = threading.Barrier(3), contextvars.ContextVar("known", default="")
    token = known.set("here")

    def work(number: int) -> tuple[int, str, int]:
        begun.wait(60)
        return number, known.get(), threading.get_ident()

    try:
        found = at_once([functools.partial(work, number) for number in range(3)], 3)
    finally:
        known.reset(token)
    assert [each[:2] for each in found] == [(0, "here"), (1, "here"), (2, "here")]
    assert len({each[2] for each in found}) == 3


def test_no_more_works_are_done_at_once_than_are_wanted() -> None:
    """Six runs at two at a time."""
    lock, now, most = threading.Lock(), [0], [0]
    together = threading.Barrier(2)

    def work() -> None:
        with lock:
            now[0] += 1
            most[0] = max(now[0], most[0])
        together.wait(60)
        with lock:
            now[0] -= 1
        together.wait(60)

    at_once([work] * 6, 2)
    assert most == [2]


def test_one_work_is_done_in_the_callers_thread() -> None:
    """So that what may be used there alone can be."""
    assert at_once([threading.get_ident], 4) == [threading.get_ident()]


def test_an_error_in_one_work_stops_the_others_and_is_raised_when_they_have_ended() -> None:
    """What has not begun is left out; of several errors that is told which came first."""
    asking, done = threading.Event(), list[str]()

    def fails() -> None:
        assert asking.wait(60)
        raise KeyError("gone")

    def asks() -> None:
        with stopping_on_interrupt() as stop:
            asking.set()
            while not stop.is_set:
                threading.Event().wait(0.001)
            done.append("stopped")
        raise ValueError("it was stopped")

    with pytest.raises(KeyError, match="gone"):
        at_once([asks, fails, lambda: done.append("begun")], 2)
    assert done == ["stopped"]


def test_the_first_signal_stops_all_works_at_once_and_the_second_gives_them_up() -> None:
    """Answers that are under way are waited for once, and not twice."""
    under_way, stops, ended = threading.Barrier(3), list[Stop](), queue.SimpleQueue[str]()

    async def hang(request: Request) -> Any:
        await asyncio.Event().wait()

    def work() -> str:
        with stopping_on_interrupt() as stop:
            stops.append(stop)
            answer = nn.ChatCompletion("{w}", model=FunctionModel(hang))(w="x")
            under_way.wait(60)
            try:
                return str(answer.data)
            except (CallCancelled, Stopped):  # given up, or not sent before the signal came
                ended.put("stopped" if stop.is_set else "not")
                raise

    def presses() -> None:
        under_way.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        heard = threading.Event()
        stops[0].listen(heard.set)
        if not stops[0].is_set:  # two that come at once are heard as one
            assert heard.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=presses).start()
    with pytest.raises(KeyboardInterrupt):
        at_once([work, work], 2)
    assert [ended.get(timeout=60) for _ in range(2)] == ["stopped"] * 2
