"""Tools in cassettes and beside a cache: what is recorded is given again, and what is not is run."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, ops
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.errors import RunError, Stopped
from textgrad_engine.llm import Cache, Completion, Usage, caching
from textgrad_engine.llm.stop import Stop
from textgrad_engine.llm.toolcalls import ToolCall, ToolRecord, ToolResult, Turn, inside
from textgrad_engine.llm.tools_on_record import ToolOnRecord, ToolsOnRecord
from textgrad_engine.testing import FunctionModel

SECRET = "canary-key-0123456789"


def calling(name: str, **arguments: Any) -> Completion:
    function = {"name": name, "arguments": json.dumps(arguments)}
    called = ({"id": "call_1", "type": "function", "function": function},)
    return Completion(text="", finish_reason="tool_calls", tool_calls=called, usage=Usage(calls=1))


def acting(request: Any) -> Any:
    """Calls the first tool, and answers with what it gave."""
    if request.messages[0].text == "colleague":
        return "I am one."
    if request.messages[-1].role == "tool":
        return request.messages[-1].text
    return calling(request.config.tools[0]["function"]["name"])


class Tools:
    """Tools that give something else each time, and count."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def now(self) -> str:
        """What time it is."""
        return f"{next(self.numbers)} o'clock"

    def ask(self) -> tg.Variable:
        """What a colleague says, and what time it is."""
        said = ops.chat_completion(None, [{"role": "user", "content": "colleague"}]).data
        return tg.Variable(f"{said} {self.now()}")

    def fail(self) -> str:
        """Nothing."""
        raise RuntimeError(f"{SECRET} at {self.now()}")

    @property
    def run(self) -> int:
        """How often one was run."""
        return int(repr(self.numbers)[6:-1])


def asked(tool: Any) -> str:
    return str(ops.chat_completion(None, [{"role": "user", "content": "What time is it?"}], tools=[tool]).data)


