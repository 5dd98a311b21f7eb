"""A run that was cut is resumed: what was paid for is not asked for again, and the folder is that of a whole run."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, ops, optim
from textgrad_engine.errors import ConnectionFailed, RunError, TruncatedResponse
from textgrad_engine.llm import Completion, RetryPolicy, resolve
from textgrad_engine.llm.lines import append_line
from textgrad_engine.store import RunFolder, files, read_run
from textgrad_engine.store.paid import numbers_aside, paid_for
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.events import CallEnded, Evaluated, PhaseStarted, RunEnded, StepEnded

from ..conftest import timeless
from .conftest import ROWS, answer


class Killed(Exception):
    """The process is no more."""


class Mortal(RunFolder):
    """A run folder whose process is killed when it writes its n-th line, after so many bytes of it; 0 is never."""

    def __init__(self, path: Path, dies_at: int = 0, torn: int = 0, **settings: Any) -> None:
        super().__init__(path, **settings)
        self.written, self.dies_at, self.torn, self.dead = 0, dies_at, torn, False
        for each in (self._events, self._completions):
            each.append = self.appending(each)  # type: ignore[method-assign]

    def appending(self, held: Any) -> Callable[[bytes], None]:
        def append(line: bytes) -> None:
            self.written += 1
            if self.written == self.dies_at:
                self.dead = True
                os.write(held._fd, line[: self.torn])
                raise Killed
            append_line(held._fd, line)

        return append

    def on_event(self, event: Any) -> None:
        if self.dead:
            raise Killed
        super().on_event(event)

    def on_end(self) -> None:
        if self.dead:  # as the system does where a process ends
            for each in (self._events, self._completions):
                each.close()
            self._lock.forget()
            self._room.give_back()
        else:
            super().on_end()


class Counting:
    """A model that counts what it is asked."""

    def __init__(self, answer: Callable[[Any], Any] = answer) -> None:
        self.asked, self.answer = 0, answer

    def __call__(self, request: Any) -> Any:
        self.asked += 1
        return self.answer(request)


def unasked(request: Any) -> Any:
    """A model that must not be asked."""
    raise AssertionError(f"was asked: {request.messages}")


def killed(fit: Any, folder: Mortal, model: Any = answer, **settings: Any) -> bool:
    """Whether the run of a folder was killed."""
    try:
        fit(folder, model=model, **settings)
    except Killed:
        return True
    assert not folder.dead
    return False


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory, fit: Any) -> list[Path]:
    """Run folders of which each was killed at the next line, in the middle of it, too; they are to be copied."""
    made, folders = tmp_path_factory.mktemp("cuts"), []
    for number in itertools.count(1):
        path = made / str(number)
        if not killed(fit, Mortal(path, number, torn=number % 3 * 20, config={"seed": 0})):
            return folders
        folders.append(path)
    raise AssertionError


def test_killed_at_any_line_it_resumes(tmp_path: Path, fit: Any, cuts: list[Path]) -> None:
    """In the middle of a line, too, and while the test set is open: the folder is the same, nothing is paid twice.

    Every second line; at the others what is gone is bought again below. What is the same to the byte gives the same
    result when it is read, which is looked at for every sixth.
    """
    whole = tmp_path / "whole"
    every = Counting()
    fit(RunFolder(whole, config={"seed": 0}), model=every)
    for cut in cuts[1::2]:
        path = shutil.copytree(cut, tmp_path / cut.name)
        second = Counting()
        kept = sum("text" in paid.entry for paid in paid_for(path))
        result = fit(RunFolder(path, resume=True), model=second)
        assert second.asked == every.asked - kept
        assert timeless(path) == timeless(whole)
        if int(cut.name) % 6 == 2:
            assert fit(None, run_dir=path, resume=True, model=unasked) == result
    assert len(cuts) > 30


def test_killed_at_any_line_it_knows_which_calls_are_gone(tmp_path: Path, fit: Any, cuts: list[Path]) -> None:
    """Of each phase that had ended; nothing is asked then, nothing is moved, and only `anyway` buys them again.

    They are bought again for every second line: what is left of the folder is the same for those of one phase.
    """
    refused = 0
    for cut in cuts:
        path = shutil.copytree(cut, tmp_path / cut.name)
        ended = {event["number"] for event in read_run(path).events if event["event"] == "PhaseEnded"}
        whole = (path / "completions.jsonl").read_bytes().splitlines(True)
        phases = [json.loads(line)["phase"] for line in whole if line.endswith(b"\n")]
        for left in (whole[: len(phases) - 1], []):
            (path / "completions.jsonl").write_bytes(b"".join(left))
            (path / ".lock").unlink(missing_ok=True)
            before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
            gone = sum(phase in ended for phase in phases[len(left) :])
            if not gone:
                continue
            refused += 1
            with pytest.raises(RunError, match=rf": {gone} calls? that .*; restore it, or have them bought"):
                RunFolder(path, resume=True)
            assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
        if int(cut.name) % 2:
            assert fit(RunFolder(path, resume=True, anyway=True)).status == "finished"
    assert refused > 30


def test_killed_while_it_puts_its_calls_in_order_it_resumes(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """The folder becomes that of a whole run, without the draft of the file that was being put in order."""
    whole, path = tmp_path / "whole", tmp_path / "run"
    result = fit(RunFolder(whole))
    folder = Mortal(path)

    def dying(draft: Path, place: Path, move: Callable[[Path, Path], None] = files.move) -> None:
        if place.name == "completions.jsonl":
            folder.dead = True
            draft.rename(draft.with_name(".completions.jsonl.1.tmp"))  # nobody tidies up where a process is killed
            raise Killed
        move(draft, place)

    with monkeypatch.context() as patch:
        patch.setattr(files, "move", dying)
        assert killed(fit, folder)
    assert (path / ".completions.jsonl.1.tmp").is_file()
    assert fit(RunFolder(path, resume=True), model=unasked).comparison == result.comparison
    assert timeless(path) == timeless(whole)


class Cascade:
    """A model of one's own that asks one model, and another one where that is not sure; both are counted."""

    name = "cascade"

    def __init__(self, model: Callable[[Any], Any]) -> None:
        self.small = resolve(FunctionModel(model, name="small"))
        self.large = resolve(FunctionModel(model, name="large"))

    async def complete(self, request: Any) -> Completion:
        said = await self.small.complete(request)
        if "o" in said.text:
            said = await self.large.complete(request)
        return Completion(text=said.text)


