"""The run folder: what was paid for is on disk, in one order, and nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Fallback, OpenAIModel, RetryPolicy
from textgrad_engine.llm.disk_reserve import SIZE, Room
from textgrad_engine.store import (
    RunFolder,
    append_evaluation,
    file_name,
    journal,
    read_run,
    write_atomically,
    write_shrunk,
)
from textgrad_engine.testing import FunctionModel, LoopbackServer
from textgrad_engine.train.events import CallEnded, RunEnded, RunFailed, RunStarted, StepEnded

from ..conftest import timeless
from .conftest import answer


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Watcher:
    """Does something at one kind of event, or at several."""

    def __init__(self, kind: Any, do: Any) -> None:
        self.kind, self.do = kind, do

    def on_event(self, event: Any) -> None:
        if isinstance(event, self.kind):
            self.do(event)


def test_a_folder_that_holds_files_is_refused(tmp_path: Path) -> None:
    """Two runs never mix in one folder."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match=r"must be new or empty.*name another"):
        RunFolder(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_place_where_no_folder_can_be_is_refused(tmp_path: Path) -> None:
    """A file, and what would be below one; the message says to name another place."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match=r"notes\.txt is a file, and a folder is wanted there; name another place"):
        RunFolder(tmp_path / "notes.txt")
    with pytest.raises(RunError, match=r"cannot be written: .*; name another place"):
        RunFolder(tmp_path / "notes.txt" / "run")
    with pytest.raises(RunError, match=r"run: the run folder cannot be written: .*notes\.txt is a file"):
        RunFolder(tmp_path / "notes.txt" / "deep" / "run")
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "run")
    with pytest.raises(RunError, match=r"link is a link that leads nowhere; name another place"):
        RunFolder(tmp_path / "link")


def test_a_tilde_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder named ~ is dangerous to remove."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert RunFolder("~/run").path == tmp_path / "run"
    assert tg.Trainer(run_dir="~/run").run_dir == tmp_path / "run"
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n', encoding="utf-8")
    assert len(tg.data.load("~/rows.jsonl")) == 1
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert tg.data.image_part("~/a.png") == tg.data.image_part(tmp_path / "a.png")


def test_a_name_that_begins_with_a_tilde_and_is_no_user_s_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("~rows of Ada.csv").write_text("text\na\n", encoding="utf-8")
    assert tg.data.load("~rows of Ada.csv")[0] == {"text": "a"}
    assert tg.Trainer(run_dir="~rows of Ada").run_dir == Path("~rows of Ada")


def test_a_home_that_windows_only_guesses_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes any name behind a tilde for a user's, whose home would be beside the own one."""
    monkeypatch.chdir(tmp_path)
    Path("~$rows.csv").write_text("text\na\n", encoding="utf-8")
    (tmp_path / "users" / "ada").mkdir(parents=True)
    real = os.path.expanduser
    monkeypatch.setattr(os.path, "expanduser", lambda path: real(path).replace("~", f"{tmp_path}/users/"))
    assert tg.data.load("~$rows.csv")[0] == {"text": "a"}
    assert tg.Trainer(run_dir="~ada/run").run_dir == tmp_path / "users" / "ada" / "run"


def test_a_folder_is_used_once(tmp_path: Path) -> None:
    """The folder of a run that has just begun is in use."""
    for name, kept, way in (
        ("python", None, r"tg\.Trainer\(run_dir=\.\.\., resume=True\)"),
        ("command", {"seed": 0}, "`textgrad-engine resume .*command`"),
    ):
        RunFolder(tmp_path / name, config=kept)
        said = f"must be new or empty, and this one holds a run; .* go on with that run if it is unfinished: {way}"
        with pytest.raises(RunError, match=said):
            RunFolder(tmp_path / name)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """An error of the file system is told in our words."""
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="run"):
        RunFolder(tmp_path / "run")


