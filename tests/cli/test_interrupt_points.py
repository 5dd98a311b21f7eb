"""Ctrl-C at one point after the other, until a run passes all of them: what the crash tests of databases do.

To press it once and to press it twice take turns, each at every fourth point. Of events it is the other one in a
search.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import json
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from textgrad_engine.store import RunFolder, read_run
from textgrad_engine.train.events import Event, PhaseAdvanced

WATCHED = (
    "train/run.py",
    "train/concluding.py",
    "train/result.py",
    "train/interrupt.py",
    "cli/train.py",
    "cli/running.py",
    "cli/output.py",
    "cli/progress.py",
    "report/bars.py",
    "report/progress.py",
    "store/journal.py",
)
"""Where the result is worked out, written and printed; each function of theirs that is entered is a point."""

WORKING_OUT = "result_of"
"""Entered after the last call of a model."""


@functools.cache
def watched(file: str) -> bool:
    return Path(file).as_posix().endswith(WATCHED)


class Pressed:
    """Whether the point was reached."""

    was = False


def press(times: int) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def at_entry(number: int, times: int, first: str = "") -> Iterator[Pressed]:
    """Ctrl-C so many times where the `number`-th watched function is entered, counted from where `first` is.

    At its first line, not at the call: what a tracer raises there passes by the function's own handlers, as no signal
    does. Where the command has put back what listened before, it is over, and there are no more points.
    """
    entered, begun, pressed = 0, not first, Pressed()
    before = signal.getsignal(signal.SIGINT)

    def at_line(frame: FrameType, event: str, arg: object) -> None:
        nonlocal entered
        frame.f_trace_lines = False
        if event != "line" or signal.getsignal(signal.SIGINT) is before:
            return
        entered += 1
        if entered == number:
            pressed.was = True
            sys.settrace(None)
            press(times)

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., None] | None:
        nonlocal begun
        if not watched(frame.f_code.co_filename):
            return None
        begun = begun or frame.f_code.co_qualname == first
        return at_line if begun else None

    tracing = sys.gettrace()
    sys.settrace(trace)
    try:
        yield pressed
    finally:
        sys.settrace(tracing)
        signal.signal(signal.SIGINT, before)  # a second Ctrl-C may come just before the command does so


@pytest.fixture
def tiny(small: Any) -> Path:
    """A config of one step on a few tickets."""
    made: Path = small(("max_epochs = 1", "max_epochs = 1\nmax_steps = 1"), rows=2)
    return made


def whole(run: Path) -> None:
    """The folder holds the result, and every call that it counts."""
    found = read_run(run)
    assert found.result is not None
    assert found.notes == ()
    assert len(list(found.completions())) == found.result.total.calls
    assert found.events[-1]["event"] == "RunEnded"
    best = (run / "best_prompt.txt").read_text(encoding="utf-8")
    assert best == found.result.best["system"]


def true_to_the_folder(said: str, run: Path, cli: Callable[..., Any]) -> None:
    """What is said about the folder is so, and `show` can do what it is said to do."""
    last = said.strip().splitlines()[-1]
    shown = cli("show", run)
    if last == "interrupted":
        assert "The best prompt is in" in said
        whole(run)
    elif f"interrupted; all of the run is in {run}" in last:
        whole(run)
        assert (shown.exit_code, "verdict" in shown.stdout) == (0, True)
    elif f"interrupted; nothing was answered; `textgrad-engine resume {run}` begins it" in last:
        assert read_run(run).usage().calls == 0
        assert f"`textgrad-engine resume {run}` begins it, as nothing" in " ".join(shown.stdout.split())
    else:
        assert f"interrupted; what was paid for until then is in {run}, with the best prompt so far" in last
        assert not (run / "result.json").exists()
        assert (run / "best_prompt.txt").is_file()
        assert shown.exit_code == 1
    for name in ("events.jsonl", "completions.jsonl"):
        for line in (run / name).read_text(encoding="utf-8").splitlines():
            json.loads(line)
    assert not list(run.glob(".*.tmp"))


def test_once_after_the_last_call_changes_nothing(
    cli: Any, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """All was asked and paid for: the result is written and printed, and the exit code is that of a whole run."""
    run, said = tmp_path / "run", []
    for number in itertools.count(1, 4):
        with at_entry(number, 1, WORKING_OUT) as pressed:
            result = cli("train", tiny, "--run-dir", run)
        whole(run)
        if not pressed.was:
            break
        assert "verdict" in result.stdout
        assert (result.exit_code, "The best prompt is in" in result.stderr) == (0, True)
        said.append(capfd.readouterr().err.count("finishing: no more calls are sent; Ctrl-C again ends at once\n"))
        shutil.rmtree(run)
    assert sum(said) > 5
    assert said[:-1] == [1] * len(said[:-1])  # at the last point the command no longer listens


def test_twice_after_the_last_call_ends_at_once_and_says_what_is_there(cli: Any, tiny: Path, tmp_path: Path) -> None:
    """With exit code 130; a result that was written by then is named, and one that was not is said to be missing."""
    run = tmp_path / "run"
    missing = []
    for number in itertools.count(3, 4):
        with at_entry(number, 2, WORKING_OUT) as pressed:
            result = cli("train", tiny, "--run-dir", run)
        if not pressed.was:
            break
        assert result.exit_code == 130
        true_to_the_folder(result.stderr, run, cli)
        missing.append("without a result.json" in result.stderr)
        shutil.rmtree(run)
    assert missing == sorted(missing, reverse=True)
    assert {True, False} == set(missing)


@contextlib.contextmanager
def at_event(number: int, times: int) -> Iterator[Pressed]:
    """Ctrl-C so many times when the main thread has written down its `number`-th event.

    How many examples a phase has done is left out: whichever thread comes upon an answer tells of it.
    """
    heard, pressed = 0, Pressed()

    def on_event(self: RunFolder, event: Event) -> None:
        nonlocal heard
        real(self, event)
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and not isinstance(event, PhaseAdvanced) and not pressed.was:
            heard += 1
            if heard == number:
                pressed.was = True
                press(times)

    real = RunFolder.on_event
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "on_event", on_event)
        yield pressed


@pytest.mark.parametrize(("optimizer", "first"), [("TGD", 1), ("PatchSearch", 2)])
def test_once_at_any_event_leaves_a_whole_folder(
    cli: Any, tiny: Path, tmp_path: Path, optimizer: str, first: int
) -> None:
    """Interrupted while something was to be asked, finished where all had been asked; printed in any case."""
    run = tmp_path / "run"
    codes = []
    for number in itertools.count(first, 2):
        with at_event(number, 1) as pressed:
            result = cli("train", tiny, "--run-dir", run, "--optimizer", optimizer)
        whole(run)
        if not pressed.was:
            break
        assert "seed prompt" in result.stdout
        assert {0: "finished", 130: "interrupted"}[result.exit_code] == read_run(run).result.status
        codes.append(result.exit_code)
        shutil.rmtree(run)
    assert codes == sorted(codes, reverse=True)
    assert set(codes) == {0, 130}


@pytest.mark.parametrize(("optimizer", "first"), [("TGD", 2), ("PatchSearch", 1)])
def test_twice_at_any_event_says_what_is_there(
    cli: Any, tiny: Path, tmp_path: Path, optimizer: str, first: int
) -> None:
    """Also while proposals are under way in other threads: what they wait for is given up."""
    run = tmp_path / "run"
    for number in itertools.count(first, 2):
        with at_event(number, 2) as pressed:
            result = cli("train", tiny, "--run-dir", run, "--optimizer", optimizer)
        if not pressed.was:
            break
        assert result.exit_code == 130
        true_to_the_folder(result.stderr, run, cli)
        shutil.rmtree(run)
    assert number > 5


def test_the_second_one_may_come_when_the_result_is_written(cli: Any, tiny: Path, tmp_path: Path) -> None:
    """The first one counts, however long before it came."""
    run = tmp_path / "run"
    with at_entry(1, 1, WORKING_OUT), at_event_of("RunEnded"):
        result = cli("train", tiny, "--run-dir", run)
    assert result.exit_code == 130
    assert f"all of the run is in {run}" in result.stderr
    true_to_the_folder(result.stderr, run, cli)


@contextlib.contextmanager
def at_event_of(kind: str) -> Iterator[None]:
    """Ctrl-C when an event of this kind was written down."""

    def on_event(self: RunFolder, event: Event) -> None:
        real(self, event)
        if type(event).__name__ == kind:
            press(1)

    real = RunFolder.on_event
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "on_event", on_event)
        yield


def test_before_anything_is_asked_once_is_enough(cli: Any, tiny: Path, tmp_path: Path) -> None:
    """There is nothing to save yet, and the message says so."""
    run = tmp_path / "run"
    with at_entry(1, 1, "carry_out"):
        result = cli("train", tiny, "--run-dir", run)
    assert (result.exit_code, result.stdout) == (130, "")
    begins = f"`textgrad-engine resume {run}` begins it, as nothing is on record yet"
    assert result.stderr == f"interrupted; nothing was answered; {begins}\n"
    del result  # its traceback holds the run folder, as a process does that has not ended
    gc.collect()
    assert begins in " ".join(cli("show", run).stdout.split())
    assert cli("resume", run, "--quiet").exit_code == 0