def test_a_model_that_asks_others_is_played_back_with_what_they_said(tmp_path: Path, fit: Any) -> None:
    """It is not run where its answer is on record, and what it asked counts again, once; finished, nobody is asked."""
    whole, every = tmp_path / "whole", Counting()
    result = fit(RunFolder(whole), model=Cascade(every))
    asked_inside = [line for line in lines(whole / "completions.jsonl") if line["model"] != "cascade"]
    assert every.asked == len(asked_inside) < result.total.calls
    assert fit(None, run_dir=whole, resume=True, model=Cascade(unasked)) == result
    for number in itertools.count(5, 7):
        path = tmp_path / str(number)
        first, second = Counting(), Counting()
        if not killed(fit, Mortal(path, number), Cascade(first)):
            break
        kept = sum("text" in paid.entry and paid.entry["model"] != "cascade" for paid in paid_for(path))
        resumed = fit(RunFolder(path, resume=True), model=Cascade(second))
        assert second.asked == every.asked - kept
        assert resumed.total == result.total
        assert timeless(path) == timeless(whole)
    assert number > 60


def test_a_record_that_was_deleted_is_asked_for_anew_on_request(tmp_path: Path, fit: Any) -> None:
    """Also where the run is of before calls were counted."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    (path / "completions.jsonl").unlink()
    with pytest.raises(RunError, match=": 8 calls that were paid for can no longer be found"):
        RunFolder(path, resume=True)
    text = re.sub(r', "calls": \d+', "", (path / "events.jsonl").read_text(encoding="utf-8"))
    (path / "events.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"completions\.jsonl: the file is missing .*; restore it, or have them bought"):
        RunFolder(path, resume=True)
    asked = Counting()
    result = fit(RunFolder(path, resume=True, anyway=True), model=asked)
    assert (result.status, asked.asked) == ("finished", result.total.calls)


def test_a_look_at_the_test_set_of_which_the_answers_are_gone_stays_counted(tmp_path: Path, fit: Any) -> None:
    """It may have been for other texts, and it was one."""
    path = tmp_path / "run"
    pressed: list[Any] = []

    def press(event: Any) -> None:
        if event.phase == "test" and not pressed:
            pressed.append(event)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(RunFolder(path), callbacks=[At(Evaluated, press)])
    (path / "completions.jsonl").write_bytes(b"")
    assert fit(RunFolder(path, resume=True, anyway=True)).openings == 2


def test_what_another_file_of_the_run_holds_is_not_gone(tmp_path: Path, fit: Any) -> None:
    """A resumed run has its calls in several; one of them may be lost without anything being lost."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    assert killed(fit, Mortal(path, 14, resume=True))
    assert any(event["event"] == "PhaseEnded" for event in read_run(path).events)
    (path / "completions.jsonl").write_bytes(b"")
    shutil.copytree(path, tmp_path / "other")
    asked = Counting()
    result = fit(RunFolder(path, resume=True), model=asked)
    assert (result.status, asked.asked) == ("finished", result.total.calls - 8)
    (tmp_path / "other" / "answers-1.jsonl").write_bytes(b"")
    with pytest.raises(RunError, match=": 8 calls that were paid for can no longer be found"):
        RunFolder(tmp_path / "other", resume=True)


@pytest.mark.parametrize("ended", ["killed", "budget", "interrupted"])
def test_killed_at_any_line_of_a_resume_the_folder_tells_no_less_than_before(
    tmp_path: Path, fit: Any, ended: str
) -> None:
    """The best texts, the steps, and the result where there was one; until the run has come as far again.

    They take turns: each of them is killed at every fifth line, another one two lines later.
    """
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    fit(RunFolder(whole))
    if ended == "killed":
        assert killed(fit, Mortal(cut, 40))
    elif ended == "budget":
        assert cut_by_budget(fit, cut, 12).status == "budget"
    else:
        pressed: list[Any] = []

        def press(event: Any) -> None:
            if event.phase == "test" and not pressed:
                pressed.append(event)
                signal.raise_signal(signal.SIGINT)

        assert fit(RunFolder(cut), callbacks=[At(PhaseStarted, press)]).status == "interrupted"
    before = read_run(cut)
    assert (len(before.steps), before.best) == (1, {"system": "Repeat.\nShout."})
    assert (before.result is None) is (ended == "killed")
    noted = set()
    for number in itertools.count(1 + 2 * ["budget", "interrupted", "killed"].index(ended), 5):
        path = tmp_path / str(number)
        shutil.copytree(cut, path)
        if not killed(fit, Mortal(path, number, torn=number % 3 * 20, resume=True)):
            break
        now = read_run(path)
        assert (path / "best_prompt.txt").read_text(encoding="utf-8") == "Repeat.\nShout."
        assert (now.best, now.seed, now.steps) == (before.best, before.seed, before.steps)
        assert now.reach >= before.reach
        said = [note for note in now.notes if "is not yet as far as before; this shows how far it was then" in note]
        noted.add(bool(said))
        if ended != "killed":
            assert now.result is not None
        assert killed(fit, Mortal(path, 3, resume=True))  # and once more, at once
        assert read_run(path).reach >= now.reach
        assert (path / "best_prompt.txt").read_text(encoding="utf-8") == "Repeat.\nShout."
        fit(RunFolder(path, resume=True))
        assert timeless(path) == timeless(whole)
    assert noted == ({True, False} if ended == "killed" else {True})
    assert number > 30


def test_where_it_comes_farther_than_before_that_is_told(tmp_path: Path, fit: Any) -> None:
    """One step more than there was a result of, also where it is killed before it has one of its own."""
    path = tmp_path / "run"

    def press(event: Any) -> None:
        if event.step == 1:
            signal.raise_signal(signal.SIGINT)

    assert fit(RunFolder(path), max_steps=2, callbacks=[At(StepEnded, press)]).status == "interrupted"
    assert read_run(path).reach == (1, True, 2)

    def end(event: Any) -> None:
        if event.step == 2:
            raise Killed

    with pytest.raises(Killed):
        fit(RunFolder(path, resume=True), max_steps=2, callbacks=[At(StepEnded, end)])
    now = read_run(path)
    assert (now.reach, now.result, now.notes) == ((2, False, 2), None, ())
    assert now.error.startswith("Killed")


