"""What a run has paid for: the files that hold it, those of before a run was resumed included.

NOTE [A run that is resumed]
    `resume` puts these files aside: ``completions.jsonl`` becomes ``answers-1.jsonl``, ``events.jsonl`` becomes
    ``events-1.jsonl``, and where there are such, ``tools.jsonl`` ``tools-1.jsonl`` and ``result.json``
    ``result-1.json``. Then the run begins anew, and what it asks for is answered by what was put aside and written down
    again. One that is cut again puts aside
    under the next number, and is resumed from all of them. So at any instant, all that was paid for is in the folder,
    mostly twice.

    A completion that stands in several of these files was paid for once: as often as in that file which has it most
    often. Those of several items of a `pmap`, or of several places, are several, as none is given to another. So it is
    with calls of tools. When the run has ended and all that a file put aside holds was asked for again, it goes, with
    what was put aside beside it. What was not asked for again stays where it is.

    For a while the run that began anew knows less than what was put aside does. Until it has come as far
    (`sittings.Reach`), who reads the folder is told that, and the files of the best texts stay as they were.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from textgrad_engine.errors import RunError
from textgrad_engine.llm.as_json import request_from_json
from textgrad_engine.llm.places import same_item, same_place
from textgrad_engine.signed import unsigned
from textgrad_engine.store.files import read_lines

ASIDE = {
    "result.json": "result-{}.json",
    "tools.jsonl": "tools-{}.jsonl",
    "completions.jsonl": "answers-{}.jsonl",
    "events.jsonl": "events-{}.jsonl",
}
"""What a file is called when it is put aside, in the order in which that is done; see NOTE [A run that is resumed]."""

_WHERE_AND_WHEN = frozenset(
    {"phase", "phase_name", "step", "item", "place", "tool", "sample", "time", "latency", "counted_again"}
)


class Paid(NamedTuple):
    """A completion that was paid for, or a call of a tool.

    Attributes:
        source: the number of the file put aside that it stands in; 0 for the file that was not.
        line: its number there.
        entry: the line.
        again: whether it stands in a file before, too.
    """

    source: int
    line: int
    entry: dict[str, Any]
    again: bool = False


class OnRecord:
    """Counts the calls on record by phase, to find out whether some are gone.

    A phase that has ended says in ``events.jsonl`` how many calls of it were written down. A run that was resumed has
    several files, and what is in one of them is not gone.

    Args:
        name: the file: that of the completions, or of the calls of tools.
    """

    def __init__(self, name: str = "completions.jsonl") -> None:
        self._name = name
        self._counted = "calls" if name == "completions.jsonl" else "tools"
        self._found: dict[int, Counter[int]] = {}

    def add(self, source: int, phase: int) -> None:
        """Count a call in.

        Args:
            source: the number of its file.
            phase: the number of its phase.
        """
        self._found.setdefault(source, Counter())[phase] += 1

    def check(self, folder: Path, events: Iterable[Mapping[str, Any]], repair: str) -> None:
        """Check that all calls are on record of which there is a word in the events.

        Args:
            folder: the run folder.
            events: the lines of ``events.jsonl``, and of the like put aside.
            repair: what can be done, besides restoring the file.

        Raises:
            RunError: some are gone.
        """
        told: Counter[int] = Counter()
        for event in events:
            calls, phase = event.get(self._counted), event.get("number")
            if event.get("event") == "PhaseEnded" and isinstance(calls, int) and isinstance(phase, int):
                told |= Counter({phase: calls})
        found = functools.reduce(operator.or_, self._found.values(), Counter[int]())
        missing, file = (told - found).total(), folder / self._name
        if missing and self._counted == "tools":
            what = "what 1 call of a tool gave" if missing == 1 else f"what {missing} calls of tools gave"
            raise RunError(
                f"{file}: {what} can no longer be found, as the file was cut off, emptied or deleted, so they would be "
                f"run again; restore it{repair}"
            )
        if missing:
            what = "1 call that was" if missing == 1 else f"{missing} calls that were"
            raise RunError(
                f"{file}: {what} paid for can no longer be found, as the file was cut off, emptied or deleted; "
                f"restore it{repair}"
            )
        if self._counted == "tools":
            return  # most runs have none
        if not file.is_file() and not numbers_aside(folder, file.name):  # a run of before calls were counted
            raise RunError(
                f"{file}: the file is missing from the run folder, with what was paid for; restore it{repair}"
            )


def place_of(folder: Path, name: str, paid: Paid) -> str:
    """The file and the line of what was paid for, for errors.

    Args:
        folder: the run folder.
        name: of the file, where it is not put aside.
        paid: what was paid for.
    """
    return f"{aside(folder, name, paid.source) if paid.source else folder / name}:{paid.line}"


def aside(folder: Path, name: str, number: int) -> Path:
    """Where a file of a run folder is put aside.

    Example:
        >>> aside(Path("runs/tickets-1"), "completions.jsonl", 2).as_posix()
        'runs/tickets-1/answers-2.jsonl'
    """
    return folder / ASIDE[name].format(number)


def numbers_aside(folder: Path, name: str = "") -> list[int]:
    """The numbers under which something, or the files of one name, were put aside, in order."""
    patterns = [ASIDE[name]] if name else list(ASIDE.values())
    forms = [re.escape(pattern).replace(r"\{\}", r"([1-9]\d*)") for pattern in patterns]
    matches = [re.fullmatch("|".join(forms), file.name) for file in folder.iterdir()]
    return sorted({int(next(filter(None, match.groups()))) for match in matches if match})


def paid_for(folder: Path, name: str = "completions.jsonl", *, or_none: bool = False) -> Iterator[Paid]:
    """Every completion that a run has paid for, one at a time, and those that were played back; no torn last lines.

    Args:
        folder: the run folder.
        name: the file that they stand in when they are not put aside; ``tools.jsonl`` has the calls of tools.
        or_none: take a file that is missing for one that holds nothing.

    Raises:
        RunError: a file is missing or damaged.
    """
    numbers = numbers_aside(folder, name)
    places = [(number, aside(folder, name, number)) for number in numbers]
    last = folder / name
    if last.is_file() or not (numbers or or_none):  # a run that was cut while it was put aside has none
        places.append((0, last))
    known: dict[bytes, Counter[_Within]] = {}
    for number, path in places:
        left = {identity: Counter(found) for identity, found in known.items()}
        for line, entry in enumerate(read_lines(path, []), 1):
            again = False
            if len(places) > 1:
                try:
                    identity, within = identity_of(entry), _within(entry)
                except (TypeError, ValueError) as error:
                    raise RunError(f"{path}:{line}: the line was damaged: {error}; restore the file") from None
                again = _taken(left.get(identity), within)
                if not again:
                    known.setdefault(identity, Counter())[within] += 1
            yield Paid(number, line, entry, again)


def identity_of(entry: Mapping[str, Any]) -> bytes:
    """What tells a completion, or a call of a tool, from others, wherever in a run and whenever it was asked for.

    Raises:
        ValueError: its request has not the form of one.
    """
    kept = unsigned({key: value for key, value in entry.items() if key not in _WHERE_AND_WHEN})
    if "request" in kept:  # folders of before have the bytes, and addresses whole
        kept["request"] = request_from_json(kept["request"])
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).digest()


_Within = tuple[tuple[int, ...], tuple[int, ...]]
"""The item and the place that something belongs to, as far as that was kept."""


def _within(entry: Mapping[str, Any]) -> _Within:
    item, place = (tuple(entry.get(name, ())) for name in ("item", "place"))
    if not all(isinstance(each, int) for each in (*item, *place)):
        raise ValueError(f"its item and place cannot be {list(item)!r:.80} and {list(place)!r:.80}")
    return item, place


def _taken(left: Counter[_Within] | None, asked: _Within) -> bool:
    """Take one of equal ones that may have been given again to a call, its own first; False where there is none."""
    if not left:
        return False
    found = asked if asked in left else next((each for each in left if _may_be(each, asked)), None)
    if found is None:
        return False
    left[found] -= 1
    if not left[found]:
        del left[found]
    return True


def _may_be(recorded: _Within, asked: _Within) -> bool:
    """Whether what was recorded may have been given again to a call: what is of one item or place is of no other."""
    return same_item(recorded[0], asked[0]) and same_place(recorded[1], asked[1])