def test_a_journal_that_cannot_be_written_stops_the_run(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """Nothing is paid for that could not be recorded."""
    folder = RunFolder(tmp_path / "run")

    def full(fd: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("textgrad_engine.llm.lines.os.write", full)
    with pytest.raises(RunError, match="cannot be written: no space left on device"):
        fit(folder)


def test_what_is_under_way_when_the_disk_fills_is_kept(tmp_path: Path, fit: Any, disk: Any) -> None:
    """The run ends, and every answer that was paid for is on record; resumed, it asks for the rest."""
    answered: list[Any] = []

    def told(request: Any) -> Any:
        answered.append(request)
        return answer(request)

    made = disk(SIZE + 3000)
    with pytest.raises(RunError, match="no space left on device; when that is mended, resume the run: what was paid"):
        fit(RunFolder(tmp_path / "run"), told)
    assert made.promised == 0
    assert len(lines(tmp_path / "run" / "completions.jsonl")) == len(answered) > 2
    made.free = 1 << 24
    found = fit(RunFolder(tmp_path / "run", resume=True), told)
    whole = len(answered)
    assert made.promised == 0
    answered.clear()
    assert fit(RunFolder(tmp_path / "whole"), told).best == found.best
    assert len(answered) == whole


@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be deleted there")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_record_that_is_deleted_while_it_is_written_ends_the_run(tmp_path: Path, fit: Any, replaced: bool) -> None:
    """Answers went into a file that nobody could open any more until the run ended well, with an empty record."""
    path, asked = tmp_path / "run", []

    def told(request: Any) -> Any:
        asked.append(request)
        if len(asked) == 3:  # the first two are those of the first validation
            before = (path / "completions.jsonl").read_bytes()
            (path / "completions.jsonl").unlink()
            if replaced:
                (path / "completions.jsonl").write_bytes(before)
        return answer(request)

    with pytest.raises(RunError, match=r"completions\.jsonl: .*it was deleted, .*; put the folder back as it was, and"):
        fit(RunFolder(path), told)
    assert len(asked) <= 4  # the batch of two
    if replaced:
        assert fit(RunFolder(path, resume=True), told).best == fit(RunFolder(tmp_path / "whole")).best


@pytest.mark.skipif(os.name == "nt", reason="a folder with files that are open cannot be moved there")
def test_a_folder_that_is_moved_while_it_is_written_is_to_be_put_back(tmp_path: Path, fit: Any) -> None:
    """Its open files go on, so that all of it is there; the next file to be written says that it is elsewhere."""
    path, asked = tmp_path / "run", []

    def told(request: Any) -> Any:
        asked.append(request)
        if len(asked) == 3:
            path.rename(tmp_path / "moved")
        return answer(request)

    with pytest.raises(RunError, match="put the folder back as it was, and resume the run: what was paid for is in it"):
        fit(RunFolder(path), told)
    (tmp_path / "moved").rename(path)
    paid = len(asked)
    assert len(lines(path / "completions.jsonl")) == paid
    found = fit(RunFolder(path, resume=True), told)
    whole: list[Any] = []
    assert (
        found.best == fit(RunFolder(tmp_path / "whole"), lambda request: whole.append(request) or answer(request)).best
    )
    assert len(asked) == len(whole)


def test_an_evaluation_that_cannot_be_written_leaves_those_before_it(tmp_path: Path, monkeypatch: Any) -> None:
    """A part of it would make the whole file unreadable for what comes behind."""
    append_evaluation(tmp_path, {"n": 1})
    before = (tmp_path / "evals.jsonl").read_bytes()
    write = os.write
    parts = iter([4])

    def full(fd: int, content: bytes) -> int:
        if (part := next(parts, None)) is None:
            raise OSError(28, "No space left on device")
        return write(fd, content[:part])

    monkeypatch.setattr("textgrad_engine.llm.lines.os.write", full)
    with pytest.raises(RunError, match="no space left on device"):
        append_evaluation(tmp_path, {"n": 2})
    assert (tmp_path / "evals.jsonl").read_bytes() == before


def test_the_trainer_writes_a_folder_by_itself(tmp_path: Path, fit: Any) -> None:
    """``Trainer(run_dir=...)`` needs no import of the store."""
    fit(None, run_dir=tmp_path / "run")
    assert (tmp_path / "run" / "result.json").is_file()


def test_the_trainer_finds_the_store_by_itself(tmp_path: Path) -> None:
    """Also for who imports the Trainer from its own package, in a process where nothing else was imported."""
    code = (
        "from textgrad_engine.train import Trainer\n"
        "from textgrad_engine import nn, optim, use_models\n"
        "from textgrad_engine.testing import FunctionModel\n"
        "program = nn.ChatCompletion('{word}', system=nn.Parameter('x', role='system prompt'))\n"
        "rows = [{'word': word, 'target': word} for word in 'abcd']\n"
        "with use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):\n"
        f"    trainer = Trainer(run_dir={str(tmp_path / 'run')!r})\n"
        "    trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), rows[:2], rows[2:])\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, cwd=tmp_path)
    assert (tmp_path / "run" / "result.json").is_file()


def test_texts_are_exactly_the_parameters(written: tuple[Path, Any]) -> None:
    """A prompt can be copied out of its file as it is: no line break is added."""
    path, result = written
    assert (path / "best" / "system.txt").read_bytes() == result.best["system"].encode() == b"Repeat.\nShout."
    assert (path / "best_prompt.txt").read_bytes() == b"Repeat.\nShout."
    assert (path / "seed" / "system.txt").read_bytes() == b"Repeat."


def test_no_name_of_a_parameter_leads_out_of_the_folder(tmp_path: Path) -> None:
    """The key of a ModuleDict may be anything."""
    folder = RunFolder(tmp_path / "run")
    folder.on_event(RunStarted({"../a b": "x", "chat.system": "y"}, 1, 1, 0, 1))
    assert sorted(file.name for file in (tmp_path / "run" / "best").iterdir()) == ["..%2Fa%20b.txt", "chat.system.txt"]
    assert not (tmp_path / "run" / "best_prompt.txt").exists()


@pytest.mark.parametrize("name", ["aux", "CON.system", "nul.x.y", "com1", "Lpt9.text", "com².a"])
def test_no_name_of_a_parameter_is_a_device_of_windows(name: str) -> None:
    """What is written to one of these is gone there."""
    assert file_name(name)[1:] == f"{ord(name[0]):02X}{name[1:]}"


@pytest.mark.parametrize("name", ["auxiliary", "console.system", "com.system", "com10", "x.aux", "größe"])
def test_other_names_of_parameters_are_their_files_names(name: str) -> None:
    """They are for people."""
    assert file_name(name) == name


@pytest.mark.parametrize("name", ["step." * 60 + "system", "質" * 100, "a/b " * 60])
def test_a_name_that_is_too_long_for_a_file_keeps_its_beginning(tmp_path: Path, name: str) -> None:
    """File systems take 255 bytes, and no run should end for that; names that differ at their ends stay apart."""
    names = [name + "1", name + "2"]
    write_shrunk(tmp_path, {each: each for each in names}, {})
    files = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "shrunk").iterdir()}
    assert sorted(files.values()) == sorted(names)
    assert all(file[:8] == file_name(name[:8])[:8] for file in files)


def test_parameters_that_differ_in_case_have_files_of_their_own(tmp_path: Path, fit: Any) -> None:
    """Where "Chat" and "chat" are one file, one of the two prompts would be lost."""
    names = ["Chat.system", "chat.system", "judge.system"]
    folder = RunFolder(tmp_path / "run")
    folder.on_event(RunStarted({name: name for name in names}, 1, 1, 0, 1))
    written = {file.name.casefold(): file.read_text(encoding="utf-8") for file in (folder.path / "best").iterdir()}
    assert sorted(written.values()) == names
    write_shrunk(folder.path, {name: name for name in names}, {})
    assert len({file.name.casefold() for file in (folder.path / "shrunk").iterdir()}) == 3


@pytest.mark.parametrize(
    "names",
    [
        ["a 19", "a\u2019"],  # a space and two digits, and a quotation mark
        ["\uac00", "\u1100\u1161"],  # a letter of Korean, whole and in parts
        ["\u00c5", "\u212b"],  # a letter, and the sign that looks like it
    ],
)
def test_parameters_whose_names_would_be_one_file_have_files_of_their_own(tmp_path: Path, names: list[str]) -> None:
    """Else one of two prompts would be lost, on some disks or on all."""
    write_shrunk(tmp_path, {name: name for name in [*names, "plain"]}, {})
    files = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "shrunk").iterdir()}
    assert len({unicodedata.normalize("NFC", name).casefold() for name in files}) == 3
    assert sorted(files.values()) == sorted([*names, "plain"])