def test_an_early_interruption_of_a_resume_keeps_what_was_known(tmp_path: Path, fit: Any) -> None:
    """Its own result is that of less; the end of the run is told all the same, whatever it comes to."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 12)
    before = read_run(path)
    assert before.best == {"system": "Repeat.\nShout."}

    def press(_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    result = fit(RunFolder(path, resume=True), callbacks=[At(Evaluated, press)])
    assert (result.status, result.best) == ("interrupted", before.seed)
    now = read_run(path)
    assert (now.result, now.best, now.steps) == (before.result, before.best, before.steps)
    assert (path / "best_prompt.txt").read_text(encoding="utf-8") == "Repeat.\nShout."
    other = fit(RunFolder(path, resume=True, anyway=True), prompt="Repeat it.")
    assert read_run(path).result == other
    assert (path / "best_prompt.txt").read_text(encoding="utf-8") == other.best["system"]


def test_a_resume_with_a_lower_limit_keeps_what_was_known(tmp_path: Path, fit: Any) -> None:
    """It ends where it would have ended then, and the texts of the longer run were paid for."""
    path, whole = tmp_path / "run", tmp_path / "whole"
    fit(RunFolder(whole))
    cut_by_budget(fit, path, 12)
    before = read_run(path)
    with tg.budget(calls=6):
        result = fit(RunFolder(path, resume=True), model=unasked)
    assert (result.status, result.best) == ("budget", before.seed)
    now = read_run(path)
    assert (now.result, now.best, now.steps) == (before.result, before.best, before.steps)
    assert (path / "best_prompt.txt").read_text(encoding="utf-8") == "Repeat.\nShout."
    assert any("is not yet as far as before" in note for note in now.notes)
    fit(RunFolder(path, resume=True))
    assert timeless(path) == timeless(whole)


def test_an_error_of_a_resume_is_told_beside_what_was_known(tmp_path: Path, fit: Any) -> None:
    """Who asks for the report of a run gets it, and hears why there is no more of it."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 12)
    before = read_run(path)

    def fail(_: Any) -> None:
        raise ValueError("a callback of mine")

    with pytest.raises(ValueError, match="a callback of mine"):
        fit(RunFolder(path, resume=True), callbacks=[At(Evaluated, fail)])
    now = read_run(path)
    assert now.result == before.result
    assert now.error.startswith("ValueError: a callback of mine")
    assert now.notes[0].endswith(
        "this shows how far it was then; it ended with an error: ValueError: a callback of mine"
    )


def test_a_resumed_run_that_is_killed_is_resumed_from_all(tmp_path: Path, fit: Any) -> None:
    """Each time it comes a little farther; what the first one paid for is there to the end."""
    whole = tmp_path / "whole"
    every = Counting()
    fit(RunFolder(whole), model=every)
    path, asked, kept = tmp_path / "run", 0, 0
    for dies_at in (9, 6, 25, 3, 31, 28):
        counting = Counting()
        assert killed(fit, Mortal(path, dies_at, torn=10, resume=path.exists()), counting)
        asked += counting.asked
        before, kept = kept, sum("text" in paid.entry for paid in paid_for(path) if not paid.again)
        assert kept >= before
        assert read_run(path).usage().calls == kept
    assert numbers_aside(path) == [1, 2, 3, 4, 5]
    counting = Counting()
    fit(RunFolder(path, resume=True), model=counting)
    assert counting.asked == every.asked - kept
    assert timeless(path) == timeless(whole)


class Operations:
    """From the n-th operation on files on, all of them fail, as the process is no more."""

    def __init__(self, patch: pytest.MonkeyPatch, dies_at: int) -> None:
        self.done, self.dies_at = 0, dies_at
        for home, name in ((os, "replace"), (Path, "unlink"), (os, "open")):
            patch.setattr(home, name, self.dying(getattr(home, name)))

    def dying(self, real: Any) -> Any:
        def die_or_do(*args: Any, **kwargs: Any) -> Any:
            self.done += 1
            if self.done >= self.dies_at:
                raise Killed
            return real(*args, **kwargs)

        return die_or_do


