"""The difference between two prompts, line by line, and why each line changed."""

from __future__ import annotations

import functools
import itertools
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from textgrad_engine.optim.cells import Evidence, Gone, Origin, cells_of, lines_of
from textgrad_engine.optim.matching import matcher_of
from textgrad_engine.optim.patch import apply_patch, origins_of_rewrite
from textgrad_engine.optim.sentences import by_sentences, excerpts, sentences_of
from textgrad_engine.train.events import ParameterChange, StepEnded

Op = Literal["same", "added", "removed"]


@dataclass(frozen=True)
class Asked:
    """Why a line was written.

    Attributes:
        step: the step of the run that did it; None when nobody knows.
        reason: the optimizer's reason.
        evidence: the feedback that asked for it.
    """

    step: int | None
    reason: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class DiffLine:
    """One line of a diff.

    Attributes:
        op: ``"same"``, ``"added"`` or ``"removed"``.
        text: the line.
        step: the step of the run that did it; None for lines that stayed, or when nobody knows.
        reason: the optimizer's reason.
        evidence: the feedback that asked for it.
        excerpt: of a long line that is replaced, or replaces one, it with an ellipsis for the sentences that both have.
        earlier: of an added line, who asked for those that stood in its place before, the latest first: edits of the
            sentences of a long line are one after the other in it.
        replaced: of a removed line, whether the next added one stands in its place, and tells what was said of both.
    """

    op: Op
    text: str
    step: int | None = None
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    excerpt: str | None = None
    earlier: tuple[Asked, ...] = ()
    replaced: bool = False

    @property
    def shown(self) -> str:
        """What is shown of it: its text, or of a long line what is not in the one that stands beside it as well."""
        return self.text if self.excerpt is None else self.excerpt


def diff_of(
    name: str, seed: str, best: str, origins: Sequence[Origin | None], steps: Sequence[StepEnded]
) -> tuple[DiffLine, ...]:
    """The difference between the seed and the best text of a parameter.

    A line that was replaced stands before the one that stands in its place, as far as edits tell which that is.

    Args:
        name: the parameter's name.
        seed: its text before the run.
        best: its text after the run.
        origins: of each line of the best text.
        steps: of the run; they say what removed a line.
    """
    old, new = lines_of(seed), lines_of(best)
    there = _seed_cells(old, new, best, origins)
    removals, arrivals, replaced = _removals(name, steps), Arrivals(name, seed, steps), Replaced(origins)

    @functools.cache
    def earlier(edit: str) -> tuple[Asked, ...]:
        return tuple(dict.fromkeys(_earlier(replaced.by(edit), arrivals)))

    lines: list[DiffLine] = []
    for tag, old_start, old_end, new_start, new_end in _opcodes(old, new, there):
        if tag == "equal":
            lines += [DiffLine("same", text) for text in old[old_start:old_end]]
            continue
        removed: list[DiffLine] = []
        for position in range(old_start, old_end):
            why = _taken(removals.get(old[position], []), there[position].by if there else "")
            removed.append(_line("removed", old[position], why, None if why is None else why.step))
        added: list[tuple[DiffLine, str]] = []
        for position in range(new_start, new_end):
            origin = origins[position] if position < len(origins) else None
            by = None if origin is None else arrivals.step_of(new[position], origin)
            line = _line("added", new[position], origin, None if by is None else by.step)
            edit = "" if origin is None else origin.edit
            added.append((replace(line, earlier=earlier(edit)), edit))
        lines += _side_by_side(removed, added, replaced)
    return tuple(with_excerpts(lines))


@dataclass(frozen=True)
class _SeedCell:
    """What became of a line of the seed text.

    Attributes:
        place: its place in the best text, from 0; None where it is gone.
        by: the edit that took it out; "" where it is there.
    """

    place: int | None
    by: str


def _seed_cells(old: Sequence[str], new: Sequence[str], best: str, origins: Sequence[Origin | None]) -> list[_SeedCell]:
    """What became of each line of the seed text, as origins tell it; nothing where they tell of another text."""
    if len(origins) != best.count("\n") + 1:
        return []
    found: list[_SeedCell] = []
    texts: list[str] = []
    place = 0
    for cell in cells_of(best, origins):
        if cell.origin is None:
            texts.append(cell.text)
            found.append(_SeedCell(None if cell.by else place, cell.by))
        place += not cell.by
    return found if texts == list(old) and place == len(new) else []


def _opcodes(
    old: Sequence[str], new: Sequence[str], there: Sequence[_SeedCell]
) -> Iterator[tuple[str, int, int, int, int]]:
    """What difflib says of two lists of lines, between lines that no edit touched: of some that read alike it is each.

    Args:
        old: the lines of the seed text.
        new: those of the best text.
        there: what became of each of the old ones; nothing where nobody knows.
    """
    at = to = 0
    stayed = [(place, cell.place, 1) for place, cell in enumerate(there) if cell.place is not None]
    for place, target, count in [*stayed, (len(old), len(new), 0)]:
        between = matcher_of(old[at:place], new[to:target]).get_opcodes() if at < place or to < target else []
        for tag, start, stop, first, last in between:
            yield tag, at + start, at + stop, to + first, to + last
        if count:
            yield "equal", place, place + 1, target, target + 1
        at, to = place + count, target + count


