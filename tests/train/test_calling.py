"""Calling a program and its loss: the order of calls, places for them, and threads."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, nn, use_models
from textgrad_engine.errors import AuthenticationFailed
from textgrad_engine.llm import Request, record, resolve
from textgrad_engine.testing import FunctionModel, ScriptedModel
from textgrad_engine.train.calling import run_scored, run_together
from textgrad_engine.train.waits import Look

PATIENCE = 60.0


class Looking(nn.Module):
    """A program that puts what it looks up into its prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{found}", system=nn.Parameter("Rules."))

    def forward(self, ticket: str) -> Variable:
        return self.chat(found={"b": "cut \ud83d", "c": "x" * 5_000_001}.get(ticket, ticket))


class Turns(nn.Module):
    """A conversation that keeps its turns in itself, as a module of PyTorch may; or in its forward."""

    def __init__(self, *, in_itself: bool) -> None:
        super().__init__()
        self.chat, self.in_itself = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.")), in_itself
        self.turns = list[str]()

    def forward(self, word: str) -> Variable:
        turns = list[str]()
        if self.in_itself:
            self.turns = turns
        turns.append(self.chat(word=word).data)
        part = nn.Sequential()
        part.made_anew = word
        return Variable(" ".join(turns))


@pytest.mark.parametrize(("in_itself", "concurrency", "told"), [(True, None, 1), (True, 1, 0), (False, None, 0)])
def test_a_program_that_keeps_in_itself_what_belongs_to_one_example_is_told_of(
    in_itself: bool, concurrency: int | None, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Examples run in threads write over each other's: the scores would be wrong, and nothing would say so."""

    class Own(Turns):
        pass

    rows = [{"word": word, "target": word} for word in "abcd"]
    with use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        for _ in range(2):
            tg.evaluate(Own(in_itself=in_itself), rows, nn.ExactMatch(), concurrency)
    said = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.nn.side_by_side"]
    assert len(said) == told
    assert all(each.startswith("Own.turns is assigned while several examples run in threads: each") for each in said)


@pytest.mark.parametrize("cached", [True, False])
def test_a_request_that_a_program_makes_of_no_text_costs_its_example_and_not_the_run(
    cached: bool, tmp_path: Path
) -> None:
    """A document that was cut, or a page of a hundred megabytes, is found late and for one example."""
    own: Any = FunctionModel(lambda request: "a")
    own.cache_key = "mine"
    model = resolve(own, cache=tmp_path if cached else None)
    rows = [{"ticket": ticket, "target": "a"} for ticket in "abcaa"]
    with use_models(forward=model):
        found = tg.evaluate(Looking(), rows, nn.ExactMatch())
    assert list(found.scores) == [1.0, None, None, 1.0, 1.0]


def test_a_loss_that_is_no_variable_is_refused() -> None:
    """A plain function of strings is a metric, and the message says how to make it one."""
    with pytest.raises(TypeError, match=r"got float; nn\.Metric"):
        run_scored(len, lambda position: (None, 1.0), 3)  # type: ignore[arg-type,return-value]


def test_an_error_gives_the_place_free_again() -> None:
    """A failing example does not leave the others waiting for ever."""
    tried: list[int] = []

    def start(position: int) -> tuple[None, Variable]:
        tried.append(position)
        raise ValueError("broken")

    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            run_scored(len, start, 5, concurrency=1)
    assert tried == [0, 0, 0]


def test_a_program_that_never_waits_stays_in_its_thread() -> None:
    """Dispatching is enough: no threads are made for it."""
    model = ScriptedModel(["x"] * 3)
    chat = nn.ChatCompletion("{w}", model=model)
    seen: list[str] = []

    def work(word: str) -> Variable:
        seen.append(threading.current_thread().name)
        return chat(w=word)

    results = run_together(Look(work), work, ["a", "b", "c"])
    assert [result.data for result in results] == ["x"] * 3
    assert set(seen) == {threading.current_thread().name}


def test_a_program_that_waits_is_run_in_threads_after_its_first_wait(main_waits: Any) -> None:
    """The first example shows that it waits; the rest meet at a barrier, which one thread could never pass."""

    async def answer(request: Request) -> str:
        if request.messages[-1].text == "0":
            await main_waits()
        return "x"

    chat = nn.ChatCompletion("{w}", model=FunctionModel(answer))
    together = threading.Barrier(4, timeout=PATIENCE)

    def work(number: int) -> tuple[int, str]:
        answer = chat(w=str(number)).data
        if number:
            together.wait()
        return number, answer

    assert run_together(Look(work), work, range(5)) == [(n, "x") for n in range(5)]


def test_a_program_that_awaits_answers_in_a_loop_of_its_own_is_run_in_threads_too() -> None:
    """As an agent that is written `async`, behind `asyncio.run`: its examples had waited one for another."""

    awaited = threading.Event()

    async def answer(request: Request) -> str:
        while not awaited.is_set():
            await asyncio.sleep(0)
        return "x"

    chat = nn.ChatCompletion("{w}", model=FunctionModel(answer))
    together = threading.Barrier(4, timeout=PATIENCE)

    async def agent(number: int) -> Any:
        asyncio.get_running_loop().call_soon(awaited.set)  # as soon as this one waits
        return (await chat.aforward(w=str(number))).data

    def work(number: int) -> tuple[int, str]:
        answer = asyncio.run(agent(number))
        if number:
            together.wait()
        return number, answer

    assert run_together(Look(work), work, range(5)) == [(n, "x") for n in range(5)]


def test_a_program_that_keeps_its_loop_is_run_in_this_thread() -> None:
    """As behind `get_event_loop().run_until_complete`: a loop runs once at a time, and other threads have none."""
    chat = nn.ChatCompletion("{w}", model=FunctionModel(lambda request: request.messages[-1].text))
    loop = asyncio.new_event_loop()

    async def agent(number: int) -> str:
        return str((await chat.aforward(w=str(number))).data)

    def work(number: int) -> tuple[str, int]:
        return loop.run_until_complete(agent(number)), threading.get_ident()

    try:
        assert run_together(Look(work), work, range(5)) == [(str(number), threading.get_ident()) for number in range(5)]
    finally:
        loop.close()


def test_a_cassette_does_not_tell_which_examples_were_run_in_threads(tmp_path: Path) -> None:
    """That depends on how quick the first ones were, and each has its name; so a recording is the same each time."""
    chat = nn.ChatCompletion("{n}")
    with use_models(forward=FunctionModel(lambda request: "x")), record(tmp_path / "c.jsonl") as recording:
        assert run_together(Look(chat), lambda n: chat(n=n).data, range(3)) == ["x", "x", "x"]
    assert recording.answers == 3
    assert "item" not in (tmp_path / "c.jsonl").read_text()


class Setting(nn.Module):
    """A program that sets itself up in each call, and one setting of a part by the word."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat."))
        self.mode, self.calls = "", 0

    @property
    def word(self) -> str:
        return ""

    @word.setter
    def word(self, word: str) -> None:
        """It may be kept by thread."""

    def forward(self, word: str) -> Variable:
        said = self.chat(word=word).data
        self.mode, self.word = "short", word
        self.eval()
        self.chat.temperature = 0.5
        self.chat.seed = ord(word)
        return Variable(said)


def test_what_all_examples_set_alike_is_no_mixture(caplog: pytest.LogCaptureFixture) -> None:
    """A setting that differs is told of by the name that the program gives it."""
    rows = [{"word": word, "target": word} for word in "abcd"]
    with use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        tg.evaluate(Setting(), rows, nn.ExactMatch())
    said = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.nn.side_by_side"]
    assert [each.split(" is assigned")[0] for each in said] == ["ChatCompletion.seed"]


@pytest.mark.parametrize("catches", [True, False])
def test_a_refused_key_that_the_program_catches_is_told(catches: bool, caplog: pytest.LogCaptureFixture) -> None:
    """All of its answers would be wrong, and nothing would say why."""

    class Careful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat."))

        def forward(self, word: str) -> Any:
            try:
                return Variable(self.chat(word=word).data)
            except Exception as error:
                if not catches and isinstance(error, AuthenticationFailed):
                    raise
                return Variable("unknown")

    def refuse(request: Request) -> str:
        raise AuthenticationFailed(f"the key of {catches} is refused")

    rows = [{"word": word, "target": word} for word in "abcd"]
    with use_models(forward=FunctionModel(refuse)):
        if catches:
            assert tg.evaluate(Careful(), rows, nn.ExactMatch()).mean == 0.0
        else:
            with pytest.raises(AuthenticationFailed):
                tg.evaluate(Careful(), rows, nn.ExactMatch())
    said = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.calling"]
    assert [f"the key of {catches} is refused; let" in each for each in said] == [True] * catches


def test_a_refused_key_is_told_once_whatever_number_each_request_has(caplog: pytest.LogCaptureFixture) -> None:
    """Gateways put it into what they say, and a line for each of a thousand examples would hide all others."""
    asked = list[str]()

    def refuse(request: Request) -> str:
        asked.append(request.messages[-1].text)
        raise AuthenticationFailed(f"no such token (request id: 20261130{len(asked)})")

    chat = nn.ChatCompletion("{word}", model=FunctionModel(refuse))

    def program(word: str) -> Variable:
        try:
            return Variable(chat(word=word).data)
        except AuthenticationFailed:
            return Variable("unknown")

    tg.evaluate(program, [{"word": word, "target": word} for word in "abcd"], nn.ExactMatch())
    said = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.calling"]
    assert len(said) == 1
    assert "(request id: 20261130" in said[0]