def test_killed_while_it_puts_files_aside_it_resumes(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """At any of the operations on files that a resume begins with."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    fit(RunFolder(whole))
    with tg.budget(calls=12):
        assert fit(RunFolder(cut)).status == "budget"
    for number in itertools.count(1):
        path = tmp_path / str(number)
        shutil.copytree(cut, path)
        with monkeypatch.context() as patch:
            operations = Operations(patch, number)
            with contextlib.suppress(Killed):
                RunFolder(path, resume=True)._lock.forget()
        counting = Counting()
        fit(RunFolder(path, resume=True), model=counting)
        assert timeless(path) == timeless(whole)
        assert counting.asked == len(list(paid_for(whole))) - len(list(paid_for(cut)))
        if operations.done < number:
            break
    assert number > 6


@pytest.mark.parametrize("which", ["events-1.jsonl", "events.jsonl", "config.json"])
def test_a_disk_that_is_full_at_the_beginning_leaves_the_run_as_it_was(
    tmp_path: Path, fit: Any, monkeypatch: Any, which: str
) -> None:
    """Its result is still there to be shown, and a full disk takes no file of what it had."""
    path = tmp_path / "run"
    with tg.budget(calls=12):
        fit(RunFolder(path, config={"a": 1}))
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    real = files.write_atomically

    def full(file: Path, content: Any) -> None:
        if file.name == which:
            raise OSError(28, "No space left on device", str(file))
        real(file, content)

    with monkeypatch.context() as patch:
        patch.setattr("textgrad_engine.store.resume.write_atomically", full)
        patch.setattr("textgrad_engine.store.journal.write_atomically", full)
        for _ in range(2):
            with pytest.raises(RunError, match="no space left on device; the run is as it was, so resume it when"):
                RunFolder(path, config={"a": 2}, resume=True)
            assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    assert fit(RunFolder(path, resume=True)).status == "finished"


def test_where_no_open_file_can_be_moved_a_run_that_cannot_begin_anew_is_as_it_was(
    tmp_path: Path, fit: Any, monkeypatch: Any, windows_files: None
) -> None:
    """As on Windows: what was opened for the new run is closed before that of before takes its place again."""
    path = tmp_path / "run"
    with tg.budget(calls=12):
        fit(RunFolder(path, config={"a": 1}))
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}

    def full(file: Path, content: Any) -> None:
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr("textgrad_engine.store.journal.write_atomically", full)
    with pytest.raises(RunError, match="no space left on device; the run is as it was"):
        RunFolder(path, config={"a": 2}, resume=True)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_killed_when_it_has_ended_nothing_is_lost(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """Where there is a result, it is the whole one; what was put aside may stay, and is counted once."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    fit(RunFolder(whole))
    with tg.budget(calls=12):
        fit(RunFolder(cut))
    finished = set()
    for number in itertools.count(1, 2):
        path = tmp_path / str(number)
        shutil.copytree(cut, path)
        with monkeypatch.context() as patch:
            folder = RunFolder(path, resume=True)
            operations: list[Operations] = []
            end = At(RunEnded, lambda _: operations.append(Operations(patch, number)))  # noqa: B023
            try:
                fit(None, callbacks=[end, folder])
            except Killed:
                pass
            finally:
                folder._lock.forget()
        run = read_run(path)
        assert run.usage() == read_run(whole).usage()
        assert run.result is not None  # that of before, or the whole one
        finished.add(run.result.status == "finished")
        if run.result.status != "finished":
            fit(RunFolder(path, resume=True))
            assert timeless(path) == timeless(whole)
        before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        assert fit(None, run_dir=path, resume=True, model=unasked) == read_run(path).result
        assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
        if operations[0].done < number:
            break
    assert finished == {True, False}


class At:
    """Does something at a kind of event."""

    at_once = True

    def __init__(self, kind: Any, do: Any) -> None:
        self.kind, self.do = kind, do

    def on_event(self, event: Any) -> None:
        if isinstance(event, self.kind):
            self.do(event)


def cut_by_budget(fit: Any, path: Path, calls: int, model: Any = answer, **settings: Any) -> Any:
    """The result of a run that could ask so many times."""
    with tg.budget(calls=calls):
        return fit(RunFolder(path), model=model, **settings)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def told(path: Path) -> Counter[str]:
    """The completions of a folder, whenever and wherever they were asked for."""
    kept = ({key: value for key, value in entry.items() if key not in ("time", "latency")} for entry in lines(path))
    return Counter(json.dumps(entry, sort_keys=True) for entry in kept)


def test_a_finished_run_is_not_begun_anew(tmp_path: Path, fit: Any) -> None:
    """Its folder stays as it is."""
    fit(RunFolder(tmp_path / "run"))
    before = timeless(tmp_path / "run")
    with pytest.raises(RunError, match=r"run: the run is finished, .* `textgrad-engine show .*run` prints its result"):
        RunFolder(tmp_path / "run", resume=True)
    assert timeless(tmp_path / "run") == before


def test_what_is_no_run_is_left_alone(tmp_path: Path) -> None:
    """A folder with other things in it."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match="this is no run folder"):
        RunFolder(tmp_path, resume=True)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_damaged_record_is_named_and_nothing_is_moved(tmp_path: Path, fit: Any) -> None:
    """What cannot be read could be paid for again."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    good = (path / "completions.jsonl").read_bytes()
    for damage, message in (
        (b"not json\n", r"completions\.jsonl:9: this line is no JSON object"),
        (b'{"phase": 1, "text": "x"}\n', r"completions\.jsonl:9: the line was damaged: it is no completion: KeyError"),
    ):
        (path / "completions.jsonl").write_bytes(good + damage)
        before = timeless(path)
        with pytest.raises(RunError, match=message):
            RunFolder(path, resume=True)
        assert timeless(path) == before


@pytest.mark.parametrize(
    ("field", "odd"),
    [
        ("model", {}),
        ("example", 3),
        ("phase", float("inf")),
        ("place", [[1]]),
        ("saved", [1]),
        ("tool_calls", [{"function": 3}]),
        ("request", {"messages": "x"}),
        ("request", {"messages": [3]}),
        ("request", {"messages": [{"role": "user", "content": [3]}]}),
    ],
)
def test_a_record_whose_fields_are_of_other_kinds_is_refused_with_its_line(
    tmp_path: Path, fit: Any, field: str, odd: Any
) -> None:
    """An error of Python's, amid the run, says neither which file it is nor the repair."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    first, *others = (path / "completions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (path / "completions.jsonl").write_text(json.dumps({**json.loads(first), field: odd}) + "\n" + "".join(others))
    before = timeless(path)
    with pytest.raises(RunError, match=r"completions\.jsonl:1: the line was damaged"):
        RunFolder(path, resume=True)
    assert timeless(path) == before


@pytest.mark.parametrize("forged", [{"calls": -5}, {"output_tokens": -1}, {"dollars": -0.5}, {"dollars": float("nan")}])
def test_a_record_of_a_use_that_nothing_can_have_had_is_refused(tmp_path: Path, fit: Any, forged: Any) -> None:
    """Counted in a budget, it would let a run spend beyond that, whoever wrote it into a folder that was sent."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    first, *others = (path / "completions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    entry = json.loads(first)
    entry["usage"] |= forged
    (path / "completions.jsonl").write_text(json.dumps(entry) + "\n" + "".join(others), encoding="utf-8")
    before = timeless(path)
    with pytest.raises(RunError, match=r"completions\.jsonl:1: .* nothing can have used (-|nan)"):
        RunFolder(path, resume=True)
    with pytest.raises(RunError, match=r"completions\.jsonl:1: the usage was damaged"):
        read_run(path).usage_by_purpose()
    assert timeless(path) == before


def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path, fit: Any) -> None:
    """Two that write into one folder would pay twice; when the first has ended, however, the second may."""
    path = tmp_path / "run"
    refusals = []

    def press(_: Any) -> None:
        with pytest.raises(RunError, match=rf"run: process {os.getpid()} is at work on this run; wait for its end"):
            RunFolder(path, resume=True)
        refusals.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(RunFolder(path), callbacks=[At(StepEnded, press)])
    assert refusals == [1]
    assert fit(RunFolder(path, resume=True)).status == "finished"


def test_sampled_answers_stay_what_they_were(tmp_path: Path, fit: Any) -> None:
    """A model that never says the same twice: what it said before the end is in the whole run, each where it was."""

    def sampled() -> Counting:
        def say(request: Any) -> Any:
            return answer(request) if request.purpose != "forward" else f"{os.urandom(4).hex()}"

        return Counting(say)

    for number in range(5, 40, 7):
        path = tmp_path / str(number)
        if not killed(fit, Mortal(path, number), sampled()):
            break
        before = told(path / "completions.jsonl")
        result = fit(RunFolder(path, resume=True), model=sampled())
        assert not before - told(path / "completions.jsonl")
        assert result.total.calls == len(lines(path / "completions.jsonl"))
    assert number > 20