def _taken(removals: list[tuple[str, Origin]], by: str) -> Origin | None:
    """Why a line is gone, which is told once: by the edit that took it out, or its step, or else the first that did."""

    def distance(removal: tuple[str, Origin]) -> int:
        edit, origin = removal
        return 0 if edit and edit == by else 1 if by.startswith(f"{origin.step}.") else 2

    if not removals:
        return None
    found = min(removals, key=distance)
    removals.remove(found)
    return found[1]


def _side_by_side(
    removed: Sequence[DiffLine], added: Sequence[tuple[DiffLine, str]], replaced: Replaced
) -> Iterator[DiffLine]:
    """Removed and added lines in their orders, each added one right behind those of the seed text that it replaced.

    Args:
        removed: those that are gone.
        added: those that came, each with the edit that wrote it, and these in their time.
        replaced: which lines an edit took out. Those of a rewrite are asked for by each line that it wrote.
    """
    free: dict[str, deque[int]] = {}  # by its text, where a removed line is that no added one stands for yet
    for at, line in enumerate(removed):
        free.setdefault(line.text, deque()).append(at)
    wanted: dict[str, list[str]] = {}  # of the seed text, by the edit that took them out, while there are such
    last: dict[int, int] = {}  # of a removed line, the added one that it stands before
    behind: dict[int, int] = {}  # of an added line, the last removed one that stands before it
    for place, (_, edit) in enumerate(added):
        if (texts := wanted.get(edit)) is None:
            texts = [gone.text for gone in replaced.by(edit) if gone.origin is None]
        wanted[edit] = []
        for text in texts:
            if places := free.get(text):
                at = places.popleft()
                last[at], behind[place] = place, max(at, behind.get(place, -1))
                wanted[edit].append(text)
    waiting = deque(enumerate(removed))
    for place, (line, _) in enumerate(added):
        end = behind.get(place, -1)
        while waiting and (waiting[0][0] <= end or (end < 0 and waiting[0][0] not in last)):
            at, gone_line = waiting.popleft()
            yield replace(gone_line, replaced=at in last and last[at] == place)
        yield line
    yield from (line for _, line in waiting)


