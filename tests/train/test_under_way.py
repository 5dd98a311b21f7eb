"""Answers that are under way when a run ends: told of before that is over, so that a journal has them."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, nn, optim
from textgrad_engine.errors import Stopped
from textgrad_engine.llm import Request, RetryPolicy, resolve
from textgrad_engine.llm.meters import meter
from textgrad_engine.llm.stop import check_stop
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import under_way
from textgrad_engine.train.events import CallEnded, RunFailed
from textgrad_engine.train.under_way import wait_for

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox")
ROWS = [{"word": word, "target": word.upper()} for word in WORDS]


async def until_stopped() -> None:
    """Wait until nothing more may be sent."""
    while True:
        try:
            check_stop()
        except Stopped:
            return
        await asyncio.sleep(0)


class Told:
    """Keeps which words feedback came on, up to the run's failure."""

    def __init__(self, fails_on: str) -> None:
        self.fails_on = fails_on
        self.words: list[str] = []
        self.failed = False

    def on_event(self, event: Any) -> None:
        self.failed |= isinstance(event, RunFailed)
        if not isinstance(event, CallEnded) or event.record.purpose != "backward" or event.record.completion is None:
            return
        assert not self.failed, "the failure is the last that is told"
        word = word_in(event.record.request)
        self.words.append(word)
        if word == self.fails_on:
            raise KeyError("no such column")


def word_in(request: Request) -> str:
    """The word that a critic is asked about."""
    (word,) = {*WORDS} & {*re.findall(r"\w+", "\n".join(message.text for message in request.messages))}
    return word


def fit(told: Told, first: str) -> None:
    """Train on the words; the critic answers about one when all are asked, and about the others when that stops."""
    asked: list[str] = []

    async def answer(request: Request) -> Any:
        if request.purpose == "forward":
            return request.messages[-1].text
        asked.append(word_in(request))
        while len(asked) < len(WORDS):
            await asyncio.sleep(0)
        if word_in(request) != first:
            await until_stopped()
        return {"case_1": {"system": "Say to shout."}}

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with tg.use_models(forward=resolve(FunctionModel(answer), policy=RetryPolicy(max_attempts=1))):
        tg.Trainer(callbacks=[told]).fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS, ROWS)


def test_answers_in_flight_are_told_of_when_code_of_the_user_ends_the_run() -> None:
    """A callback with a slip: the other answers are there when its exception is raised."""
    told = Told("dog")
    with pytest.raises(KeyError, match="no such column"):
        fit(told, "dog")
    assert told.failed
    assert sorted(told.words) == list(WORDS)


def test_the_end_waits_for_calls_that_have_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget may end a pass when some of its calls are only about to begin; told of later they would be lost."""
    go_on, waited = threading.Event(), []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        go_on.set()
        dispatch.run(lambda: asyncio.sleep(0))

    monkeypatch.setattr(under_way, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    chat = nn.ChatCompletion("{word}", system="Repeat the word.")
    with dispatch.Scope(), meter() as used, tg.use_models(forward=FunctionModel(lambda request: "x")):
        dispatch.call_soon(lambda: go_on.wait(60))
        answer = chat(word=chat(word="ant"))
        assert used.in_flight == 0
        wait_for(used)
        assert (used.total.calls, answer.done()) == (2, True)
    assert waited
