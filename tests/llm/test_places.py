"""Equal conversations with tools are told apart by their places in the program, whichever is answered first."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, llm, ops
from textgrad_engine.llm import Completion, Usage
from textgrad_engine.llm.places import in_place, numbering_places, trying
from textgrad_engine.llm.usage import call_place
from textgrad_engine.testing import FunctionModel


def calling(name: str) -> Completion:
    called = ({"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}},)
    return Completion(text="", finish_reason="tool_calls", tool_calls=called, usage=Usage(calls=1))


def acting(request: Any) -> Any:
    """Calls the tool that it has, and answers with what that gave; others are told who is asked."""
    if request.config.tools is None:
        return f"said by {request.messages[0].text}"
    if request.messages[-1].role == "tool":
        return request.messages[-1].text
    return calling(request.config.tools[0]["function"]["name"])


def ask(who: Any, tool: Callable[..., Any] | None = None) -> tg.Variable:
    tools = None if tool is None else [tool]
    return ops.chat_completion(None, [{"role": "user", "content": [who]}], tools=tools)


def without(path: Path, unwanted: Callable[[dict[str, Any]], bool]) -> int:
    """Take lines out of a cassette, and say how many."""
    first, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not unwanted(json.loads(line))]
    path.write_text("".join([first, *kept]), encoding="utf-8")
    return len(lines) - len(kept)


class Looker:
    """An object that is a tool, without a name of its own."""

    def __call__(self) -> str:
        """Look it up."""
        return "found"


@pytest.mark.parametrize("tool", [functools.partial(Looker().__call__), Looker()])
def test_tools_without_a_name_of_their_own_have_a_place(tool: Callable[..., Any], tmp_path: Path) -> None:
    """A partial and an object: what is recorded and trained counts conversations, and failed there."""
    with tg.use_models(forward=FunctionModel(acting)), llm.record(tmp_path / "cassette"):
        assert ask("a", tool).data == "found"
    with numbering_places(), in_place((tool,)):
        assert call_place.get() == (0, 0, 0)


class Parts:
    """Two parts that are asked the same, with a tool of one name and docstring; the second is asked first."""

    def __init__(self) -> None:
        self.run: list[str] = []
        self.hurry = asyncio.Event()
        self.first, self.second = self._tool("first"), self._tool("second")

    def _tool(self, part: str) -> Any:
        def look() -> str:
            """Look it up."""
            self.run.append(part)
            return f"seen by {part}"

        return look

    async def answer(self, request: Any) -> Any:
        """What is asked of the first part waits until the second one has come to its end."""
        if request.messages[0].text == "slow":
            await self.hurry.wait()
        if request.config.tools is None:
            return "the same"
        found = acting(request)
        if found == "seen by second":
            self.hurry.set()
        return found

    def both(self) -> list[str]:
        slow, quick = ask("slow"), ask("quick")
        return [str(each.data) for each in [ask(slow, self.first), ask(quick, self.second)]]


class Slow:
    """A model that answers as a function says, which may wait."""

    name = "slow"
    free = True

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer

    async def complete(self, request: Any) -> Completion:
        """What the function says."""
        found = await self.answer(request)
        return found if isinstance(found, Completion) else Completion(text=found, usage=Usage(calls=1))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    parts, path = Parts(), tmp_path / "tape.jsonl"
    with tg.use_models(forward=Slow(parts.answer)), llm.record(path):
        assert parts.both() == ["seen by first", "seen by second"]
    assert parts.run == ["second", "first"]
    return path


def test_each_part_gets_its_own_whichever_was_answered_first(tape: Path) -> None:
    """Played back, the first one asks first; their requests are equal to the letter."""
    parts = Parts()
    with llm.replay(tape) as replay:
        assert parts.both() == ["seen by first", "seen by second"]
    assert parts.run == []
    assert replay.left == 0


def test_what_a_part_was_told_is_not_given_to_another(tape: Path) -> None:
    """The first one's tool was under way when the process was killed: it is run, not taken from the second."""
    assert without(tape, lambda line: line.get("text") == "seen by first") == 1
    parts = Parts()
    with llm.replay(tape):
        assert parts.both() == ["seen by first", "seen by second"]
    assert parts.run == ["first"]