def once(model: Any) -> Any:
    """The model without further attempts."""
    made = model if isinstance(model, FunctionModel) else FunctionModel(model)
    return resolve(made, policy=RetryPolicy(max_attempts=1))


class Votes(nn.Module):
    """Gives three samples of what it is asked, numbered by the program or in the order in which it asks."""

    def __init__(self, *, numbered: bool) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="system prompt"), temperature=1)
        self.numbered = numbered

    def forward(self, word: str) -> tg.Variable:
        said = [self.sample(number, word) for number in range(3)]
        return ops.straight_through(" ".join([each.data for each in said]), *said)

    def sample(self, number: int, word: str) -> tg.Variable:
        with llm.repeat(number) if self.numbered else contextlib.nullcontext():
            return self.chat(word=word)


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("lost", [None, 2])
def test_resumed_with_a_cache_no_sample_of_a_vote_is_a_copy_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbered: bool, lost: int | None
) -> None:
    """A sample that is missing is not what the cache has of one that is on record, however often a run is cut."""
    monkeypatch.setattr("textgrad_engine.llm.resume._PATIENCE", 0.03)
    rows = [{"word": word} for word in ("one", "two", "three", "four")]
    loss = nn.Metric(lambda said: len(set(said.split())) / 3, "different answers", scale=(0, 1))
    asked = itertools.count()

    def say(request: Any) -> str:
        if (number := next(asked)) == lost:
            raise ConnectionFailed("the network is down")
        return str(number)

    model = FunctionModel(say)
    model.cache_key = "numbers"  # type: ignore[attr-defined]
    for calls in (5, 8):
        folder, asked = tmp_path / str(calls), itertools.count()

        def fit(calls: int, folder: Path = folder) -> Any:
            program = Votes(numbered=numbered)
            trainer = tg.Trainer(run_dir=folder / "run", resume=True)
            with tg.use_models(forward=once(model)), llm.caching(folder / "cache"), tg.budget(calls=calls):
                return trainer.fit(program, loss, optim.TGD(program.parameters()), rows, rows)

        fit(calls)
        fit(calls + 1)
        assert fit(100).seed_val.mean == 1.0


def test_failures_of_an_answer_are_played_back_and_those_of_the_endpoint_asked_anew(tmp_path: Path, fit: Any) -> None:
    """The way of a run depends on what an answer was; that the network was down says nothing about it."""
    failures = {"four": TruncatedResponse("too long"), "six": ConnectionFailed("it broke")}

    def failing(request: Any) -> Any:
        if request.purpose == "forward" and (error := failures.get(request.messages[-1].text)):
            raise error
        return answer(request)

    whole = Mortal(tmp_path / "whole")
    fit(whole, model=once(failing))
    path = tmp_path / "run"
    assert killed(fit, Mortal(path, whole.written - 3), once(failing))
    asked: list[str] = []

    def mended(request: Any) -> Any:
        asked.append(request.messages[-1].text)
        return answer(request)

    result = fit(RunFolder(path, resume=True), model=mended)
    assert result.seed_val.failures == {"four": "TruncatedResponse: too long"}
    assert (result.seed_test.failures, result.best_test.failures) == ({}, {})
    assert "six" in asked
    assert "four" not in asked


def test_what_a_failed_call_used_is_counted_once_more_each_time(tmp_path: Path, fit: Any) -> None:
    """It was paid for, so it is in the sums and in the journal; and once, however often the run is resumed."""
    broken = iter([True])

    def failing(request: Any) -> Any:
        if request.messages[-1].text == "four" and next(broken, False):
            error = ConnectionFailed("it broke behind the answer")
            error.usage = tg.llm.Usage(input_tokens=100, calls=1)
            raise error
        return answer(request)

    path = tmp_path / "run"
    cut_by_budget(fit, path, 5, once(failing))
    for calls in (7, 7, 9):
        with tg.budget(calls=calls) as budget:
            result = fit(RunFolder(path, resume=True))
        assert result.total.calls == budget.spent.calls == calls
        assert sum("error" in paid.entry for paid in paid_for(path) if not paid.again) == 1
    folder = RunFolder(path, resume=True)
    result = fit(folder)
    found = lines(path / "completions.jsonl")
    assert folder.earlier is not None
    assert result.total.calls == len(found) == read_run(path).usage().calls - len(folder.earlier.player.left)
    assert [entry["usage"]["input_tokens"] for entry in found if "error" in entry] == [100]


def test_a_call_of_unknown_cost_holds_its_worst_case_again(tmp_path: Path, fit: Any) -> None:
    """It may have been charged, so the limit is kept as if it was."""

    def failing(request: Any) -> Any:
        if request.messages[-1].text == "four":
            raise ConnectionFailed("it broke")
        return answer(request)

    path = tmp_path / "run"
    cut_by_budget(fit, path, 5, once(failing))
    with tg.budget(calls=9) as budget:
        fit(RunFolder(path, resume=True))
    assert (budget.unknown.calls, budget.spent.calls) == (1, 8)


