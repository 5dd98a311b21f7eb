"""A run that was cut is resumed: what was paid for is not asked for again, and the folder is that of a whole run."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine.llm.lines import append_line
from textgrad_engine.store import RunFolder, read_run
from textgrad_engine.store.paid import numbers_aside, paid_for
from textgrad_engine.train.events import RunEnded

from .conftest import answer


def timeless(path: Path) -> dict[str, str]:
    """Every file of a run folder without its times."""
    found = {}
    for file in sorted(path.rglob("*")):
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            found[str(file.relative_to(path))] = re.sub(r'"(time|latency|seconds)": ("[^"]*"|[\d.e-]+)', '"t": 0', text)
    return found


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
        if self.dead:
            self._lock.forget()  # as the system does where a process ends
        else:
            super().on_end()


class Counting:
    """A model that counts what it is asked."""

    def __init__(self, answer: Callable[[Any], Any] = answer) -> None:
        self.asked, self.answer = 0, answer

    def __call__(self, request: Any) -> Any:
        self.asked += 1
        return self.answer(request)


def killed(fit: Any, folder: Mortal, model: Any = answer, **settings: Any) -> bool:
    """Whether the run of a folder was killed."""
    try:
        fit(folder, model=model, **settings)
    except Killed:
        return True
    assert not folder.dead
    return False


def test_killed_at_any_line_it_resumes(tmp_path: Path, fit: Any) -> None:
    """In the middle of a line, too, and while the test set is open: the folder is the same, nothing is paid twice."""
    whole = tmp_path / "whole"
    every = Counting()
    fit(RunFolder(whole, config={"seed": 0}), model=every)
    for number in itertools.count(1):
        path = tmp_path / str(number)
        first, second = Counting(), Counting()
        if not killed(fit, Mortal(path, number, torn=number % 3 * 20, config={"seed": 0}), first):
            break
        kept = sum("text" in paid.entry for paid in paid_for(path))
        fit(RunFolder(path, resume=True), model=second)
        assert second.asked == every.asked - kept
        assert timeless(path) == timeless(whole)
    assert number > 30


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
        assert counting.asked == len(list(paid_for(whole))) - 12
        if operations.done < number:
            break
    assert number > 6


def test_killed_when_it_has_ended_nothing_is_lost(tmp_path: Path, fit: Any, monkeypatch: Any) -> None:
    """Where there is a result, it is the whole one; what was put aside may stay, and is counted once."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    fit(RunFolder(whole))
    with tg.budget(calls=12):
        fit(RunFolder(cut))
    finished = set()
    for number in itertools.count(1):
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
        finished.add(run.result is not None)
        if run.result is None:
            fit(RunFolder(path, resume=True))
            assert timeless(path) == timeless(whole)
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
