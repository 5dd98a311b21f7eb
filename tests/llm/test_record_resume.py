"""`record(path, resume=True)`: a cassette that is gone on with."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, ops
from textgrad_engine.errors import BudgetExceeded, ConnectionFailed, RunError
from textgrad_engine.llm.recording import Recording, is_recorded
from textgrad_engine.testing import FunctionModel, ScriptedModel

ROWS = [{"word": word, "target": word.upper()} for word in ("one", "two", "three", "one", "five", "six")]


class Killed(BaseException):
    """Stands for the end of a process."""


def numbered(after: int | None = None) -> tuple[FunctionModel, list[str]]:
    """A model whose answers differ each time, and what it was asked; it is killed with the request after so many."""
    asked: list[str] = []

    def answer(request: llm.Request) -> str:
        if len(asked) == after:
            raise Killed
        asked.append(request.messages[-1].text)
        return f"{request.messages[-1].text.upper()} {len(asked)}"

    return FunctionModel(answer, name="m"), asked


def words(model: Any, path: Path) -> list[str]:
    """What a program says to each row, one after the other, with equal questions among them."""
    program = nn.ChatCompletion("{word}", model=model)
    with llm.record(path, resume=True):
        return [str(program(word=row["word"]).data) for row in (*ROWS, *ROWS[:2])]


def test_killed_at_any_call_it_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    """Each answer is paid for once, equal questions keep theirs, and the whole cassette replays."""
    whole = words(numbered()[0], tmp_path / "whole")
    for end in range(9):
        path, (model, first) = tmp_path / f"{end}", numbered(after=end)
        try:
            words(model, path)
        except Killed:
            assert end < 8
        rest = itertools.count(end + 1)
        again = FunctionModel(lambda request, n=rest: f"{request.messages[-1].text.upper()} {next(n)}", name="m")
        assert words(again, path) == whole
        assert len(first) + len(again.requests) == 8
        assert words(ScriptedModel([], name="m"), path) == whole
        program = nn.ChatCompletion("{word}")
        with llm.replay(path) as tape:
            assert [program(word=row["word"]).data for row in (*ROWS, *ROWS[:2])] == whole
            assert tape.left == 0


@pytest.mark.parametrize("cut", range(2, 60, 7))
def test_a_line_that_was_torn_is_taken_away(tmp_path: Path, cut: int) -> None:
    """Else the next answer would stand behind the half of one, and nobody could read the file."""
    path = tmp_path / "c.jsonl"
    words(numbered()[0], path)
    path.write_bytes(path.read_bytes()[:-cut])
    model, asked = numbered()
    assert len(words(model, path)) == 8
    assert len(asked) == 1
    assert len(words(ScriptedModel([], name="m"), path)) == 8


def test_a_last_line_that_lacks_its_break_alone_is_kept(tmp_path: Path) -> None:
    """An editor left it out, or the process was killed there; it is paid for."""
    path = tmp_path / "c.jsonl"
    words(numbered()[0], path)
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(2):
        assert len(words(ScriptedModel([], name="m"), path)) == 8
    assert path.read_bytes().count(b"\n") == 9


@pytest.mark.parametrize("left", [b"", b'{"cass', b'{"cassette": 1}'])
def test_one_that_was_killed_before_its_first_line_begins_anew(tmp_path: Path, left: bytes) -> None:
    """There is a file, and nothing in it yet."""
    path = tmp_path / "c.jsonl"
    path.write_bytes(left)
    assert len(words(numbered()[0], path)) == 8
    assert len(words(ScriptedModel([], name="m"), path)) == 8


def test_what_is_no_cassette_is_left_alone(tmp_path: Path) -> None:
    """A wrong name must not cost a file."""
    path = tmp_path / "notes.jsonl"
    path.write_text("precious\nwords", encoding="utf-8")
    with pytest.raises(RunError, match=r"notes\.jsonl:1: this is no cassette"), llm.record(path, resume=True):
        pass
    assert path.read_text(encoding="utf-8") == "precious\nwords"


def test_a_new_recording_names_how_to_go_on_with_an_old_one(tmp_path: Path) -> None:
    """Who was killed while he recorded has paid for what is there."""
    words(numbered()[0], tmp_path / "c.jsonl")
    with pytest.raises(RunError, match=r"go on with it: llm\.record\('c\.jsonl', resume=True\)"):
        llm.record(tmp_path / "c.jsonl").__enter__()


def test_a_cassette_that_git_gave_other_line_ends_is_gone_on_with(tmp_path: Path) -> None:
    """As a checkout on Windows may do."""
    path = tmp_path / "c.jsonl"
    whole = words(numbered()[0], path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert words(ScriptedModel([], name="m"), path) == whole
    with llm.replay(path) as tape:
        assert tape.left == 8


def test_what_an_endpoint_refused_is_asked_anew_and_replays_as_answered(tmp_path: Path) -> None:
    """A failure of the endpoint is nobody's answer."""
    path, program = tmp_path / "c.jsonl", nn.ChatCompletion("{word}")
    once = llm.RetryPolicy(max_attempts=1)
    for script in ([ConnectionFailed("gone"), "B"], ["A"]):
        model = llm.resolve(ScriptedModel(script, name="m"), policy=once)
        with tg.use_models(forward=model), llm.record(path, resume=True):
            said = [program(word=word) for word in ("a", "b")]
            if len(script) == 2:
                with pytest.raises(ConnectionFailed):
                    _ = said[0].data
            else:
                assert said[0].data == "A"
            assert said[1].data == "B"
    with llm.replay(path) as tape:
        assert [program(word=word).data for word in ("a", "b")] == ["A", "B"]
        assert tape.left == 0