@pytest.mark.parametrize("name", ["now", "ask", "fail"])
def test_a_replay_runs_no_tool(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that asks models, whose answers count as asked for, nor one that raised; of equal turns each once."""
    monkeypatch.setenv("CANARY_API_KEY", SECRET)
    tools, path = Tools(), tmp_path / "tape.jsonl"
    with tg.use_models(forward=FunctionModel(acting)), llm.record(path), llm.meter() as before:
        answers = [asked(getattr(tools, name)) for _ in range(2)]
    assert answers[0] != answers[1]
    assert SECRET not in path.read_text(encoding="utf-8")
    tools = Tools()
    with llm.replay(path) as tape, llm.meter() as after:
        again = [asked(getattr(tools, name)) for _ in range(2)]
    assert [text.replace(SECRET, "[redacted]") for text in answers] == again
    assert tools.run == 0
    assert tape.left == 0
    assert after.total == before.total


def test_a_cassette_of_before_has_its_tools_run(tmp_path: Path) -> None:
    """It has the answers of models alone."""

    def steady() -> str:
        """What time it is."""
        done.append(1)
        return "noon"

    done: list[int] = []
    path = tmp_path / "tape.jsonl"
    with tg.use_models(forward=FunctionModel(acting)), llm.record(path):
        assert asked(steady) == "noon"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    before = [line for line in lines if "id" not in json.loads(line)]
    assert len(before) == len(lines) - 1
    path.write_text("".join(before), encoding="utf-8")
    with llm.replay(path):
        assert asked(steady) == "noon"
    assert len(done) == 2


def test_a_damaged_line_of_a_tool_is_named(tmp_path: Path) -> None:
    """As one of a model's answer is."""
    path = tmp_path / "tape.jsonl"
    path.write_text('{"cassette": 1}\n{"id": "x", "name": "now"}\n', encoding="utf-8")
    with pytest.raises(RunError, match=r"tape\.jsonl:2: the line is damaged"), llm.replay(path):
        pass


def test_a_cache_keeps_nothing_of_tools(tmp_path: Path) -> None:
    """The same turn from the cache: the clock goes on."""
    tools = Tools()
    model = FunctionModel(acting)
    model.cache_key, model.free = "acting", False  # type: ignore[attr-defined]
    with tg.use_models(forward=model), caching(Cache(tmp_path)), llm.meter() as meter:
        assert [asked(tools.now) for _ in range(2)] == ["0 o'clock", "1 o'clock"]
    assert meter.cached == 1


def test_no_tool_is_begun_after_a_stop() -> None:
    """What it does is done when the run goes on."""
    tools = Tools()

    def stopping(request: Any) -> Any:
        stop.set()
        return calling("now")

    with tg.use_models(forward=FunctionModel(stopping)), Stop() as stop, pytest.raises(Stopped):
        asked(tools.now)
    assert tools.run == 0


def test_a_tool_that_is_run_is_under_way() -> None:
    """A run that is stopped waits for it, so that what it did is on record."""
    seen: list[int] = []

    def look() -> str:
        """What a meter says."""
        seen.append(meter.in_flight)
        return "seen"

    with tg.use_models(forward=FunctionModel(acting)), llm.meter() as meter:
        assert asked(look) == "seen"
    assert seen == [1]
    assert meter.in_flight == 0


def test_calls_that_run_at_once_are_played_back_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    """The one that began first ends last; both are the same call, by two parts of a program with tools of their own."""
    second_is_done = threading.Event()

    def of_part(name: str) -> Any:
        def now() -> str:
            """What time it is."""
            if name == "first":
                assert second_is_done.wait(10)
            else:
                second_is_done.set()
            return name

        message = [{"role": "user", "content": "What time is it?"}]
        return lambda: ops.chat_completion(None, message, tools=[now])

    def both() -> list[str]:
        return [str(each.data) for each in [part() for part in parts]]

    parts = [of_part("first"), of_part("second")]
    with tg.use_models(forward=FunctionModel(acting)), llm.record(tmp_path / "tape.jsonl"):
        before = both()
    assert before[0] != before[1]
    with llm.replay(tmp_path / "tape.jsonl"):
        assert both() == before


def test_what_a_tool_asked_is_that_of_its_own_example(tmp_path: Path) -> None:
    """Two examples are equal, and the second one's tool was under way when the process was killed: it is run again."""
    tools, path = Tools(), tmp_path / "tape.jsonl"

    def of_example(name: str) -> str:
        token = EXAMPLE.set(name)
        try:
            return asked(tools.ask)
        finally:
            EXAMPLE.reset(token)

    with tg.use_models(forward=FunctionModel(acting)), llm.record(path):
        assert [of_example("e1"), of_example("e2")] == ["I am one. 0 o'clock", "I am one. 1 o'clock"]
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    known = [line for line in lines if "id" not in json.loads(line) or json.loads(line)["example"] == "e1"]
    assert len(known) == len(lines) - 1
    path.write_text("".join(known), encoding="utf-8")
    tools.numbers = itertools.count(1)
    with llm.replay(path) as tape:
        assert [of_example("e1"), of_example("e2")] == ["I am one. 0 o'clock", "I am one. 1 o'clock"]
    assert tape.left == 0


def test_what_was_given_without_a_graph_is_not_taken_in_a_phase_whose_pass_may_need_one(
    ask: Callable[..., llm.Request],
) -> None:
    """The tool that was under way there is run anew; in its own phase, and where no pass comes, it is given."""
    turn = Turn("model", ask())
    plain, recorded = ToolCall("ask", "{}", turn, 0), ToolCall("ask", "{}", turn, 0, recorded=True)
    given = ToolOnRecord(ToolRecord("ask", "{}", ToolResult("said"), "x", plain.also), 0, phase=2)
    assert ToolsOnRecord([given]).take(recorded, phase=1) is None
    assert ToolsOnRecord([given]).take(recorded, phase=2) is given
    assert ToolsOnRecord([given]).take(plain, phase=1) is given


def test_what_was_called_inside_of_a_tool_on_record_is_given_with_that_alone(ask: Callable[..., llm.Request]) -> None:
    """An equal call inside of another tool that was under way when the process was killed is run: else one is lost."""
    turn = Turn("model", ask())
    call, outer = ToolCall("mail", "{}", turn, 0), ToolCall("colleague", "{}", turn, 1)
    inner = ToolOnRecord(ToolRecord("mail", "{}", ToolResult("sent"), "x", call.also, tool="first"), 0)
    whole = ToolOnRecord(ToolRecord("colleague", "{}", ToolResult("said"), "first", outer.also), 1)
    with inside("second"):
        assert ToolsOnRecord([inner, whole]).take(call) is None
        assert ToolsOnRecord([inner]).take(call) is None  # the first one is run again, and has its id
        assert ToolsOnRecord([inner]).take(call, elsewhere=True) is inner
    with inside("first"):
        assert ToolsOnRecord([inner, whole]).take(call) is inner
    assert ToolsOnRecord([inner, whole]).take_inside(whole) == [inner]


def test_calls_whose_arguments_are_nested_as_deeply_as_can_be_read_are_shown() -> None:
    """They may be read and yet be too deep to be written again; what compares or shows them would end the run."""
    for depth in range(900, 1010):
        arguments = '{"a":' * depth + "1" + "}" * depth
        call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": arguments}}
        shown = Completion("", "tool_calls", tool_calls=(call,)).calls_as_text()
        assert shown.startswith('[{"name": "look", "arguments": ')
