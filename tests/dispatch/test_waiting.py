"""Waits that a Ctrl-C ends, also on Windows, where no signal ends a wait for a lock."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from types import SimpleNamespace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, func, nn, optim
from textgrad_engine.dispatch import waiting
from textgrad_engine.testing import simulated_task

TASK = simulated_task()
TRAIN, VAL = TASK.train[:24], TASK.val[:12]


class Late:
    """A model whose answers are never there at once."""

    name = "late"

    async def complete(self, request: Any) -> Any:
        await asyncio.sleep(0.001)
        return await TASK.model.complete(request)


class Waiting(nn.Module):
    """A program that waits for its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = TASK.program()

    def forward(self, parcel: str) -> Any:
        answer = self.inner(parcel=parcel)
        assert answer.data
        return answer


def search(make: Callable[[Any], Any], **settings: Any) -> None:
    program = TASK.program()
    tg.Trainer(max_steps=2, batch_size=8, **settings).fit(program, TASK.loss, make(program.parameters()), TRAIN, VAL)


@pytest.mark.parametrize(
    "work",
    [
        lambda: search(optim.TGD, concurrency=2),
        lambda: search(lambda parameters: optim.PatchSearch(parameters, lanes=3), concurrency=2),
        lambda: search(lambda parameters: optim.BeamSearch(parameters, rounds=1)),
        lambda: tg.evaluate(TASK.program(), VAL, TASK.loss, 2),
        lambda: tg.evaluate(Waiting(), VAL, TASK.loss),
        lambda: func.pmap(lambda row: TASK.program()(parcel=row["parcel"]).data)(VAL),
    ],
    ids=["TGD", "PatchSearch", "BeamSearch", "evaluate", "a program that waits", "pmap"],
)
def test_the_main_thread_looks_up_once_a_second(work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait without an end would keep the first Ctrl-C until it is over, and with it everything that it stops."""
    endless: list[str] = []
    really = threading.Condition.wait

    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        if threading.current_thread() is threading.main_thread() and (timeout is None or timeout > 1.0):
            callers = traceback.extract_stack()[-9:-1]
            if callers[-2].name != "start":  # of a thread, which begins at once
                endless.append("".join(traceback.format_list(callers)))
        return really(self, timeout)

    monkeypatch.setattr(threading.Condition, "wait", wait)
    with tg.use_models(forward=Late()):
        work()
    assert endless == []


def test_a_moment_is_over_when_one_could_have_looked_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stands still between two looks gave nobody else a chance to do what is looked for."""
    now = [100.0]
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def looks(every: float) -> int:
        moment, made = dispatch.Moment(0.49), 0
        while not moment.over():
            now[0] += every
            made += 1
        return made

    assert [looks(0.02), looks(0.05), looks(3600.0)] == [25, 10, 10]
    assert dispatch.Moment(0.0).over()


def test_what_was_cancelled_is_done() -> None:
    """Nobody is told of a future that was cancelled before anybody took it up, so there is nothing to wait for."""
    future: Future[None] = Future()
    future.cancel()
    dispatch.settled([future])
    with pytest.raises(CancelledError):
        dispatch.result_of(future)


def test_a_failure_that_is_called_a_timeout_is_one() -> None:
    """It is that of the work, not of the wait."""
    future: Future[None] = Future()
    future.set_exception(TimeoutError("too slow"))
    with pytest.raises(TimeoutError, match="too slow"):
        dispatch.result_of(future)
