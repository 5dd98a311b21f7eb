"""Taking up a run again: what its folder holds is put aside, played back, and written down anew."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.llm.answers import Answer
from textgrad_engine.llm.replace_file import move
from textgrad_engine.llm.reserve import UNTESTED, LastTest, Part
from textgrad_engine.llm.resume import Resumption, is_answer
from textgrad_engine.llm.tools_on_record import ToolOnRecord
from textgrad_engine.store.answers_on_record import When, Where, answer_of, in_order, phase_of, tools_of, when
from textgrad_engine.store.cut import (
    begun_with,
    drawn,
    has_event,
    has_validated,
    time_is_up,
    validated_in,
    whole_phases,
)
from textgrad_engine.store.files import read_lines, typed, whole_of, write_atomically
from textgrad_engine.store.looks_at_test import RunTests, merged
from textgrad_engine.store.paid import ASIDE, OnRecord, aside, identity_of, numbers_aside, paid_for
from textgrad_engine.store.reader import Run, read_run
from textgrad_engine.train import TrainResult
from textgrad_engine.train.events import PhaseStarted, RunStarted, current_phase
from textgrad_engine.train.settings import Setting, differing


class Earlier:
    """What a run folder holds of a run that was cut; NOTE [A run that is resumed] in `store.paid` has the rules.

    Args:
        folder: the run folder; nobody else may write into it.
        anyway: ask also where the run has changed so that its first requests were not recorded, or where recorded
            calls are gone.

    Attributes:
        player: gives the answers to the calls of the run that begins anew.
        reach: how far it had come.
        settings: what it was set to; None where it had not begun.
        validated_in: how many seconds the first validation took when it was paid for; 0 where that is not on record.

    Raises:
        RunError: a file is missing or damaged, or calls that were on record are gone. Nothing was put aside.
    """

    def __init__(self, folder: Path, *, anyway: bool = False) -> None:
        self.folder = folder
        self._number = max(numbers_aside(folder), default=0) + 1
        self._names: dict[Where, bytes] = {}
        self._looks: list[set[bytes]] = []
        self._ends: dict[Where, Part] = {}
        self._tested = UNTESTED
        self._whole: dict[int, tuple[str, int]] = {}
        run = read_run(folder)
        self.reach = run.reach
        begun = begun_with(run)
        self.settings: Mapping[str, Setting] | None = begun.get("settings", {}) if begun else None
        self._begun = {} if anyway else begun
        self._other_settings = ""
        self._time_is_up = time_is_up((*run.earlier, *run.events))
        self.validated_in = validated_in((*run.earlier, *run.events))
        validated = None if anyway else has_validated(run)
        every = self._read(run, anyway)
        self.player = Resumption(
            every,
            self._read_tools(run, anyway),
            phase=current_phase.get,
            validated=validated,
            whole=self._whole,
            ends=self._ends,
            tested=self._tested,
        )
        self._replaced = {file: file.read_bytes() for file in _replaced_in(folder)}

    def answering(self) -> AbstractContextManager[None]:
        """Inside the block, what was paid for answers the calls that ask for it again."""
        return self.player.answering()

    @property
    def refused(self) -> bool:
        """Whether the run was refused before it asked for anything that was not recorded."""
        return bool(self._other_settings) or (bool(self.player.problem) and not self.player.asked)

    def check_begun(self, event: RunStarted) -> None:
        """Check that what begins is set to what the run of before was set to.

        Other texts are told of by what they ask: a limit may have been made for their length, and nobody has set it.

        Raises:
            RunError: it is not, so that it would ask for other things than are on record.
        """
        if event.parameters == self._begun.get("parameters"):
            self._other_settings = differing(event.settings, self._begun.get("settings", {}))
        if self._other_settings:
            raise RunError(
                f"{self.folder}: the run is to go on with {self._other_settings}, so what was paid for would be paid "
                "for again. Put that back, or name another run_dir, for a new run; or go on all the same, by "
                'Trainer(resume="anyway") or --anyway'
            )

    def phase_started(self, event: PhaseStarted) -> None:
        """A phase begins; where another one was on record, the run goes another way from there on."""
        if self._whole.get(event.number, (event.phase, event.step)) != (event.phase, event.step):
            self._whole.clear()

    def _read(self, run: Run, anyway: bool) -> list[Answer]:
        """What is on record, in the order in which it was asked for, the first ones with their requests."""
        found: list[tuple[When, Answer]] = []
        looks: dict[int, dict[int, set[bytes]]] = {}
        tests, last = RunTests(), None
        on_record, newest = OnRecord(), 0
        for paid in paid_for(self.folder, or_none=True):
            answer = answer_of(self.folder, paid, source=paid.source or self._number)
            newest = newest if paid.again else answer.source
            where, phase = (answer.source, paid.line), paid.entry.get("phase_name")
            if phase == "control":
                self._ends[where] = "controls"
            elif phase == "test":
                name, last = identity_of(paid.entry), answer.source
                tests.add(where, answer.phase, name, again=paid.again)
                if is_answer(answer):
                    self._names[where] = name
                    looks.setdefault(answer.source, {}).setdefault(answer.phase, set()).add(name)
            elif is_answer(answer) and not paid.again:
                last = None  # a search went on behind the test, and may have found other texts
            on_record.add(paid.source, answer.phase)
            if not paid.again:
                found.append((when(paid, self._number), answer))
        if not anyway:
            again = f", or have them bought again: textgrad-engine resume {_typed(run)} --anyway"
            on_record.check(self.folder, (*run.earlier, *run.events), again)
            for source in range(newest, self._number + 1):  # those behind it were cut before they asked for anything
                self._whole |= whole_phases(self._events(source))
        self._ends |= tests.parts(last, lambda source: any(each.get("kept") for each in self._events(source)))
        if last is not None:
            self._tested = LastTest(drawn(self._events(last)), run.best)
        self._looks = merged([phases[min(phases)] for phases in looks.values()])
        if not self._looks and has_event(run, "Evaluated", "test"):
            self._looks = [set()]  # what it was answered is gone: nobody knows which look
        return in_order(found)

    def _events(self, source: int) -> list[dict[str, Any]]:
        """What the sitting has written down that a file is of."""
        name = "events.jsonl"
        file = self.folder / name if source == self._number else aside(self.folder, name, source)
        return list(read_lines(file, [])) if file.is_file() else []

    def _read_tools(self, run: Run, anyway: bool) -> list[ToolOnRecord]:
        """What is on record of tools."""
        lines = list(paid_for(self.folder, "tools.jsonl", or_none=True))
        on_record = OnRecord("tools.jsonl")
        for paid in lines:
            on_record.add(paid.source, phase_of(paid))
        if not anyway:
            again = f", or have them run again: textgrad-engine resume {_typed(run)} --anyway"
            on_record.check(self.folder, (*run.earlier, *run.events), again)
        return tools_of(self.folder, [paid for paid in lines if not paid.again], source=self._number)

    def put_aside(self) -> None:
        """Make room for the journal of the run that begins anew.

        Raises:
            OSError: that is not possible; what was done of it does no harm.
        """
        for draft in self.folder.rglob(".*.tmp"):  # of files that were to be replaced when the run was killed
            draft.unlink()
        for name in ASIDE:
            file, place = self.folder / name, aside(self.folder, name, self._number)
            if name == "events.jsonl":  # a folder without it is no run folder, so it is never away
                write_atomically(place, file.read_bytes())
                write_atomically(file, b"")
            elif file.is_file():
                move(file, place)

    def undo(self) -> None:
        """Have all as it was: the run that began anew has brought nothing, or could not be begun.

        It takes space on the disk for files only that are other ones now.
        """
        for name in ASIDE:
            place = aside(self.folder, name, self._number)
            if place.is_file():
                move(place, self.folder / name)
        for file in _replaced_in(self.folder):
            if file not in self._replaced:
                file.unlink()
        for file, content in self._replaced.items():
            if not file.is_file() or file.read_bytes() != content:
                write_atomically(file, content)

    def settle(self) -> None:
        """Remove what was put aside, of a run that has ended, as far as all of it was asked for again."""
        kept = self.player.sources
        for number in numbers_aside(self.folder):
            if number not in kept:
                for name in ASIDE:
                    with contextlib.suppress(OSError):  # what stays says nothing new
                        aside(self.folder, name, number).unlink()

    def search_ended(self, minutes: float | None) -> int | None:
        """After how many steps its time was up; None where it was not, or it has more of it now."""
        if self._time_is_up is None or minutes is None or minutes > (self._time_is_up.minutes or 0):
            return None
        return self._time_is_up.steps

    def confirmed(self, result: TrainResult) -> TrainResult:
        """What it has come to now."""
        return result

    @property
    def openings(self) -> int:
        """How often the test set was looked at before, for other texts than now.

        A run that was cut while it looked asks for the same answers again, and that is the same look.
        """
        names = [self._names.get((answer.source, answer.line)) for answer in self.player.played]
        return sum(look.isdisjoint(names) for look in self._looks)


def _typed(run: Run) -> str:
    """The folder that `resume` takes, as a shell wants it: of a fold that of all of them."""
    return typed(whole_of(run.path) or run.path)


def _replaced_in(folder: Path) -> list[Path]:
    """The files that a run replaces when it begins."""
    files = (*folder.glob("seed/*"), *folder.glob("best/*"), folder / "best_prompt.txt", folder / "config.json")
    return [file for file in files if file.is_file()]