def test_budgets_count_what_was_paid_before(tmp_path: Path) -> None:
    """A limit holds for all sittings together; a larger one lets it go on."""
    path = tmp_path / "c.jsonl"
    for calls, asked in ((3, 3), (3, 0), (5, 2)):
        model, new = numbered()
        with pytest.raises(BudgetExceeded), tg.budget(calls=calls) as spent:
            words(model, path)
        assert (len(new), spent.spent.calls) == (asked, calls)
    model, new = numbered()
    with tg.budget(calls=8):
        words(model, path)
    assert len(new) == 3


def test_an_evaluation_that_was_killed_goes_on_side_by_side(tmp_path: Path) -> None:
    """Samples of one example ask for the same, so each takes one of the answers that there are."""
    path = tmp_path / "c.jsonl"
    for after in (4, 9, None):
        model, asked = numbered(after=after)
        program = nn.ChatCompletion("{word}", model=model)
        loss = nn.Metric(lambda said, target: float(said.startswith(target)), "the word, in capitals")
        try:
            with llm.record(path, resume=True) as recording:
                assert len(recording.before.answers) == {4: 0, 9: 4, None: 13}[after]
                found = tg.evaluate(program, ROWS, loss, repeats=3)
        except Killed:
            assert after is not None
    assert found.mean == 1.0
    assert len(asked) == 18 - 13
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + 18


def test_tools_are_not_run_again(tmp_path: Path) -> None:
    """A mail is sent once; the turn behind it is asked."""
    path, sent = tmp_path / "c.jsonl", []

    def mail(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return f"sent {len(sent)}"

    call = {"id": "1", "type": "function", "function": {"name": "mail", "arguments": '{"to": "ann"}'}}
    turn = llm.Completion(text="", finish_reason="tool_calls", tool_calls=(call,))
    for script in ([turn, ConnectionFailed("gone")], ["done"], []):
        model = llm.resolve(ScriptedModel(script, name="m"), policy=llm.RetryPolicy(max_attempts=1))
        with llm.record(path, resume=True):
            said = ops.chat_completion(model, [{"role": "user", "content": ["Write to Ann."]}], tools=[mail])
            if len(script) == 2:
                with pytest.raises(ConnectionFailed):
                    _ = said.data
            else:
                assert said.data == "done"
    assert sent == ["ann"]
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert sum("id" in line for line in lines) == 1


def test_what_a_cassette_around_it_plays_back_is_not_paid_for(tmp_path: Path) -> None:
    """So it is not kept either; what is asked inside of both is written to both."""
    words(numbered()[0], tmp_path / "outer")
    with llm.replay(tmp_path / "outer"):
        assert len(words(ScriptedModel([], name="m"), tmp_path / "inner")) == 8
    assert (tmp_path / "inner").read_text(encoding="utf-8") == '{"cassette": 1}\n'
    with llm.record(tmp_path / "both"):
        words(numbered()[0], tmp_path / "inner")
        words(ScriptedModel([], name="m"), tmp_path / "inner")
    whole = (tmp_path / "both").read_text(encoding="utf-8").splitlines()
    assert (len(whole), len((tmp_path / "inner").read_text(encoding="utf-8").splitlines())) == (17, 9)


RECORDING = """
import sys
from textgrad_engine import llm
with llm.record(sys.argv[1], resume=True):
    print("recording", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed otherwise on Windows")
def test_two_processes_do_not_record_one_cassette(tmp_path: Path) -> None:
    """Both would pay for the same; a killed one keeps nobody out."""
    path = tmp_path / "c.jsonl"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", RECORDING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "recording\n"
        assert is_recorded(path)
        with pytest.raises(RunError, match="another process, or block, is recording this cassette; wait for its end"):
            words(numbered()[0], path)
        process.kill()
        process.wait()
    assert not is_recorded(path)
    assert len(words(numbered()[0], path)) == 8


def test_one_that_is_done_with_is_removed(tmp_path: Path) -> None:
    """What still comes then is nobody's."""
    with llm.record(tmp_path / "c.jsonl", resume=True) as recording:
        program = nn.ChatCompletion("{word}", model=ScriptedModel(["A", "B"], name="m"))
        assert program(word="a").data == "A"
        recording.discard()
        assert program(word="b").data == "B"
    assert list(tmp_path.iterdir()) == []
    assert isinstance(recording, Recording)
