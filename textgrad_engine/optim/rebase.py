"""Putting edits on another text than the one they were made for: one that has changed since, or a common ancestor.

Patches that were found side by side are not rivals: what was said about line 3 holds wherever line 3 is now. This is
the three-way merge of version control (Khanna, Kunal, Pierce: "A formal investigation of diff3", 2007) for patches
whose lines know where they came from, so that lines are matched by identity and not by what they happen to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from textgrad_engine.data.casefold import folded
from textgrad_engine.optim.cells import Cell, Origin, cells_of, keys_of, lines_of, standing_for
from textgrad_engine.optim.matching import matcher_of
from textgrad_engine.optim.patch import Edit, as_one, meant
from textgrad_engine.optim.sentences import merged_line


@dataclass(frozen=True)
class Conflict:
    """An edit of a line that has been changed or removed since.

    Attributes:
        edit: the edit as it was made, for the old text.
        theirs: the lines that stand there now; none when the line was removed.
        instead: edits of the new text that put this one in the place of theirs, to race both.
    """

    edit: Edit
    theirs: tuple[str, ...]
    instead: tuple[Edit, ...]


@dataclass(frozen=True)
class Rebased:
    """What became of edits on a text that has changed since they were made.

    Attributes:
        edits: those that can be made, with the line numbers of the new text.
        conflicts: those that speak of a line which is no longer as it was.
        duplicates: those that are not needed: somebody has made the same change.
    """

    edits: tuple[Edit, ...]
    conflicts: tuple[Conflict, ...] = ()
    duplicates: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Merged:
    """Two patches of one text as one.

    Attributes:
        edits: of both, for the common text.
        conflicts: pairs of edits of one line; the first patch's is among `edits`, the second's is not.
        duplicates: edits of the second patch that the first has too.
    """

    edits: tuple[Edit, ...]
    conflicts: tuple[tuple[Edit, Edit], ...] = ()
    duplicates: tuple[Edit, ...] = ()


def rebase(
    edits: Sequence[Edit],
    base_text: str,
    new_text: str,
    base_origins: Sequence[Origin | None] | None = None,
    new_origins: Sequence[Origin | None] | None = None,
) -> Rebased:
    r"""Edits of one text, for another that descends from it (or from which it descends).

    An edit of a line that is still there goes with it. An add whose text has come in since is a duplicate; one behind a
    line that has been replaced goes behind what replaced it, one behind a removed line behind the nearest line before
    it that is left, and one behind the last line stays at the end. Where a long line was replaced, an edit of other
    sentences of it than those that changed is made in what stands there now.

    Args:
        edits: the edits, made for `base_text`.
        base_text: the text they were made for.
        new_text: the text they are wanted for.
        base_origins: of the lines of the base; with `new_origins`, lines are matched by who wrote them, else, or where
            these are of another history, by their text.
        new_origins: of the lines of the new text.

    Example:
        >>> edits = [Edit("replace", 2, "Be polite.", ""), Edit("add", 1, "Read it twice.", "")]
        >>> rebased = rebase(edits, "Sort.\nBe kind.", "Read it.\nSort.\nBe kind.")
        >>> [(edit.op, edit.line) for edit in rebased.edits]
        [('replace', 3), ('add', 2)]
    """
    base, new = lines_of(base_text), new_text.split("\n")
    last = len(lines_of(new_text))
    places = _places(base_text, new_text, base_origins, new_origins)
    since = _folded(new) - _folded(base)
    made: list[Edit] = []
    conflicts: list[Conflict] = []
    duplicates: list[Edit] = []
    merged: dict[int, int] = {}
    for edit in meant(edits, base_text):
        if edit.op == "add":
            if _is_among(edit, since):
                duplicates.append(edit)
            else:
                made.append(replace(edit, line=_behind(edit.line, places, last)))
            continue
        now = places[edit.line - 1]
        if now.itself is not None:
            made.append(replace(edit, line=now.itself))
            continue
        theirs = tuple(new[number - 1] for number in now.standing)
        mine = edit.text.split("\n") if edit.op == "replace" else []
        if len(theirs) == len(mine) == 1:
            number = now.standing[0]
            earlier = made[merged[number]] if number in merged else None  # two lines may have become one
            stands = theirs[0] if earlier is None else earlier.text
            both = merged_line(base[edit.line - 1], stands, edit.text)
            if both is not None:
                moved = replace(edit, line=number, text=both)
                if both == stands:
                    duplicates.append(moved)
                elif earlier is None:
                    merged[number] = len(made)
                    made.append(moved)
                else:
                    made[merged[number]] = as_one([earlier, edit], replace(earlier, text=both))
                continue
        if [fold(line) for line in theirs] == [fold(line) for line in mine]:
            duplicates.append(edit)
        else:
            instead = _instead(edit, now.standing, _behind(edit.line, places, last))
            conflicts.append(Conflict(edit, theirs, instead))
    return Rebased(tuple(made), tuple(conflicts), tuple(duplicates))


def merge_patches(base_text: str, first: Sequence[Edit], second: Sequence[Edit], *, feedback: int = 0) -> Merged:
    r"""Two patches of one text as one patch of it; where they disagree, the first has its way.

    What they do to different sentences of a long line becomes one edit.

    Args:
        base_text: the text that both were made for.
        first: one patch.
        second: the other.
        feedback: how many pieces of feedback the first's numbers speak of; the second's are moved behind them, for one
            list of evidence.

    Example:
        >>> one = [Edit("replace", 1, "Sort it.", "", (1,))]
        >>> two = [Edit("remove", 1, "", ""), Edit("add", 2, "Be brief.", "", (1,))]
        >>> merged = merge_patches("Sort.\nThe mail:", one, two, feedback=1)
        >>> [(edit.op, edit.feedback) for edit in merged.edits], len(merged.conflicts)
        ([('replace', (1,)), ('add', (2,))], 1)
    """
    base = lines_of(base_text)
    there = _folded(base)
    said = _folded(line for edit in first if edit.op != "remove" for line in edit.text.split("\n")) - there
    first, second = meant(first, base_text), meant(second, base_text)
    touched = {edit.line: edit for edit in first if edit.op != "add"}
    made = list(first)
    conflicts: list[tuple[Edit, Edit]] = []
    duplicates: list[Edit] = []
    for edit in second:
        moved = replace(edit, feedback=tuple(number + feedback for number in edit.feedback))
        other = touched.get(edit.line) if edit.op != "add" else None
        if edit.op == "add" and _is_among(edit, said):
            duplicates.append(moved)
        elif other is None:
            made.append(moved)
        elif other.op == edit.op and fold(other.text) == fold(edit.text):
            duplicates.append(moved)
        elif (both := _both(base[edit.line - 1], other, edit)) is not None:
            touched[edit.line] = as_one([other, moved], replace(other, text=both))
            made[made.index(other)] = touched[edit.line]
        else:
            conflicts.append((other, moved))
    return Merged(tuple(made), tuple(conflicts), tuple(duplicates))


def _both(line: str, one: Edit, other: Edit) -> str | None:
    """What two edits make of a line together; None where they disagree."""
    return merged_line(line, one.text, other.text) if one.op == other.op == "replace" else None


def fold(line: str) -> str:
    """A line without what makes no difference: case, white space, a bullet before it and a full stop behind it.

    Nor does the way that its letters are encoded.

    Example:
        >>> fold("- Be  brief.") == fold("be brief"), fold("・簡潔に。") == fold("簡潔に")
        (True, True)
    """
    plain = " ".join(folded(line).split())
    return re.sub(r"^(?:(?:[-*•+]|\d+[.)]) |[・●○■□◆◇] ?)", "", plain).rstrip(".。।")


@dataclass(frozen=True)
class _Place:
    """Where a line of the base is now: its number, None when it is gone; and the numbers of what stands there."""

    itself: int | None
    standing: tuple[int, ...]


def _places(
    base_text: str,
    new_text: str,
    base_origins: Sequence[Origin | None] | None,
    new_origins: Sequence[Origin | None] | None,
) -> list[_Place]:
    if base_origins is not None and new_origins is not None:
        found = _places_by_writer(cells_of(base_text, base_origins), cells_of(new_text, new_origins))
        if found is not None:
            return found
    return _places_by_text(lines_of(base_text), new_text.split("\n"))


def _places_by_writer(base: list[Cell], new: list[Cell]) -> list[_Place] | None:
    """The places by the cells' keys; None when the two are no texts of one history."""
    base_keys, new_keys = keys_of(base), keys_of(new)
    where = {key: position for position, key in enumerate(new_keys)}
    if [key for key in base_keys if not key[0]] != [key for key in new_keys if not key[0]]:
        return None
    if any(key in where and new[where[key]].text != cell.text for key, cell in zip(base_keys, base)):
        return None
    numbers: dict[int, int] = {}
    for position, cell in enumerate(new):
        if not cell.by:
            numbers[position] = len(numbers) + 1

    def place(key: tuple[str, int], cell: Cell) -> _Place:
        if key in where:
            starts = [where[key]]
        else:  # its edit was taken back: what it had replaced stands there
            starts = [where[k] for k, other in zip(base_keys, base) if other.by == cell.edit and k in where]
        standing = sorted({numbers[position] for start in starts for position in standing_for(new, start)})
        return _Place(numbers.get(where[key]) if key in where else None, tuple(standing))

    return [place(key, cell) for key, cell in zip(base_keys, base) if not cell.by]


