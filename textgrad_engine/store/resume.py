"""Taking up a run again: what its folder holds is put aside, played back, and written down anew."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.llm.answers import COMPARED, Answer
from textgrad_engine.llm.moving import move
from textgrad_engine.llm.reserve import UNTESTED, LastTest, Part
from textgrad_engine.llm.resume import Resumption, is_answer
from textgrad_engine.llm.tools_on_record import ToolOnRecord
from textgrad_engine.reasons import reason_of
from textgrad_engine.sent import check_unlinked, content_of
from textgrad_engine.store.calls import answer_from_json, identity_of, tool_from_json
from textgrad_engine.store.files import read_lines, typed, whole_of, write_atomically
from textgrad_engine.store.paid import ASIDE, OnRecord, Paid, aside, numbers_aside, paid_for
from textgrad_engine.store.reader import Run, read_run
from textgrad_engine.train import TrainResult
from textgrad_engine.train.events import PhaseStarted, RunStarted, TimeIsUp, current_phase
from textgrad_engine.train.settings import Setting, differing

_OF_STEPS = ("backward", "optimize", "search", "score")
"""The phases in which critics and optimizers are asked."""


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
        begun = _begun(run)
        self.settings: Mapping[str, Setting] | None = begun.get("settings", {}) if begun else None
        self._begun = {} if anyway else begun
        self._other_settings = ""
        self._time_is_up = time_is_up((*run.earlier, *run.events))
        self.validated_in = _validated_in((*run.earlier, *run.events))
        validated = None if anyway else _has_validated(run)
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
        tests, last = _Tests(), None
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
                self._whole |= _whole(self._events(source))
        self._ends |= tests.parts(last, lambda source: any(each.get("kept") for each in self._events(source)))
        if last is not None:
            self._tested = LastTest(_drawn(self._events(last)), run.best)
        self._looks = _merged([phases[min(phases)] for phases in looks.values()])
        if not self._looks and _has(run, "Evaluated", "test"):  # what it was answered is gone: nobody knows which look
            self._looks = [set()]
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
            on_record.add(paid.source, int(paid.entry.get("phase", 0)))
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


def _whole(events: Iterable[Mapping[str, Any]]) -> dict[int, tuple[str, int]]:
    """The phases of one sitting that asked critics and optimizers all that they had to ask: their names and steps.

    Only those of a step that came to its end, as events of an older version do not say that a phase lacks calls.
    """
    begun: dict[int, tuple[str, int]] = {}
    ended: dict[int, tuple[str, int]] = {}
    found: dict[int, tuple[str, int]] = {}
    for event in events:
        kind, number = event.get("event"), int(event.get("number", 0))
        if kind == "PhaseStarted" and event.get("phase") in _OF_STEPS:
            begun[number] = event["phase"], event["step"]
        elif kind == "PhaseEnded" and number in begun and not event.get("lacking"):
            ended[number] = begun[number]
        elif kind == "StepEnded":
            found |= {number: of for number, of in ended.items() if of[1] == event.get("step")}
    return found


def time_is_up(events: Iterable[Mapping[str, Any]]) -> TimeIsUp | None:
    """The last event of a run that says that its time is up; None where there is none, or the search went on behind it.

    Example:
        >>> time_is_up([{"event": "TimeIsUp", "steps": 3, "minutes": 5.0}, {"event": "RunEnded"}])
        TimeIsUp(steps=3, minutes=5.0)
    """
    found = None
    for event in events:
        if event.get("event") == "TimeIsUp":
            found = TimeIsUp(int(event["steps"]), event["minutes"])
        elif event.get("event") == "StepEnded" and found is not None and event.get("step", 0) > found.steps:
            found = None
    return found


def _validated_in(events: Iterable[Mapping[str, Any]]) -> float:
    """How many seconds the first validation took, in the sitting that took longest: to play it back takes none."""
    longest, number, begun = 0.0, None, ""
    for event in events:
        kind = event.get("event")
        if kind == "RunStarted":
            number = None
        elif (kind, event.get("phase"), event.get("step")) == ("PhaseStarted", "validate", 0) and number is None:
            number, begun = event.get("number"), event.get("time", "")
        elif kind == "PhaseEnded" and number is not None and event.get("number") == number:
            with contextlib.suppress(TypeError, ValueError):  # no time, or none that anybody can read
                taken = datetime.fromisoformat(event.get("time", "")) - datetime.fromisoformat(begun)
                longest = max(longest, taken.total_seconds())
    return longest


def _typed(run: Run) -> str:
    """The folder that `resume` takes, as a shell wants it: of a fold that of all of them."""
    return typed(whole_of(run.path) or run.path)


def _has(run: Run, *what: object) -> bool:
    """Whether there was an event of a kind and a phase, and maybe of a step."""
    events = ((event.get("event"), event.get("phase"), event.get("step")) for event in (*run.earlier, *run.events))
    return any(event[: len(what)] == what for event in events)


def _begun(run: Run) -> Mapping[str, Any]:
    """What the last event says with which the run was begun; nothing where there is none."""
    begun = [event for event in (*run.earlier, *run.events) if event.get("event") == "RunStarted"]
    return begun[-1] if begun else {}


def _has_validated(run: Run) -> bool:
    """Whether all is on record that the validation of the seed texts asks for; see NOTE [A phase ends with its calls]
    in `train.phases`.
    """
    seed: object = None
    lacking: set[object] = set()
    for event in (*run.earlier, *run.events):
        number = event.get("number")
        if event.get("event") == "PhaseEnded":
            (lacking.add if event.get("lacking") else lacking.discard)(number)
        elif (event.get("event"), event.get("phase"), event.get("step")) == ("Evaluated", "validate", 0):
            seed = number if seed is None else seed  # another one is of the end of a search that came to no step
            if number == seed and number not in lacking:
                return True
    return False


def answer_of(folder: Path, paid: Paid, *, source: int) -> Answer:
    """What a line on record tells; only the first ones of a file keep their requests, as these are most of it.

    So does what was asked inside of a tool, as nobody else may know that request again.

    Args:
        folder: the run folder.
        paid: the line.
        source: what its file is numbered as.

    Raises:
        RunError: it was damaged.
    """
    try:
        answer = answer_from_json(paid.entry, nth=0, line=paid.line, source=source)
    except RunError as error:
        path = aside(folder, "completions.jsonl", paid.source) if paid.source else folder / "completions.jsonl"
        raise RunError(f"{path}:{paid.line}: the line was damaged: {error}; restore the file") from None
    return answer if paid.line <= COMPARED or answer.tool else replace(answer, request=None)


def tools_of(folder: Path, lines: Iterable[Paid], *, source: int) -> list[ToolOnRecord]:
    """The calls of tools that lines on record tell, numbered by when they began.

    Args:
        folder: the run folder.
        lines: the lines.
        source: what the file is numbered as that was not put aside.

    Raises:
        RunError: one was damaged.
    """
    found, read = [], functools.partial(_attached, folder)
    for nth, paid in enumerate(sorted(lines, key=lambda each: when(each, source))):
        try:
            found.append(tool_from_json(paid.entry, nth=nth, source=paid.source or source, read=read))
        except RunError as error:
            path = aside(folder, "tools.jsonl", paid.source) if paid.source else folder / "tools.jsonl"
            raise RunError(f"{path}:{paid.line}: the line was damaged: {error}; restore the file") from None
    return found


def _attached(folder: Path, name: str) -> bytes:
    """The bytes that a tool gave, of which a record has the name.

    Raises:
        RunError: they cannot be read.
    """
    file = folder / name
    try:
        check_unlinked(file)  # else the file that somebody's link names would be sent to a model
        return content_of(file)
    except OSError as error:
        why = reason_of(error)
        raise RunError(f"{file}: an image that a tool gave cannot be read: {why}; restore the file") from None


Where = tuple[int, int]
"""What a file is numbered as, and the number of the line."""

When = tuple[int, str]
"""The sitting in which something was asked for, and the time."""


def when(paid: Paid, last: int) -> When:
    """When something was asked for; a clock may be set back between two sittings, so that the time alone misleads.

    Args:
        paid: the line.
        last: what the file is numbered as that was not put aside.
    """
    return paid.source or last, str(paid.entry.get("time", ""))


def in_order(found: list[tuple[When, Answer]]) -> list[Answer]:
    """Answers in the order in which they were asked for, and numbered by it.

    Args:
        found: when each was asked for, and the answer.
    """
    return [replace(answer, nth=nth) for nth, (_, answer) in enumerate(sorted(found, key=lambda each: each[0]))]


class _Tests:
    """What is on record of the tests of a run, to tell which part of its end an answer belongs to.

    In each sitting the best texts are tested first (`Run.evaluate_test`). What is played back is written down again, so
    the file of a later sitting tells of which texts the answers of an earlier one are.
    """

    def __init__(self) -> None:
        self._phases: dict[int, dict[int, Counter[bytes]]] = {}
        self._new: dict[Where, bytes] = {}

    def add(self, where: Where, phase: int, name: bytes, *, again: bool) -> None:
        """Count an answer in.

        Args:
            where: it stands.
            phase: the number of the phase that it was asked in.
            name: of the answer (`identity_of`).
            again: whether it stands in a file before, too.
        """
        self._phases.setdefault(where[0], {}).setdefault(phase, Counter())[name] += 1
        if not again:
            self._new[where] = name

    def parts(self, last: int | None, kept: Callable[[int], bool]) -> dict[Where, Part]:
        """The parts that answers belong to; those of texts that are no longer the best ones to none.

        Args:
            last: the number of the file that tells of the texts which are the best ones; None where none does.
            kept: whether other texts than the seed texts were kept in the sitting of a file.
        """
        seed, best = Counter[bytes](), Counter[bytes]()
        for source, phases in self._phases.items():
            for number, names in phases.items():
                if number > min(phases) or not kept(source):
                    seed |= names
                elif source == last:
                    best = names.copy()
        found: dict[Where, Part] = {}
        for where, name in self._new.items():
            if seed[name]:
                found[where], seed[name] = "seed", seed[name] - 1
            elif best[name]:
                found[where], best[name] = "best", best[name] - 1
        return found


def _drawn(events: Iterable[Mapping[str, Any]]) -> int:
    """How many test examples a sitting has drawn."""
    begun = (event for event in events if (event.get("event"), event.get("phase")) == ("PhaseStarted", "test"))
    return int(next((event["total"] for event in begun), 0))


def _merged(looks: list[set[bytes]]) -> list[set[bytes]]:
    """The looks at the test set that have nothing in common.

    One is known by what the best texts were answered. Of a run that was cut while it looked, and was taken up again, it
    is in two files, and in the second there is some of the first.
    """
    merged: list[set[bytes]] = []
    for found in looks:
        same = [look for look in merged if not look.isdisjoint(found)]
        merged = [look for look in merged if look not in same] + [found.union(*same)]
    return merged


def _replaced_in(folder: Path) -> list[Path]:
    """The files that a run replaces when it begins."""
    files = (*folder.glob("seed/*"), *folder.glob("best/*"), folder / "best_prompt.txt", folder / "config.json")
    return [file for file in files if file.is_file()]