def with_excerpts(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """The lines of a diff, with excerpts of long ones that stand for each other."""
    runs = [list(run) for _, run in itertools.groupby(lines, key=lambda line: line.op)]
    for removed, added in itertools.pairwise(runs):
        if (removed[0].op, added[0].op) != ("removed", "added"):
            continue
        left = dict.fromkeys(range(len(added)))
        long = [by_sentences(old.text) for old in removed]
        holders = _holders(added) if any(long) else {}
        for place, old in enumerate(removed):
            # Lines may have come in before it, so that what stands for it is not in its place.
            if long[place]:
                places = sorted({at for each in sentences_of(old.text) for at in holders.get(each, ()) if at in left})
            else:
                places = [place] if place in left else []
            found = [(at, *excerpts(old.text, added[at].text)) for at in places]
            found = [each for each in found if each[1:] != (old.text, added[each[0]].text)]
            if found:
                at, was, now = min(found, key=lambda each: len(each[1]) + len(each[2]) - len(added[each[0]].text))
                removed[place], added[at] = replace(old, excerpt=was), replace(added[at], excerpt=now)
                del left[at]
    return [line for run in runs for line in run]


def _holders(lines: Sequence[DiffLine]) -> dict[str, list[int]]:
    """Where a sentence stands: two lines without one in common have no excerpts, and need not be compared."""
    found: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        for each in sentences_of(line.text):
            found.setdefault(each, []).append(at)
    return found


class Arrivals:
    """The kept steps by the lines and the edits that they brought into the best text of a parameter.

    Mostly a line came with the step that proposed it. A line whose patch was disputed came in when rivals were raced,
    and a line of a population's candidate when that candidate, or a child of it, became the best one. An optimizer that
    went on from an earlier run counts its steps from there, so its number of a step may be another than the run's.

    Args:
        name: the parameter's name.
        seed: its text before the run.
        steps: of the run.
    """

    def __init__(self, name: str, seed: str, steps: Sequence[StepEnded]) -> None:
        self._lines: dict[str, list[StepEnded]] = {}
        self._edits: dict[str, list[StepEnded]] = {}
        best = Counter(seed.split("\n"))
        for step in steps:
            change = next((change for change in step.changes if change.name == name), None)
            if not step.kept or change is None:
                continue
            after = Counter(change.after.split("\n"))
            for line in after - best:
                self._lines.setdefault(line, []).append(step)
            for edit in change.edits:
                self._edits.setdefault(edit.id, []).append(step)
            best = after

    def step_of(self, line: str, origin: Origin) -> StepEnded | None:
        """The step that brought a line into the best text; None when it is not one of these.

        Args:
            line: the line.
            origin: of the line.
        """
        lines, edits = self._lines.get(line, []), self._edits.get(origin.edit, [])
        found = lines or edits
        # One that only moved a line brought none in: of that text another step may have.
        return next((step for step in (*lines, *edits) if step.step == origin.step), found[-1] if found else None)


class Replaced:
    """The lines that edits took out of a text.

    Args:
        origins: of all lines of the text.
    """

    def __init__(self, origins: Sequence[Origin | None]) -> None:
        self._gone: dict[str, dict[Gone, None]] = {}  # by the edit that took it out, each once
        self._found: dict[str, tuple[Gone, ...]] = {}
        for own in origins:
            for each in () if own is None else (*own.gone_before, *own.gone):
                self._gone.setdefault(each.by, {})[each] = None
        self._origins = origins

    @functools.cached_property
    def writers(self) -> frozenset[str]:
        """The edits that wrote a line of the text, or one that was in it; the others only took some out."""
        there = {own.edit for own in self._origins if own is not None}
        gone = (each.origin for these in self._gone.values() for each in these)
        return frozenset(there | {origin.edit for origin in gone if origin is not None})

    def by(self, edit: str) -> tuple[Gone, ...]:
        """The lines that an edit took out, and those that these had replaced in their time, the latest first.

        Args:
            edit: its id; "" for one that nobody knows, of which there are none.
        """
        if (found := self._found.get(edit)) is None:
            edits, waiting, gone = {"", edit}, deque([edit]), list[Gone]()
            while waiting and edit:
                for each in self._gone.get(waiting.popleft(), ()):
                    gone.append(each)
                    before = "" if each.origin is None else each.origin.edit
                    if before not in edits:
                        edits.add(before)
                        waiting.append(before)
            found = self._found[edit] = tuple(gone)
        return found


def _earlier(replaced: Sequence[Gone], arrivals: Arrivals) -> Iterator[Asked]:
    for gone in replaced:
        if gone.origin is not None and (gone.origin.reason or gone.origin.evidence):
            by = arrivals.step_of(gone.text, gone.origin)
            yield Asked(None if by is None else by.step, gone.origin.reason, gone.origin.evidence)


def origins_from_steps(name: str, seed: str, steps: Sequence[StepEnded]) -> list[Origin | None]:
    """The origin of each line of the best text, worked out again from the steps.

    A search may build on texts that were proposed and never the best, so those that were not kept count, too.
    """
    known: dict[str, list[Origin | None]] = {seed: [None] * len(seed.split("\n"))}
    best = seed
    for step in steps:
        for change in step.changes:
            if change.name != name or change.after == change.before:
                continue
            if change.after not in known or (step.kept and change.edits):
                before = change.before if change.before in known else best
                text = ""
                if change.edits and before == change.before:
                    text, own = apply_patch(before, known[before], change.edits, change.feedback, step.step)
                if text != change.after:  # the edits are not all that was done to it
                    own = origins_of_rewrite(before, known[before], change.after, "", change.feedback, step.step)
                known[change.after] = own
            if step.kept:
                best = change.after
    return known[best]


def _line(op: Literal["added", "removed"], text: str, origin: Origin | None, step: int | None) -> DiffLine:
    if origin is None or origin.step == 0:  # 0: nobody wrote the line; the origin only tells what is gone beside it
        return DiffLine(op, text)
    return DiffLine(op, text, step, origin.reason, origin.evidence)


def _kept(name: str, steps: Sequence[StepEnded]) -> list[tuple[int, ParameterChange]]:
    return [
        (step.step, change)
        for step in steps
        if step.kept
        for change in step.changes
        if change.name == name and change.after != change.before
    ]


def _removals(name: str, steps: Sequence[StepEnded]) -> dict[str, list[tuple[str, Origin]]]:
    """Why lines went away, by their text, oldest first, each with the edit that did it, "" where nobody knows."""
    found: dict[str, list[tuple[str, Origin]]] = {}
    for step, change in _kept(name, steps):
        before = change.before.split("\n")
        for edit in change.edits:
            if edit.op != "add":
                evidence = tuple(change.feedback[number - 1] for number in edit.feedback)
                found.setdefault(before[edit.line - 1], []).append((edit.id, Origin(step, edit.reason, evidence)))
        if not change.edits:
            for tag, start, stop, *_ in matcher_of(before, change.after.split("\n")).get_opcodes():
                for text in before[start:stop] if tag != "equal" else ():
                    found.setdefault(text, []).append(("", Origin(step, "", change.feedback)))
    return found