def test_every_completion_is_there_with_its_request(written: tuple[Path, Any]) -> None:
    """What was paid for can be read again: who asked what, what came back, what it used."""
    path, result = written
    found = lines(path / "completions.jsonl")
    assert len(found) == result.total.calls == sum(entry["usage"]["calls"] for entry in found)
    first = found[0]
    assert (first["phase"], first["phase_name"], first["purpose"], first["example"]) == (
        1,
        "validate",
        "forward",
        "five",
    )
    assert [message["content"] for message in first["request"]["messages"]] == ["Repeat.", "five"]
    assert (first["text"], first["finish_reason"], first["attempts"]) == ("five", "stop", 1)
    assert None not in first["request"]["config"].values()
    assert {entry["purpose"] for entry in found} == {"forward", "backward", "optimizer"}


def test_a_completion_is_on_disk_before_its_answer_is_used(tmp_path: Path, fit: Any) -> None:
    """A run that is killed has lost nothing that it was answered."""
    folder = RunFolder(tmp_path / "run")
    seen: list[bool] = []

    def check(event: CallEnded) -> None:
        last = (folder.path / "completions.jsonl").read_bytes().splitlines()[-1]
        seen.append(json.loads(last)["text"] == event.record.completion.text)  # type: ignore[union-attr]

    fit(folder, callbacks=[Watcher(CallEnded, check)])
    assert seen
    assert all(seen)