def test_a_cassette_without_places_is_played_back_in_the_order_of_time(tape: Path) -> None:
    """As those of before are: the second one began first."""
    lines = [json.loads(line) for line in tape.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line.pop("place", None)
    tape.write_text("".join([json.dumps(line) + "\n" for line in lines]), encoding="utf-8")
    parts = Parts()
    with llm.replay(tape) as replay:
        assert parts.both() == ["seen by second", "seen by first"]
    assert parts.run == []
    assert replay.left == 0


def test_equal_calls_of_one_example_do_not_share_what_was_asked_inside(tmp_path: Path) -> None:
    """Of two votes the second one's tool was under way when the process was killed; what it had asked is still its."""
    numbers = itertools.count()

    def consult() -> str:
        """Ask a colleague."""
        return f"{ask('colleague').data}, {next(numbers)}"

    path = tmp_path / "tape.jsonl"
    with tg.use_models(forward=FunctionModel(acting)), llm.record(path):
        before = [str(ask("vote", consult).data) for _ in range(2)]
    assert before == ["said by colleague, 0", "said by colleague, 1"]
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    ids = [line["id"] for line in told if "id" in line]
    assert len(set(ids)) == 2
    assert sorted(line["tool"] for line in told if line.get("tool")) == sorted(ids)
    assert without(path, lambda line: line.get("id") == ids[1]) == 1
    numbers = itertools.count(1)
    with llm.replay(path) as tape:
        assert [str(ask("vote", consult).data) for _ in range(2)] == before
    assert tape.left == 0


def test_places_are_counted_by_part_example_item_and_tool() -> None:
    """Where the program asks: equal functions are one part, and each scope begins anew.

    Not so in coroutines: which of two asks first may depend on the network, so there only parts are told apart.
    """

    def one() -> None: ...

    def place(*functions: Any, example: str = "") -> tuple[int, ...]:
        with in_place(functions, example):
            return call_place.get()

    async def inside() -> list[tuple[int, ...]]:
        return [place(one), place(one), place(other)]

    other = {"one": lambda: None}["one"]
    other.__name__ = "one"
    assert place(one) == ()
    with numbering_places():
        assert [place(one), place(one), place(other), place(other, one), place(one)] == [
            (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 0), (0, 0, 2),
        ]  # fmt: skip
        assert place(one, example="e1") == (0, 0, 0)
        assert func.pmap(lambda _: [place(one), place(one)])(range(3)) == [[(0, 0, 0), (0, 0, 1)]] * 3
        with numbering_places():
            assert place(one) == (0, 0, 0)
            with trying(["Be brief."]):
                (texts, *rest) = place(one)
            assert texts
            assert rest == [0, 1]
        assert asyncio.run(inside()) == [(0, 0), (0, 0), (0, 1)]
    assert call_place.get() == ()


def test_texts_are_read_only_where_a_conversation_with_tools_begins() -> None:
    """A search tries long prompts on thousands of examples, and most programs have no tools."""
    read = []

    class Prompt(str):
        __slots__ = ()

        def __repr__(self) -> str:
            read.append(self)
            return super().__repr__()

    with numbering_places(), trying([Prompt("Be brief.")]):
        assert not read
        with in_place((print,)):
            assert read


def test_candidates_of_a_search_do_not_get_each_others_results(tmp_path: Path) -> None:
    """What a tool gives may depend on the texts that are tried, and its call does not say so."""
    tried: ContextVar[str] = ContextVar("tried")

    def look() -> str:
        """Look it up."""
        ran.append(tried.get())
        return f"seen with {tried.get()}"

    def each(order: list[str]) -> dict[str, str]:
        def run(text: str) -> str:
            tried.set(text)
            with trying([text]), numbering_places():
                return str(ask("the same", look).data)

        return {text: copy_context().run(run, text) for text in order}

    ran: list[str] = []
    path = tmp_path / "tape.jsonl"
    with tg.use_models(forward=FunctionModel(acting)), llm.record(path):
        before = each(["a", "b", "c"])
    with llm.replay(path) as tape:
        assert each(["c", "a", "b"]) == before
    assert tape.left == 0
    assert ran == ["a", "b", "c"]
    assert without(path, lambda line: line.get("text") == "seen with a") == 1
    with llm.replay(path):
        assert each(["a", "c", "b"]) == before
    assert ran == ["a", "b", "c", "a"]