@pytest.mark.parametrize("calls", range(5, 12))
def test_attempts_of_unknown_cost_are_held_again_whatever_came_of_their_call(
    tmp_path: Path, fit: Any, calls: int
) -> None:
    """An answer after a lost connection, or no room for a further attempt: a run that is resumed with the budget that
    it had asks for nothing, as each of its attempts may have been charged."""
    sent = 0

    def failing(request: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent % 2 == 0:
            raise ConnectionFailed("it broke")
        return answer(request)

    def retried() -> Any:
        return resolve(FunctionModel(failing, name="o"), policy=RetryPolicy(base=0, cap=0))

    path = tmp_path / "run"
    for resume in (False, True, True):
        with tg.budget(calls=calls, tokens=10**9) as account:
            fit(RunFolder(path, resume=resume), model=retried())
        assert sent == calls
        assert account.spent.calls == calls - calls // 2
        # One that has no room beside what the test takes is not asked for again, and is kept instead.
        assert account.held.calls in (calls // 2 - resume, calls // 2)


def test_a_spent_budget_stops_as_before_and_a_larger_one_goes_on(tmp_path: Path, fit: Any) -> None:
    """What is played back was paid for by this run, so it counts."""
    whole, path = tmp_path / "whole", tmp_path / "run"
    fit(RunFolder(whole))
    cut_by_budget(fit, path, 8)
    same = Counting()
    with tg.budget(calls=8) as budget:
        result = fit(RunFolder(path, resume=True), model=same)
    assert (result.status, same.asked, budget.spent.calls) == ("budget", 0, 8)
    more = Counting()
    with tg.budget(calls=500) as budget:
        result = fit(RunFolder(path, resume=True), model=more)
    assert (result.status, more.asked) == ("finished", result.total.calls - 8)
    assert budget.spent.calls == result.total.calls
    assert timeless(path) == timeless(whole)


class Chain(nn.Module):
    """Asks one prompt about what another one said."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="first prompt"))
        self.second = nn.ChatCompletion("{said}", system="Pass on.")

    def forward(self, word: str) -> tg.Variable:
        return self.second(said=self.first(word=word))


def test_an_example_that_the_endpoint_had_lost_may_ask_on_when_it_is_resumed(tmp_path: Path) -> None:
    """Its first call has an answer now, so it asks for what is not on record; anything else is refused as ever."""

    def passing(request: Any) -> Any:
        if request.purpose == "backward":
            fields = request.config.response_format.json_schema["properties"]["case_1"]["properties"]
            return {"case_1": dict.fromkeys(fields, "Say to shout.")}
        return answer(request)

    def down(request: Any) -> Any:
        if request.purpose == "forward" and request.messages[-1].text == "four":
            raise ConnectionFailed("it broke")
        return passing(request)

    def fit(model: Any, **limits: int) -> Any:
        program = Chain()
        trainer = tg.Trainer(max_steps=1, batch_size=2, run_dir=tmp_path / "run", resume=True)
        at_once = resolve(FunctionModel(model), policy=RetryPolicy(base=0))
        with tg.use_models(forward=at_once), tg.budget(**limits):
            return trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:3], ROWS[3:5])

    assert fit(down, calls=8).seed_val.failures == {"four": "ConnectionFailed: it broke"}

    def mended(request: Any) -> Any:
        asked.append((request.messages[0].text, request.messages[-1].text))
        return passing(request)

    asked: list[tuple[str, str]] = []
    assert fit(mended, calls=100).seed_val.failures == {}
    assert asked[:2] == [("Repeat.", "four"), ("Pass on.", "four")]
    assert {text for _, text in asked[2:4]} <= {"one", "two", "three"}  # the rest of the validation was on record


def test_a_run_that_asks_for_something_else_is_refused_before_it_pays(tmp_path: Path, fit: Any) -> None:
    """The message says what differs; the folder is as it was, to the byte."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    asked = Counting()
    with pytest.raises(RunError) as caught:
        fit(RunFolder(path, resume=True), model=asked, prompt="Repeat it.")
    assert asked.asked == 0
    said = str(caught.value)
    assert "validating the seed texts asks for something else than was recorded" in said
    assert '-   "content": "Repeat."' in said
    assert '+   "content": "Repeat it."' in said
    assert said.count("\n+ ") == 1  # it is compared with the request for the same example
    assert "Put back what was changed" in said
    assert "what the program looks up by itself, outside of tools=, must be the same as then" in said
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"seed": 4}, "seed=4 instead of seed=0"),
        ({"batch_size": 1, "feedback_batch_size": 2}, "batch_size=1 instead of batch_size=2 and feedback_batch_size=2"),
    ],
)
def test_a_run_that_is_set_to_something_else_is_refused_before_it_pays(
    tmp_path: Path, fit: Any, other: dict[str, Any], told: str
) -> None:
    """Its validation asks the same, so its steps were bought a second time, of other examples, and nobody was told."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(RunError, match="is to go on with") as caught:
        fit(RunFolder(path, resume=True), model=unasked, **other)
    assert told in str(caught.value)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    assert fit(RunFolder(path, resume=True, anyway=True), **other).status == "finished"


def test_a_limit_that_came_of_other_texts_is_not_what_is_told(tmp_path: Path, fit: Any) -> None:
    """The program is still the trained one, say: `max_tokens`, which nobody has set, goes by its length."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8, prompt="Repeat it. " * 1000)
    with pytest.raises(RunError) as caught:
        fit(RunFolder(path, resume=True), model=unasked, prompt="Repeat this. " * 1200)
    assert "max_tokens" not in str(caught.value)


def test_how_far_it_goes_is_no_other_setting(tmp_path: Path, fit: Any) -> None:
    """More steps, and another limit of calls at a time, ask first what was asked before."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    asked = Counting()
    more = fit(RunFolder(path, resume=True), model=asked, max_steps=2, max_epochs=3, concurrency=1)
    assert more.status == "finished"
    assert asked.asked == more.total.calls - 8


def test_a_run_of_before_settings_were_written_down_is_not_refused_for_them(tmp_path: Path, fit: Any) -> None:
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    assert events[0].pop("settings")["optimizer"] == "TGD"
    (path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert fit(RunFolder(path, resume=True), seed=4).status == "finished"


class Halt:
    """Ends a run with an error when its first step is over."""

    def on_event(self, event: Any) -> None:
        if isinstance(event, StepEnded):
            raise RuntimeError("halt")


def test_a_budget_without_room_for_one_call_leaves_the_run_as_it_was(tmp_path: Path, fit: Any) -> None:
    """It has asked nobody, and the best texts so far are not replaced by those of the beginning."""
    path = tmp_path / "run"
    with pytest.raises(RuntimeError, match="halt"):
        fit(RunFolder(path), callbacks=[Halt()])
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert read_run(path).best != read_run(path).seed
    with tg.budget(tokens=1):
        result = fit(RunFolder(path, resume=True), model=unasked)
    assert "does not allow a single call" in result.shortage
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


class Forgiving(nn.Module):
    """A program that goes on with a word of its own where it gets no answer."""

    def __init__(self, prompt: str) -> None:
        super().__init__()
        self.prompt = nn.Parameter(prompt, role="system prompt")
        self.chat = nn.ChatCompletion("{word}", system=self.prompt)

    def forward(self, word: str) -> Any:
        said = self.chat(word=word)
        try:
            said.data  # noqa: B018
        except Exception:
            return tg.Variable("none", role="fallback")
        return said


def test_a_program_that_takes_no_answer_for_one_is_refused_as_well(tmp_path: Path) -> None:
    """Its seed prompt would be given the score of no answers, and all that comes after be paid for again."""
    path, asked = tmp_path / "run", Counting()

    def fit(prompt: str, **settings: Any) -> Any:
        program = Forgiving(prompt)
        with tg.use_models(forward=FunctionModel(asked)):
            return tg.Trainer(max_steps=1, batch_size=2, run_dir=path, **settings).fit(
                program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:3], ROWS[3:5], ROWS[5:]
            )

    with tg.budget(calls=4):
        assert fit("Repeat.").status == "budget"
    before, asked.asked = timeless(path), 0
    with pytest.raises(RunError, match="validating the seed texts asks for something else than was recorded"):
        fit("Repeat it.", resume=True)
    assert asked.asked == 0
    assert timeless(path) == before


def test_anyway_it_goes_on_and_keeps_what_it_does_not_need(tmp_path: Path, fit: Any) -> None:
    """Nothing that was paid for is thrown away; calls are counted as often as they were paid for."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    asked = Counting()
    folder = RunFolder(path, resume=True, anyway=True)
    result = fit(folder, model=asked, prompt="Repeat it.")
    assert result.status == "finished"
    assert asked.asked == result.total.calls
    assert folder.earlier is not None
    assert len(folder.earlier.player.left) == 8
    assert numbers_aside(path) == [1]
    assert read_run(path).usage().calls == result.total.calls + 8


