"""What tools gave is on record, and given again when a run is resumed: what was done is not done twice."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, optim
from textgrad_engine.errors import BudgetExceeded, EmptyResponse, RunError
from textgrad_engine.llm import Completion, Usage
from textgrad_engine.store import RunFolder, read_run
from textgrad_engine.store.paid import numbers_aside
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.events import ToolEnded

from ..conftest import timeless
from .conftest import ROWS, answer

SECRET = "canary-key-0123456789"


class Killed(Exception):
    """The process is no more."""


class Mortal(RunFolder):
    """A run folder whose process is killed when it is told of the n-th event; 0 is never."""

    def __init__(self, path: Path, dies_at: int = 0, **settings: Any) -> None:
        super().__init__(path, **settings)
        self.events, self.dies_at = 0, dies_at

    def on_event(self, event: Any) -> None:
        self.events += 1
        if 0 < self.dies_at <= self.events:
            raise Killed
        super().on_event(event)

    def on_end(self) -> None:
        if 0 < self.dies_at <= self.events:  # as the system does where a process ends
            for each in self._opened():
                each.close()
            self._lock.forget()
            self._room.give_back()
        else:
            super().on_end()


def calling(*calls: tuple[str, dict[str, Any]]) -> Completion:
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return Completion(text="", finish_reason="tool_calls", tool_calls=tuple(made), usage=Usage(calls=1))


class Agent(nn.Module):
    """One prompt with tools: of what each was asked it keeps a list."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__()
        self.done: list[str] = []
        self.clock = clock
        system = nn.Parameter("Repeat.", role="system prompt")
        tools = [self.look_up, self.mail, self.ask_colleague]
        self.chat = nn.ChatCompletion("{word}", system=system, tools=tools)
        self.other = nn.ChatCompletion("{word}", system="Colleague.", tools=[self.mail])

    def look_up(self, word: str) -> dict[str, Any]:
        """What is known of a word."""
        self.done.append(f"look_up {word}")
        if word == "three":
            raise KeyError(word)
        return {"word": word, "at": self.clock()}

    async def mail(self, to: str) -> str:
        """Send a mail."""
        await asyncio.sleep(0)
        self.done.append(f"mail {to}")
        return f"sent at {self.clock()}"

    def ask_colleague(self, word: str) -> str:
        """Ask a colleague."""
        self.done.append(f"ask_colleague {word}")
        return str(self.other(word=f"{word} {self.clock()}").data)

    def forward(self, word: str) -> tg.Variable:
        return self.chat(word=word)


def acting(request: Any) -> Any:
    """The model: looks up twice the same, mails, asks a colleague who mails, too, and answers."""
    if request.purpose != "forward":
        return answer(request)
    system, word = request.messages[0].text, request.messages[1].text
    turn = sum(message.role == "tool" for message in request.messages)
    if system == "Colleague.":
        return calling(("mail", {"to": f"colleague {word}"})) if not turn else f"well, {word}"
    if turn == 0:
        both = {"word": word}
        return calling(("look_up", both), ("look_up", both), ("mail", {"to": f"{word} {len(system)}"}))
    if turn == 3:
        return calling(("ask_colleague", {"word": word}))
    return word.upper() if "Shout" in system else word


def trained(folder: Any, model: Any, program: Agent, each: int = 2, **settings: Any) -> Any:
    given = {"max_steps": 1, "batch_size": 2, "callbacks": (folder,) if folder else (), **settings}
    with tg.use_models(forward=FunctionModel(model)):
        optimizer = optim.TGD(program.parameters())
        train, val, test = ROWS[:each], ROWS[2 : 2 + each], ROWS[4 : 4 + each]
        return tg.Trainer(**given).fit(program, nn.ExactMatch(), optimizer, train, val, test)


def counting() -> tuple[Counter[str], Callable[[Any], Any]]:
    asked: Counter[str] = Counter()

    def model(request: Any) -> Any:
        asked[request.purpose] += 1
        return acting(request)

    return asked, model


def same() -> int:
    return 7


@pytest.mark.parametrize("changing", [False, True], ids=["the same", "another"])
def test_killed_at_any_event_it_does_nothing_twice_that_is_on_record(tmp_path: Path, changing: bool) -> None:
    """Whether tools give the same later or not; what was asked inside of them counts, and is not asked again.

    The two take turns: each is killed halfway between the points where the other one is.
    """
    numbers = itertools.count()
    clock = (lambda: next(numbers)) if changing else same
    whole, once = counting()
    first = Mortal(tmp_path / "whole")
    result = trained(first, once, Agent(clock))
    for dies_at in range(4 if changing else 42, first.events, 76):
        path, killed, again = tmp_path / str(dies_at), Agent(clock), Agent(clock)
        with pytest.raises(Killed):
            trained(Mortal(path, dies_at), acting, killed)
        kept, known = len(list(read_run(path).completions())), calls_in(path)
        asked, model = counting()
        resumed = trained(RunFolder(path, resume=True), model, again)
        assert len(again.done) == (calls_in(path) - known).total()
        if not changing:
            assert asked.total() + kept == whole.total()
            assert not numbers_aside(path)
            assert timeless(path) == timeless(tmp_path / "whole")
        assert resumed.best == result.best
        last = Agent(clock)
        assert trained(None, unasked, last, run_dir=path, resume=True) == resumed
        assert last.done == []


