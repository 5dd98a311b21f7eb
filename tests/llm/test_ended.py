"""What a spent budget has ended: answers of tools, and of models of a user's own, that were made without it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, llm, nn
from textgrad_engine.errors import AuthenticationFailed, BudgetExceeded
from textgrad_engine.llm import CallableModel, Completion, Request, Usage, Wrapper, resolve
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective, evaluate
from textgrad_engine.train.evaluator import attempt

from .asking import asked

ROWS = [{"word": str(n), "target": str(n)} for n in range(3)]


def echo() -> Any:
    """Says the word back; it may say much, so it needs room for that."""
    return resolve(FunctionModel(lambda request: request.messages[-1].text), max_tokens=20_000)


def app() -> tuple[nn.Module, Any]:
    """A program whose model is an app that asks another one, and has an answer in any case."""
    model = echo()

    async def forgiving(messages: list[dict[str, Any]]) -> str:
        return await asked(model, str(messages[-1]["content"]))

    own = CallableModel(forgiving, cache_key="1")
    return nn.ChatCompletion("{word}", model=own, max_tokens=10), own


def calling(tool: str) -> FunctionModel:
    """A model that calls a tool with the word that it is sent, and answers what this gives."""

    def answer(request: Request) -> str | Completion:
        last = request.messages[-1]
        if last.role == "tool":
            return last.text
        called = ({"id": "1", "function": {"name": tool, "arguments": json.dumps({"word": last.text})}},)
        return Completion(text="", finish_reason="tool_calls", tool_calls=called, usage=Usage())

    return FunctionModel(answer)


def agent() -> tuple[nn.Module, Any]:
    """A program whose model calls a tool that asks another one, and has a result in any case."""
    model = echo()

    async def ask(word: str) -> str:
        """Ask it."""
        return await asked(model, word)

    own = calling("ask")
    return nn.ChatCompletion("{word}", model=own, tools=[ask], max_tokens=10), own


class Forgiving(Wrapper):
    """A wrapper of a user's own, around what `resolve` gave: it has an answer in any case."""

    async def complete(self, request: Request) -> Completion:
        try:
            return await self.inner.complete(request)
        except Exception:
            return Completion(text="sorry")


def wrapped() -> tuple[nn.Module, Any]:
    """A program whose model is such a wrapper."""
    own = Forgiving(echo())
    return nn.ChatCompletion("{word}", model=own), own


def told(line: str) -> str:
    """What a line of a cassette tells of an answer, or of what a tool gave."""
    entry = json.loads(line)
    return str(entry.get("completion", entry.get("result")))


def spent_by(made: Any, tokens: int | None, path: Path) -> tuple[Any, list[str]]:
    """How the program scores with a cassette that is gone on with, and what is on record then."""
    program, _ = made()
    found = None
    with tg.budget(tokens=tokens), llm.record(path, resume=True):
        try:
            found = evaluate(program, ROWS, nn.ExactMatch(), concurrency=1).scores
        except BudgetExceeded:
            assert tokens is not None
    return found, sorted(map(told, path.read_text().splitlines()))


@pytest.mark.parametrize("made", [app, agent, wrapped])
def test_what_was_said_without_room_in_a_budget_is_on_record_nowhere(made: Any, tmp_path: Path) -> None:
    """Where there was room for it, it was given again: the example was wrong for good."""
    whole, answers = spent_by(made, None, tmp_path / "whole.jsonl")
    assert whole == (1.0, 1.0, 1.0)
    path = tmp_path / "ended.jsonl"
    found, before = spent_by(made, 10_000, path)
    assert found is None
    assert not any("sorry" in each for each in before)
    assert spent_by(made, None, path) == (whole, answers)


def test_what_was_said_without_room_in_a_budget_is_in_no_cache(tmp_path: Path) -> None:
    """A later run with another budget was given it, without a call."""
    program, own = app()
    program.model = resolve(own, cache=tmp_path)
    with tg.budget(tokens=10_000), pytest.raises(BudgetExceeded):
        evaluate(program, ROWS, nn.ExactMatch())
    assert evaluate(program, ROWS, nn.ExactMatch()).scores == (1.0, 1.0, 1.0)


def test_a_budget_that_a_program_sets_for_itself_is_the_tools_matter() -> None:
    """A tool that makes do with what its example may cost goes on, and so does the conversation."""

    class Frugal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.agent, _ = agent()

        def forward(self, word: str) -> str:
            with tg.budget(tokens=10_000):
                return str(self.agent(word=word))

    assert evaluate(Frugal(), [{"word": "1", "target": "sorry"}], nn.ExactMatch()).scores == (1.0,)


def test_what_an_app_was_refused_is_not_scored_where_a_program_awaits_it_itself() -> None:
    """The app has an answer in any case, and so has the program around it."""
    _, own = app()
    model = resolve(own, max_tokens=10)

    class Direct(nn.Module):
        def forward(self, word: str) -> str:
            return asyncio.run(asked(model, word))

    with tg.budget(tokens=10_000), pytest.raises(BudgetExceeded):
        evaluate(Direct(), ROWS, nn.ExactMatch())
    assert evaluate(Direct(), ROWS, nn.ExactMatch()).scores == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("waits", [True, False])