def _places_by_text(base: list[str], new: list[str]) -> list[_Place]:
    places: list[_Place] = []
    for tag, start, stop, first, last in matcher_of(base, new).get_opcodes():
        numbers = range(first + 1, last + 1)
        if tag == "equal":
            places += [_Place(number, (number,)) for number in numbers]
        elif stop - start == len(numbers):  # as many lines as there were: each for its own
            places += [_Place(None, (number,)) for number in numbers]
        else:
            places += [_Place(None, tuple(numbers))] * (stop - start)
    return places


def _behind(line: int, places: Sequence[_Place], lines: int) -> int:
    """The number of the line of the new text behind which an add behind a line of the base goes."""
    if line == len(places):
        return lines
    for place in reversed(places[:line]):
        if place.standing:
            return place.standing[-1]
    return 0


def _instead(edit: Edit, standing: Sequence[int], behind: int) -> tuple[Edit, ...]:
    """Edits of the new text that put one in the place of what stands there."""
    removals = [replace(edit, op="remove", line=number, text="") for number in standing]
    if edit.op == "remove":
        return tuple(removals)
    if not standing:
        return (replace(edit, op="add", line=behind),)
    return (replace(edit, line=standing[0]), *removals[1:])


def _is_among(edit: Edit, lines: set[str]) -> bool:
    """Whether all that an edit would add is there; what is blank is not looked for."""
    text = _folded(edit.text.split("\n"))
    return bool(text) and text <= lines


def _folded(lines: Iterable[str]) -> set[str]:
    return {folded for line in lines if (folded := fold(line))}