def calls_in(path: Path) -> Counter[tuple[str, ...]]:
    """The calls of tools that a run folder has."""
    return Counter((each["name"], each["example"], each["arguments"], each["id"]) for each in read_run(path).tools())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "tools.jsonl").read_text(encoding="utf-8").splitlines()]


def cut(path: Path, **settings: Any) -> tuple[Agent, Any]:
    """An agent whose run has ended because its budget was spent, and that run's result."""
    program = Agent(same)
    with tg.budget(calls=9):
        return program, trained(RunFolder(path, **settings), acting, program)


def test_calls_of_tools_that_are_gone_are_not_made_again_unasked(tmp_path: Path) -> None:
    """Nobody would know any more what was done; it says what is gone, and how to go on all the same."""
    path = tmp_path / "run"
    cut(path)
    (path / "tools.jsonl").unlink()
    again = Agent(same)
    with pytest.raises(RunError, match=r"tools.jsonl: what \d+ calls of tools gave can no longer be found.*--anyway"):
        trained(RunFolder(path, resume=True), acting, again)
    assert again.done == []
    assert trained(RunFolder(path, resume=True, anyway=True), acting, again).status == "finished"
    assert "look_up four" in again.done


def test_a_run_of_before_is_resumed_and_runs_its_tools(tmp_path: Path) -> None:
    """Nothing was written down of them then, and its events do not count them."""
    path = tmp_path / "run"
    cut(path)
    (path / "tools.jsonl").unlink()
    events = (path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    told = [{key: value for key, value in json.loads(event).items() if key != "tools"} for event in events]
    (path / "events.jsonl").write_text("".join([json.dumps(event) + "\n" for event in told]), encoding="utf-8")
    again = Agent(same)
    assert trained(RunFolder(path, resume=True), acting, again).status == "finished"
    assert "look_up four" in again.done
    assert not numbers_aside(path)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """Whoever goes on without it would have it done twice."""
    path = tmp_path / "run"
    cut(path)
    with (path / "tools.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"phase": 1, "name": "mail"}\n')
    with pytest.raises(RunError, match=r"tools.jsonl:\d+: the line was damaged: it is no call of a tool: KeyError"):
        RunFolder(path, resume=True)


def test_what_a_tool_gives_is_on_disk_before_it_is_used(tmp_path: Path) -> None:
    """Name, arguments, result, how long it took; of one that raised what the model is told, and why."""
    path = tmp_path / "run"
    seen: list[int] = []

    def model(request: Any) -> Any:
        if request.purpose == "forward" and request.messages[-1].role == "tool":
            told = {message.text for message in request.messages if message.role == "tool"}
            seen.append(len(told - {line["text"] for line in lines(path)}))
        return acting(request)

    program = Agent(same)
    trained(RunFolder(path), model, program)
    assert seen
    assert not any(seen)
    found = lines(path)
    looked, *_ = (line for line in found if line["name"] == "look_up" and line["example"] == "four")
    assert looked["arguments"] == '{"word": "four"}'
    assert json.loads(looked["text"]) == {"word": "four", "at": 7}
    assert looked["latency"] > 0
    failed, *_ = (line for line in found if line["example"] == "three" and line["name"] == "look_up")
    assert failed["error"] == "KeyError: 'three'"
    assert failed["text"].startswith("The call came to nothing: KeyError: 'three'")
    inner, *_ = (line for line in found if "colleague four" in line["arguments"])
    outer, *_ = (line for line in found if line["name"] == "ask_colleague" and line["example"] == "four")
    assert inner["tool"] == outer["id"]
    assert {each.get("tool", "") for each in read_run(path).completions()} > {outer["id"], ""}


def test_equal_calls_of_one_turn_are_two(tmp_path: Path) -> None:
    """Each gets what it got, and no more of them are run than there were."""
    numbers = itertools.count()
    path = tmp_path / "run"
    program = Agent(lambda: next(numbers))
    trained(RunFolder(path), acting, program)
    found = [line for line in lines(path) if (line["name"], line["example"], line["phase"]) == ("look_up", "four", 1)]
    assert len(found) == 2
    assert len({line["id"] for line in found}) == len(found) == len({line["text"] for line in found})


def test_a_secret_that_a_tool_gives_is_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not into the log either; and the tool is not run again for that."""
    monkeypatch.setenv("CANARY_API_KEY", SECRET)

    class Leaky(Agent):
        def look_up(self, word: str) -> dict[str, Any]:
            """What is known of a word."""
            self.done.append(f"look_up {word}")
            if word == "three":
                raise KeyError(SECRET)
            return {"key": SECRET}

    path = tmp_path / "run"
    with tg.budget(calls=15):
        trained(RunFolder(path), acting, Leaky(same))
    known = calls_in(path)
    again = Leaky(same)
    trained(RunFolder(path, resume=True), acting, again)
    assert len(again.done) == (calls_in(path) - known).total()
    assert "raised KeyError: \"'[redacted]'\"" in caplog.text
    assert SECRET not in caplog.text
    assert "[redacted]" in (path / "tools.jsonl").read_text(encoding="utf-8")
    assert not [file for file in path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]


def test_a_tool_that_ends_the_run_is_run_again(tmp_path: Path) -> None:
    """There is no result of it; those beside it are on record."""

    class Broke(Agent):
        def look_up(self, word: str) -> dict[str, Any]:
            """What is known of a word."""
            raise BudgetExceeded("spent")

    path = tmp_path / "run"
    assert trained(RunFolder(path), acting, Broke(same)).status == "budget"
    assert {line["name"] for line in lines(path)} <= {"mail"}
    again = Agent(same)
    assert trained(RunFolder(path, resume=True), acting, again).status == "finished"
    assert "look_up four" in again.done


@pytest.mark.parametrize("again_it_fails", [True, False], ids=["for good", "that time"])
def test_a_tool_that_an_error_came_through_is_on_record_and_run_again(tmp_path: Path, again_it_fails: bool) -> None:
    """It gets what no equal call of another phase gave; what it had asked and mailed is not asked and mailed twice."""

    class Asking(Agent):
        def ask_colleague(self, word: str) -> str:
            """Ask a colleague."""
            self.done.append(f"ask_colleague {word}")
            mailed = str(self.other(word=word).data)
            if word == "four" and fails:
                raise EmptyResponse("nothing came")
            return mailed

    fails = True
    path = tmp_path / "run"
    first = trained(RunFolder(path), acting, Asking(same))
    raised = [line for line in lines(path) if line.get("raised")]
    assert {(line["name"], line["error"]) for line in raised} == {("ask_colleague", "EmptyResponse: nothing came")}
    assert first.seed_val.unanswered == 1
    (path / "result.json").unlink()  # as if it had been killed before its end
    fails, again = again_it_fails, Asking(same)
    asked, model = counting()
    resumed = trained(RunFolder(path, resume=True), model, again)
    assert resumed.seed_val.unanswered == int(fails)
    assert again.done[0] == "ask_colleague four"
    if fails:
        assert again.done == ["ask_colleague four"] * len(raised)
        assert not asked
        assert resumed.best == first.best
        assert not numbers_aside(path)
        last = Asking(same)
        assert trained(None, unasked, last, run_dir=path, resume=True) == resumed


def test_items_of_a_pmap_get_what_was_theirs(tmp_path: Path) -> None:
    """Their turns are equal, and begin in any order."""
    numbers = itertools.count()

    class Several(Agent):
        def forward(self, word: str) -> Any:
            first, other = func.pmap(lambda _: self.chat(word=word))([1, 2])
            assert other.data  # what nobody waits for may lose its last call to the budget of the phase after it
            return first

    path = tmp_path / "run"
    with tg.budget(calls=20):
        trained(RunFolder(path), acting, Several(lambda: next(numbers)))
    assert {tuple(line.get("item", ())) for line in lines(path)} == {(0,), (1,)}
    before = {(line["id"], *line["item"], line["phase"]): line["text"] for line in lines(path)}
    trained(RunFolder(path, resume=True), acting, Several(lambda: next(numbers)))
    after = {(line["id"], *line["item"], line["phase"]): line["text"] for line in lines(path)}
    assert before.items() <= after.items()


def test_callbacks_hear_of_tools(tmp_path: Path) -> None:
    """Of each call once, with its phase."""
    heard: list[ToolEnded] = []

    class Listening:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ToolEnded):
                heard.append(event)

    program = Agent(same)
    trained(None, acting, program, callbacks=(Listening(),))
    assert len(heard) == len(program.done)
    assert all(event.phase for event in heard)


def unasked(request: Any) -> Any:
    """A model that must not be asked."""
    raise AssertionError(f"was asked: {request.messages}")


def test_two_equal_votes_of_one_example_are_two(tmp_path: Path) -> None:
    """Each has a colleague of its own in its tool: killed anywhere, nothing is paid for twice, and nothing is lost."""

    class Voting(Agent):
        def forward(self, word: str) -> tg.Variable:
            first, second = self.chat(word=word), self.chat(word=word)
            return second if len(str(first.data)) > len(str(second.data)) else first

    whole, once = counting()
    trained(RunFolder(tmp_path / "whole"), once, Voting(same), each=1)
    for dies_at in range(9, 60, 8):
        path = tmp_path / str(dies_at)
        asked, model = counting()
        with pytest.raises(Killed):
            trained(Mortal(path, dies_at), model, Voting(same), each=1)
        trained(RunFolder(path, resume=True), model, Voting(same), each=1)
        assert timeless(path) == timeless(tmp_path / "whole")
        assert not numbers_aside(path)
        assert asked.total() - whole.total() <= 3  # what was under way
    found = lines(tmp_path / "whole")
    assert len({line["id"] for line in found}) == len(found)
    inside = Counter(each["tool"] for each in read_run(tmp_path / "whole").completions() if each.get("tool"))
    assert set(inside.values()) == {2}


class Team(Agent):
    """A supervisor whose tool gives what a trained colleague answers, who mails."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.other.system = nn.Parameter("Colleague.", role="system prompt of the colleague")

    def ask_colleague(self, word: str) -> tg.Variable:  # type: ignore[override]
        """Ask a colleague."""
        self.done.append(f"ask_colleague {word}")
        return self.other(word=word)


@pytest.mark.parametrize("changing", [False, True], ids=["the same", "another"])
def test_an_agent_that_is_trained_as_a_tool_hears_the_same_when_the_run_was_killed(
    tmp_path: Path, changing: bool
) -> None:
    """Its tool is run again where a backward pass needs it; nothing is asked or mailed twice for that.

    The two take turns: each is killed halfway between the points where the other one is.
    """
    numbers = itertools.count()
    clock = (lambda: next(numbers)) if changing else same

    def model(request: Any) -> Any:
        asked[request.purpose] += 1
        if request.purpose == "backward":
            fields = request.config.response_format.json_schema["properties"]["case_1"]["properties"]
            return {"case_1": dict.fromkeys(fields, "Say to shout.")}
        return acting(request)

    asked: Counter[str] = Counter()
    first = Mortal(tmp_path / "whole")
    result = trained(first, model, Team(clock))
    whole = asked.total()
    assert [change.name for change in result.steps[0].changes] == ["chat.system", "other.system"]
    assert result.steps[0].feedback == 4
    assert any(line.get("through") for line in lines(tmp_path / "whole"))
    mails = [line for line in lines(tmp_path / "whole") if line["name"] == "mail"]
    for dies_at in range(45 if changing else 7, first.events, 76):
        path, killed, again = tmp_path / str(dies_at), Team(clock), Team(clock)
        with pytest.raises(Killed):
            trained(Mortal(path, dies_at), model, killed)
        kept, asked = len(list(read_run(path).completions())), Counter()
        resumed = trained(RunFolder(path, resume=True), model, again)
        assert resumed.best == result.best
        assert resumed.steps == result.steps
        done = [each for each in (*killed.done, *again.done) if each.startswith("mail")]
        assert len(mails) <= len(done) <= len(mails) + 3  # what was under way
        if not changing:
            assert asked.total() + kept == whole
            assert not numbers_aside(path)
            assert timeless(path) == timeless(tmp_path / "whole")
        last = Team(clock)
        assert trained(None, unasked, last, run_dir=path, resume=True) == resumed
        assert {each.split()[0] for each in last.done} <= {"ask_colleague"}


def test_a_run_that_knows_no_places_is_resumed(tmp_path: Path) -> None:
    """As those of before are: nothing that is on record is asked or run again."""

    class Voting(Agent):
        def forward(self, word: str) -> tg.Variable:
            first, other = self.chat(word=word), self.chat(word=word)
            assert other.data  # as above
            return first

    path, program, again = tmp_path / "run", Voting(same), Voting(same)
    with tg.budget(calls=22):
        trained(RunFolder(path), acting, program)
    for name in ("completions.jsonl", "tools.jsonl"):
        told = [json.loads(line) for line in (path / name).read_text(encoding="utf-8").splitlines()]
        assert any(line.pop("place", None) for line in told)
        old = [{key: value for key, value in line.items() if key != "place"} for line in told]
        (path / name).write_text("".join([json.dumps(line) + "\n" for line in old]), encoding="utf-8")
    known = calls_in(path)
    asked, model = counting()
    assert trained(RunFolder(path, resume=True), model, again).status == "finished"
    assert len(again.done) == (calls_in(path) - known).total()
    assert not numbers_aside(path)
    whole, once = counting()
    trained(None, once, Voting(same))
    assert asked.total() == whole.total() - 22