def test_a_refused_key_that_a_tool_catches_is_told(waits: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Tools say "not found" of all that they meet, and all answers would be wrong without a word."""

    def refuse(request: Request) -> str:
        raise AuthenticationFailed(f"the key {waits} is refused")

    def look_up(word: str) -> str:
        """Look it up."""
        try:
            return str(helper(word=word))
        except Exception:
            return "not found"

    helper = nn.ChatCompletion("{word}", model=FunctionModel(refuse))
    chat = nn.ChatCompletion("{word}", model=calling("look_up"), tools=[look_up])

    def program(word: str) -> Any:
        said = chat(word=word)
        return str(said) if waits else said

    assert evaluate(program, ROWS, nn.ExactMatch()).mean == 0.0
    told = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.calling"]
    assert [f"the key {waits} is refused; let" in each for each in told] == [True]


class _Awaits(tg.Function):
    """Asks its model without an operation between, as code from elsewhere does."""

    @staticmethod
    async def forward(ctx: Any, word: Variable, model: Any, catches: bool) -> Variable:
        request = Request(messages=(llm.Message(role="user", content=word.data),))
        try:
            return Variable((await model.complete(request)).text)
        except AuthenticationFailed:
            if not catches:
                raise
            return Variable("")

    @staticmethod
    def backward(ctx: Any, feedback: Variable) -> tuple[Variable, None, None]:
        return feedback, None, None


@pytest.mark.parametrize("how", ["function", "tool", "caught by a model", "not caught"])
def test_a_refused_key_that_is_caught_where_a_model_is_awaited_itself_is_told(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All answers would be wrong without a word; one that nobody catches, or that another model stands for, is none."""

    def refuse(request: Request) -> str:
        raise AuthenticationFailed(f"the key {how} is refused")

    async def look_up(word: str) -> str:
        """Look it up."""
        return await asked(refused, word)

    refused = resolve(FunctionModel(refuse))
    chat = nn.ChatCompletion("{word}", model=calling("look_up"), tools=[look_up])
    second = resolve(llm.Fallback(refused, FunctionModel(lambda request: "x"), on=(AuthenticationFailed,)))
    model, catches = second if how == "caught by a model" else refused, how != "not caught"

    def program(word: str) -> Any:
        return chat(word=word) if how == "tool" else _Awaits.apply(Variable(word), model, catches)

    with pytest.raises(AuthenticationFailed) if not catches else contextlib.nullcontext():
        assert evaluate(program, ROWS, nn.ExactMatch()).mean == 0.0
    told = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.calling"]
    assert [f"the key {how} is refused; let" in each for each in told] == [True] * (how in ("function", "tool"))


def test_each_of_several_keys_that_are_refused_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Who repairs the first one alone would have paid for scores without the second."""

    def refusing(name: str) -> Any:
        def refuse(request: Request) -> str:
            raise AuthenticationFailed(f"the {name} of two keys is refused")

        return resolve(FunctionModel(refuse))

    first, second = refusing("first"), refusing("second")

    def program(word: str) -> Any:
        return _Awaits.apply(_Awaits.apply(Variable(word), first, True), second, True)

    assert evaluate(program, ROWS, nn.ExactMatch()).mean == 0.0
    told = [each.getMessage() for each in caplog.records if each.name == "textgrad_engine.train.calling"]
    assert [next(name for name in ("first", "second") if name in each) for each in told] == ["first", "second"]


def test_a_tool_that_is_refused_costs_its_own_example_where_candidates_are_run_together() -> None:
    """Nobody knows whose what a metric meets was; a tool belongs to a call, and the others keep their scores."""
    program, _ = agent()
    program.system = nn.Parameter("Ask.", role="system prompt")
    texts, asked_for = [("Ask.",), ("Ask them.",)], []

    long = "1" * 30_000
    objective = Objective(program, nn.ExactMatch(), [*ROWS, {"word": long, "target": long}])
    with tg.budget(tokens=50_000), pytest.raises(BudgetExceeded):
        objective.matrix(texts, range(4))
    with llm.observe(lambda record: asked_for.append(record.model)):
        assert objective.matrix(texts, range(4)) == [[1.0] * 4] * 2
    assert len(asked_for) <= 6


def test_what_a_program_is_refused_is_not_scored_where_a_tool_evaluates_it() -> None:
    """The tool is an operation's; what the program in it awaits is not."""
    model, found = echo(), []

    class Direct(nn.Module):
        def forward(self, word: str) -> str:
            return asyncio.run(asked(model, word))

    def measure(word: str) -> str:
        """Measure it."""
        with tg.budget(tokens=10_000):
            found.append(attempt(Direct(), ROWS, nn.ExactMatch()).ended)
        return "done"

    def answer(request: Request) -> str | Completion:
        if request.messages[-1].role == "tool":
            return "done"
        function = {"name": "measure", "arguments": json.dumps({"word": "1"})}
        return Completion(text="", finish_reason="tool_calls", tool_calls=({"id": "1", "function": function},))

    assert nn.ChatCompletion("Measure.", model=FunctionModel(answer), tools=[measure])().data == "done"
    assert [type(each) for each in found] == [BudgetExceeded]