def test_a_limit_holds_for_what_was_paid_for_and_is_of_no_use(tmp_path: Path, fit: Any) -> None:
    """Else a run could cost twice its budget."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    asked = Counting()
    with tg.budget(calls=11):
        result = fit(RunFolder(path, resume=True, anyway=True), model=asked, prompt="Repeat it.")
    assert (result.status, asked.asked) == ("budget", 3)
    assert read_run(path).usage().calls == 11


def test_a_run_cut_in_its_first_validation_is_told_from_one_that_has_changed(tmp_path: Path, fit: Any) -> None:
    """Examples that were not asked yet are; one that was is asked the same."""
    path = tmp_path / "run"
    assert killed(fit, Mortal(path, 4), concurrency=1)  # RunStarted, PhaseStarted, one completion
    shutil.copytree(path, tmp_path / "other")
    with pytest.raises(RunError, match="example 'four'; the nearest is line 1"):
        fit(RunFolder(tmp_path / "other", resume=True), prompt="Repeat it.", concurrency=1)
    assert fit(RunFolder(path, resume=True)).status == "finished"


def test_a_run_that_was_refused_late_is_refused_again(tmp_path: Path, fit: Any) -> None:
    """The first example was not on record, so it was asked; that makes no other request known."""
    path = tmp_path / "run"
    assert killed(fit, Mortal(path, 5), concurrency=1)  # RunStarted, PhaseStarted, one completion and its unit
    text = (path / "completions.jsonl").read_text(encoding="utf-8")
    (path / "completions.jsonl").write_text(text.replace('"four"', '"five"'), encoding="utf-8")
    asked = Counting()
    for _ in range(2):
        with pytest.raises(RunError, match="example 'five'; the nearest is line 1"):
            fit(RunFolder(path, resume=True), model=asked, prompt="Repeat it.", concurrency=1)
        assert asked.asked == 1


class Dropping(nn.Module):
    """Asks for more than it reads, in a chain: what it drops is answered late."""

    def __init__(self) -> None:
        super().__init__()
        self.system = nn.Parameter("Repeat.", role="system prompt")
        self.chat = nn.ChatCompletion("{word}", system=self.system)

    def forward(self, word: str) -> tg.Variable:
        said, _ = self.chat(word=word), self.chat(word=self.chat(word=f"{word} late"))
        return said


def one_lane(params: Any) -> optim.PatchSearch:
    return optim.PatchSearch(params, lanes=1, feedback_batch_size=1)


@pytest.mark.parametrize("optimizer", [optim.TGD, one_lane])
def test_calls_that_nobody_reads_are_on_record_wherever_a_budget_ends(tmp_path: Path, optimizer: Any) -> None:
    """The phase that begins them waits for them, and knows of those that found no room: nothing else is asked then.

    So does the proposal of a search; what one lacks about which something was decided is asked for by `resume`, too.
    The two take turns, each with every third number of calls.
    """

    async def late(request: Any) -> Any:
        asked.append(request)
        if request.messages[-1].text.endswith("late"):
            for _ in range(100):
                await asyncio.sleep(0)
        return answer(request)

    def fit(path: Path, **limits: int) -> Any:
        asked.clear()
        program = Dropping()
        trainer = tg.Trainer(max_steps=1, batch_size=2, run_dir=path, resume=True)
        with tg.use_models(forward=FunctionModel(late)), tg.budget(**limits):
            return trainer.fit(program, nn.ExactMatch(), optimizer([program.system]), ROWS[:2], ROWS[2:4])

    asked: list[Any] = []
    whole = fit(tmp_path / "whole")
    every = len(asked)
    lacking = 0
    for calls in range(1 if optimizer is optim.TGD else 2, every, 3):
        path = tmp_path / str(calls)
        cut, paid = fit(path, calls=calls), len(asked)
        assert cut.status == "budget"  # also where all that it lacked was read by nobody
        lacking += any(event.get("lacking") for event in read_run(path).events)
        resumed = fit(path, calls=every)
        assert (len(asked), resumed.total, resumed.best) == (every - paid, whole.total, whole.best)
        assert timeless(path) == timeless(tmp_path / "whole")
    assert lacking > 2


def test_equal_answers_of_two_items_are_two_though_each_is_in_another_file(tmp_path: Path, fit: Any) -> None:
    """Neither was given to the other, so both were paid for; one of a folder of before may have been given to any."""
    fit(RunFolder(tmp_path))
    entry = lines(tmp_path / "completions.jsonl")[0]

    def found(*files: list[dict[str, Any]]) -> list[bool]:
        for name, items in zip(("answers-1.jsonl", "completions.jsonl"), files):
            text = "".join(json.dumps({**entry, **each}) + "\n" for each in items)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return [paid.again for paid in paid_for(tmp_path)]

    first, third = {"item": [0], "place": [0, 1]}, {"item": [2], "place": [0, 1]}
    assert found([first], [third, first]) == [False, False, True]
    assert found([first], [{**first, "place": [0, 2]}]) == [False, False]
    assert found([{}], [first, third]) == [False, True, False]


def test_a_clock_that_was_set_back_mixes_no_answers_up(tmp_path: Path) -> None:
    """Of two equal requests the second one was answered in another sitting, by the clock years before the first."""

    class Voting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))

        def forward(self, word: str) -> tg.Variable:
            return self.chat(word=word) + self.chat(word=word)

    def model(request: Any) -> Any:
        return next(numbers) if request.purpose == "forward" else answer(request)

    def fit(folder: Any, *callbacks: Any) -> Any:
        program = Voting()
        trainer = tg.Trainer(max_steps=1, batch_size=2, callbacks=[folder, *callbacks])
        with tg.use_models(forward=FunctionModel(model)):
            return trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:2], ROWS[2:5])

    numbers = map(str, itertools.count(10))
    path, seen = tmp_path / "run", []
    with pytest.raises(Killed):
        fit(Mortal(path, 4))
    (only,) = lines(path / "completions.jsonl")
    (path / "completions.jsonl").write_text(json.dumps({**only, "time": f"2099{only['time'][4:]}"}) + "\n")

    def end(event: Any) -> None:
        seen.append(event.evaluation.predictions)
        raise Killed

    with pytest.raises(Killed):
        fit(RunFolder(path, resume=True), At(Evaluated, end))
    assert fit(RunFolder(path, resume=True)).seed_val.predictions == seen[0]


def test_inside_a_replay_nothing_is_asked_of_a_model(tmp_path: Path, fit: Any) -> None:
    """What is not in the folder is in the cassette."""
    path, asked = tmp_path / "run", Counting()
    with tg.llm.record(tmp_path / "cassette.jsonl"):
        whole = fit(None)
    cut_by_budget(fit, path, 8)
    with tg.llm.replay(tmp_path / "cassette.jsonl"):
        result = fit(RunFolder(path, resume=True), model=asked)
    assert (result.status, result.total.calls, asked.asked) == ("finished", whole.total.calls, 0)


@pytest.mark.parametrize("left", [(".lock",), (".lock", "completions.jsonl"), ("completions.jsonl",)])
@pytest.mark.parametrize("resume", [True, False])
def test_killed_before_there_was_a_run_one_is_begun(
    tmp_path: Path, fit: Any, left: tuple[str, ...], resume: bool
) -> None:
    """A script that is started again has nothing to be cleared away."""
    for name in left:
        (tmp_path / name).touch()
    assert fit(RunFolder(tmp_path, resume=resume)).status == "finished"


def test_there_is_a_run_only_when_all_of_its_files_are_there(tmp_path: Path, monkeypatch: Any) -> None:
    """Else one that was killed between the first two of them could not be gone on with."""
    made: list[str] = []
    real = os.open

    def opened(path: Any, *rest: Any) -> int:
        made.append(Path(path).name)
        return real(path, *rest)

    monkeypatch.setattr(os, "open", opened)
    RunFolder(tmp_path / "run")
    assert made[-2:] == ["completions.jsonl", "events.jsonl"]


def test_the_same_look_at_the_test_set_is_one_and_another_is_two(tmp_path: Path, fit: Any) -> None:
    """Texts that differ were chosen by somebody who may have seen what the others scored."""

    def silent(request: Any) -> Any:
        return {"edits": []} if request.purpose == "optimizer" else answer(request)

    tests = [entry["number"] for entry in _events(tmp_path / "whole", fit) if entry.get("phase") == "test"]
    for name, model, openings in (("same", answer, 1), ("other", silent, 2)):
        path = tmp_path / name
        begun: list[int] = []

        def press(event: Any, begun: list[int] = begun) -> None:
            begun.append(event.phase)
            if event.phase == tests[0] and begun.count(tests[0]) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(RunFolder(path), callbacks=[At(CallEnded, press)])
        for file in (path / "completions.jsonl",):  # the answer of the optimizer is lost, and another comes
            kept = [line for line in file.read_bytes().splitlines(True) if b'"purpose": "optimizer"' not in line]
            file.write_bytes(b"".join(kept))
        assert fit(RunFolder(path, resume=True, anyway=True), model=model).openings == openings


def test_a_look_at_the_test_set_that_nothing_answered_is_none(tmp_path: Path, fit: Any) -> None:
    """The endpoint broke down as the test began: nobody has seen a score, and the look is that which comes later."""

    def broken(request: Any) -> Any:
        if request.messages[-1].text in {row["word"] for row in ROWS[5:]}:
            raise ConnectionFailed("it broke")
        return answer(request)

    path = tmp_path / "run"
    with pytest.raises(ConnectionFailed):
        fit(RunFolder(path), model=once(broken))
    assert sum("ConnectionFailed" in paid.entry.get("error", "") for paid in paid_for(path)) == 3
    assert fit(RunFolder(path, resume=True)).openings == 1


def _events(path: Path, fit: Any) -> list[dict[str, Any]]:
    fit(RunFolder(path))
    return [each for each in read_run(path).events if each["event"] == "PhaseStarted"]


def test_requests_with_a_secret_are_found_again(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """They are written down without it, and asked with it."""
    monkeypatch.setenv("SOME_API_KEY", "swordfish-42")
    first, second = Counting(), Counting()
    cut = cut_by_budget(fit, tmp_path / "run", 8, first, prompt="Repeat, by swordfish-42.")
    assert cut.status == "budget"
    result = fit(RunFolder(tmp_path / "run", resume=True), model=second, prompt="Repeat, by swordfish-42.")
    assert second.asked == result.total.calls - 8
    assert "swordfish" not in (tmp_path / "run" / "completions.jsonl").read_text(encoding="utf-8")


def test_cut_when_it_was_to_begin_anew_its_texts_are_known(tmp_path: Path, fit: Any) -> None:
    """The command line puts them into the program, which may have other ones by now."""
    path = tmp_path / "run"
    cut_by_budget(fit, path, 8)
    seed = read_run(path).seed
    RunFolder(path, resume=True)._lock.forget()  # and no more
    assert read_run(path).seed == seed == {"system": "Repeat."}


def test_the_trainer_resumes_by_itself(tmp_path: Path, fit: Any) -> None:
    """The script that began the run goes on with it; where there is none, it begins."""
    path = tmp_path / "run"
    with tg.budget(calls=8):
        assert fit(None, run_dir=path, resume=True).status == "budget"
    asked = Counting()
    result = fit(None, run_dir=path, resume=True, model=asked)
    assert (result.status, asked.asked) == ("finished", result.total.calls - 8)
    with pytest.raises(ValueError, match=r"name it with run_dir=\.\.\."):
        tg.Trainer(resume=True)
    with pytest.raises(RunError, match=r"holds a run; name another one, .* tg\.Trainer\(run_dir=\.\.\., resume=True\)"):
        fit(None, run_dir=path)