def test_the_best_text_is_kept_at_once(tmp_path: Path, fit: Any) -> None:
    """A run that is killed after a step leaves what that step found."""
    folder = RunFolder(tmp_path / "run")
    seen: list[bytes] = []
    fit(folder, callbacks=[Watcher(StepEnded, lambda _: seen.append((folder.path / "best_prompt.txt").read_bytes()))])
    assert seen == [b"Repeat.\nShout."]


def test_failed_calls_are_recorded_with_their_error(tmp_path: Path, fit: Any) -> None:
    """What went wrong is in the folder too."""

    def failing(request: Any) -> Any:
        raise tg.errors.AuthenticationFailed("no such key", status=401)

    with pytest.raises(tg.errors.AuthenticationFailed):
        fit(RunFolder(tmp_path / "run"), model=failing)
    assert "AuthenticationFailed: no such key" in lines(tmp_path / "run" / "completions.jsonl")[0]["error"]


def test_keys_that_an_endpoint_repeats_are_not_written_down(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """The program gets the answer as it was; what is only read by people holds no key."""
    monkeypatch.setenv("SOME_API_KEY", "swordfish-42")
    monkeypatch.setenv("OTHER_API_KEY", "ollama")
    said = "ollama says swordfish-42"
    others = {"backward": {"case_1": {"system": "Shout."}}, "optimizer": {"edits": []}}
    result = fit(RunFolder(tmp_path / "run"), model=lambda request: others.get(request.purpose, said))
    assert result.seed_val.predictions == (said, said)
    for name in ("completions.jsonl", "events.jsonl", "result.json"):
        text = (tmp_path / "run" / name).read_text()
        assert "ollama says [redacted]" in text
        assert "swordfish" not in text


@pytest.mark.parametrize("stack", ["alone", "as a second model"])
def test_the_key_of_a_model_is_not_written_down(tmp_path: Path, monkeypatch: Any, stack: str) -> None:
    """Although no variable holds it; a key that is a word stands where an answer has the word."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    rows = [{"word": "a", "target": "local says swordfish-42"}]
    down = OpenAIModel("down", base_url="http://127.0.0.1:9/v1", api_key="local")
    with LoopbackServer(FunctionModel(lambda request: "local says swordfish-42")) as server:
        model: Any = OpenAIModel("m", base_url=server.base_url, api_key="swordfish-42")
        if stack != "alone":
            model = Fallback(llm.resolve(down, policy=RetryPolicy(max_attempts=1)), model)
        with tg.use_models(forward=model):
            trainer = tg.Trainer(max_steps=1, run_dir=tmp_path / "run")
            result = trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), rows, rows)
    assert result.seed_val.mean == 1.0
    assert result.seed_val.predictions == ("local says swordfish-42",)
    for name in ("completions.jsonl", "events.jsonl", "result.json"):
        text = (tmp_path / "run" / name).read_text()
        assert "local says [redacted]" in text
        assert "swordfish" not in text


def test_an_error_that_ends_a_run_is_its_last_event(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """The terminal that showed it may be closed; secrets in it are not written down."""
    monkeypatch.setenv("SOME_API_KEY", "swordfish-42")

    def fail(_: Any) -> None:
        error = ValueError("no good: swordfish-42")
        error.add_note("example 'one', by swordfish-42")
        raise error

    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ValueError, match="swordfish-42"):
        fit(folder, callbacks=[Watcher(StepEnded, fail)])
    last = lines(folder.path / "events.jsonl")[-1]
    assert (last["event"], last["error"]) == ("RunFailed", "ValueError: no good: [redacted]")
    notes = ["example 'one', by [redacted]", "raised by the callback Watcher, told of StepEnded"]
    assert last["notes"] == notes
    run = read_run(folder.path)
    assert run.error == "\n".join(["ValueError: no good: [redacted]", *notes])
    assert (run.result, len(run.steps)) == (None, 1)


def test_what_went_wrong_first_is_raised(fit: Any) -> None:
    """A listener that breaks is told so, breaks again, and does not hide why."""
    problems = iter(["first", "second"])

    def fail(_: Any) -> None:
        raise ValueError(next(problems))

    with pytest.raises(ValueError, match="first"):
        fit(None, callbacks=[Watcher((StepEnded, RunFailed), fail)])
    assert list(problems) == []


def test_ctrl_c_is_no_error_of_a_run(tmp_path: Path, fit: Any) -> None:
    """Whoever pressed it knows, and its handling is elsewhere."""

    def press(_: Any) -> None:
        raise KeyboardInterrupt

    folder = RunFolder(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        fit(folder, callbacks=[Watcher(StepEnded, press)])
    assert read_run(folder.path).error == ""


def test_calls_that_were_never_sent_are_left_out(tmp_path: Path, fit: Any) -> None:
    """The queue behind a spent budget is no list of completions."""
    with tg.budget(calls=3):
        result = fit(RunFolder(tmp_path / "run"))
    assert result.status == "budget"
    assert len(lines(tmp_path / "run" / "completions.jsonl")) == 3


def test_a_paid_attempt_is_kept_when_the_budget_refuses_the_next(tmp_path: Path, fit: Any) -> None:
    """The last request of such a call was never sent, but those before it are in the sums."""
    answers = iter(["one", "two"])

    def empty_at_last(request: Any) -> Any:
        return next(answers, " ")

    with tg.budget(calls=3) as budget:
        result = fit(RunFolder(tmp_path / "run"), model=empty_at_last)
    assert result.status == "budget"
    found = lines(tmp_path / "run" / "completions.jsonl")
    assert sum(entry["usage"]["calls"] for entry in found) == budget.spent.calls == 3
    assert [entry["error"][:14] for entry in found if "error" in entry] == ["BudgetExceeded"]


def test_events_come_in_order_and_each_has_a_time(written: tuple[Path, Any]) -> None:
    """The journal is the run's history."""
    events = lines(written[0] / "events.jsonl")
    names = [entry["event"] for entry in events]
    assert names[0] == "RunStarted"
    assert names[-1] == "RunEnded"
    assert "PhaseAdvanced" not in names
    assert "CallEnded" not in names
    assert all(entry["time"].endswith("Z") for entry in events)
    assert [entry["status"] for entry in events if entry["event"] == "RunEnded"] == ["finished"]


def test_two_runs_differ_in_their_times_only(tmp_path: Path, fit: Any) -> None:
    """The order in which threads finish leaves no trace."""
    for name, concurrency in (("a", 1), ("b", None)):
        fit(RunFolder(tmp_path / name, config={"seed": 0}), concurrency=concurrency)
    first, second = timeless(tmp_path / "a"), timeless(tmp_path / "b")
    assert first.keys() == second.keys()
    for name in first:
        assert first[name] == second[name], name


def test_an_atomic_write_leaves_the_old_file_when_it_fails(tmp_path: Path, monkeypatch: Any) -> None:
    """Whoever opens the file finds the old content or the new one."""
    write_atomically(tmp_path / "a.txt", b"old")

    def broken(source: Any, target: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="Input/output"):
        write_atomically(tmp_path / "a.txt", b"new")
    assert (tmp_path / "a.txt").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_the_folder_stays_where_it_was_when_the_program_moves(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """A program that changes the working directory does not scatter the run."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder("run")
    (tmp_path / "elsewhere").mkdir()

    def move(event: Any) -> None:
        os.chdir(tmp_path / "elsewhere")

    fit(folder, callbacks=[Watcher(StepEnded, move)])
    assert not list((tmp_path / "elsewhere").iterdir())
    assert (tmp_path / "run" / "result.json").is_file()


def test_a_second_run_of_one_folder_is_refused(tmp_path: Path, fit: Any) -> None:
    """Its lines would stand among those of the first; nothing of it is told."""
    folder = RunFolder(tmp_path / "run")
    fit(folder)
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    with pytest.raises(RunError, match="run: a run folder is that of one run; give each run a RunFolder of its own"):
        fit(folder)
    assert {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()} == before


def test_evaluations_are_appended(tmp_path: Path) -> None:
    """Every opening of the test split leaves a line."""
    append_evaluation(tmp_path, {"mean": 0.5})
    append_evaluation(tmp_path, {"mean": 0.6})
    assert [entry["mean"] for entry in lines(tmp_path / "evals.jsonl")] == [0.5, 0.6]
    with pytest.raises(RunError, match="cannot be written"):
        append_evaluation(tmp_path / "none", {})


def test_a_late_call_is_still_written(tmp_path: Path, fit: Any) -> None:
    """An answer that comes when the result is out is paid for all the same."""
    folder = RunFolder(tmp_path / "run")
    calls: list[CallEnded] = []
    fit(folder, callbacks=[Watcher(CallEnded, calls.append), Watcher(RunEnded, lambda _: None)])
    folder.on_event(calls[-1])
    assert len(lines(tmp_path / "run" / "completions.jsonl")) == len(calls) + 1


def test_a_run_that_has_ended_holds_no_file(
    tmp_path: Path, fit: Any, monkeypatch: pytest.MonkeyPatch, windows_files: None
) -> None:
    """On Windows a run whose error is still at hand, as in a notebook, could not be resumed or removed before."""
    folder = RunFolder(tmp_path / "run")
    with tg.budget(calls=12):
        assert fit(folder).status == "budget"
    again = RunFolder(tmp_path / "run", resume=True)
    assert fit(again).status == "finished"
    assert {".lock"}.isdisjoint(file.name for file in again.path.iterdir())
    for file in again.path.rglob("*"):
        if file.is_file():
            file.unlink()


class Leaving:
    """Is told when a run is left, after the run folder of `Trainer(run_dir=...)`, and presses Ctrl-C then."""

    def on_event(self, event: Any) -> None:
        """Nothing."""

    def on_end(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_when_a_run_is_left_takes_nobody_its_result(tmp_path: Path, fit: Any) -> None:
    """All is paid for and decided by then; a notebook would have neither result nor error of its own."""
    assert fit(None, run_dir=tmp_path / "run", callbacks=[Leaving()]).status == "finished"


def test_a_run_that_is_interrupted_again_when_it_is_left_can_be_resumed_in_its_process(
    tmp_path: Path, fit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook's kernel stays, and its error holds what it was raised in, so the next cell was locked out."""

    class Interrupted(Room):
        def __init__(self, folder: Path) -> None:
            super().__init__(folder)
            self.give_back = partial(signal.default_int_handler, signal.SIGINT, None)

    with monkeypatch.context() as patched, tg.budget(calls=12):
        patched.setattr(journal, "Room", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit(None, run_dir=tmp_path / "run")
    assert fit(None, run_dir=tmp_path / "run", resume=True).status == "finished"


def test_completions_that_cannot_be_put_in_order_lose_nothing(
    tmp_path: Path, fit: Any, monkeypatch: Any, caplog: Any
) -> None:
    """The disk may have no room for a second file of them: nobody is kept from the result of the run by that."""
    folder = RunFolder(tmp_path / "run")
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if Path(target).name == "completions.jsonl":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    result = fit(folder)
    assert read_run(folder.path).result == result
    assert [record.getMessage() for record in caplog.records if record.name == "textgrad_engine.store"] == [
        f"{folder.path / 'completions.jsonl'} stays in the order of time: no space left on device"
    ]
    assert lines(folder.path / "completions.jsonl")
    folder._completions.append(b"{}")
    assert lines(folder.path / "completions.jsonl")[-1] == {}
