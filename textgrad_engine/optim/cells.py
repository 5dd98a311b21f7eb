"""The lines of a text together with those that edits took out of it, so that an edit can be taken back later.

A text is a sequence of cells. A line that is removed or replaced stays as a cell that is gone, with the edit that took
it out; the text is the cells that are not. That is how replicated sequences keep concurrent edits apart (WOOT, Oster et
al. 2006; RGA, Roh et al. 2011): cells never move, so edits that were made side by side, or one of several that came one
after the other, can be put in and taken out by themselves. Between steps the cells are kept in the origins of the lines
beside them (`Origin.gone`), which are saved with a run anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textgrad_engine.attributes import attributes_told


@attributes_told
@dataclass(frozen=True)
class Evidence:
    """A piece of feedback that asked for a change.

    Attributes:
        text: the feedback.
        examples: the examples that it came from.
    """

    text: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Gone:
    """A line that is no longer in the text.

    Attributes:
        text: how it read.
        origin: why it read so; None for a line that no step wrote.
        by: the edit that took it out.
    """

    text: str
    origin: Origin | None
    by: str


@attributes_told
@dataclass(frozen=True)
class Origin:
    """Why a line reads as it does.

    Attributes:
        step: the optimizer's step that wrote it, from 1; 0 if no step did, and this only says which lines next to it
            are gone.
        reason: the optimizer's reason.
        evidence: the feedback that it answers.
        edit: the edit that wrote it, as ``"step.number"``: ``"7.2"`` is the second edit of step 7; "" when unknown.
        gone: lines right after it that edits have removed.
        gone_before: the same for lines before it; only the first line of a text has them.
    """

    step: int
    reason: str
    evidence: tuple[Evidence, ...]
    edit: str = ""
    gone: tuple[Gone, ...] = ()
    gone_before: tuple[Gone, ...] = ()


@dataclass(frozen=True)
class Cell:
    """A line, in the text or gone from it.

    Attributes:
        text: how it reads.
        origin: why it reads so, without what is gone beside it; None for a line that no step wrote.
        by: the edit that took it out; "" while it is in the text.
    """

    text: str
    origin: Origin | None
    by: str = ""

    @property
    def edit(self) -> str:
        """The edit that wrote it; "" for none."""
        return "" if self.origin is None else self.origin.edit


_EMPTY = "nothing"
"""`Origin.edit` of the line that stands for a text that has lost all its lines, which as a string is one empty line."""


def lines_of(text: str) -> list[str]:
    r"""The lines of a text; the empty text has none, so that what is added to it does not stand beside an empty line.

    Example:
        >>> lines_of("Sort.\n\nBe brief."), lines_of("")
        (['Sort.', '', 'Be brief.'], [])
    """
    return text.split("\n") if text else []


def cells_of(text: str, origins: Sequence[Origin | None]) -> list[Cell]:
    """The cells of a text, in order.

    Args:
        text: the text.
        origins: one for each of its lines; one for the empty text, too.

    Raises:
        ValueError: there are more or fewer origins than lines.
    """
    wanted = text.count("\n") + 1
    if len(origins) != wanted:
        raise ValueError(f"a text of {wanted} lines has {wanted} origins, got {len(origins)}")
    cells: list[Cell] = []
    for line, origin in zip(text.split("\n"), origins):
        if origin is None:
            cells += [Cell(line, None)] if text else []
            continue
        cells.extend(Cell(gone.text, gone.origin, gone.by) for gone in origin.gone_before)
        if origin.edit != _EMPTY:
            cells.append(Cell(line, _bare(origin)))
        cells.extend(Cell(gone.text, gone.origin, gone.by) for gone in origin.gone)
    return cells


def text_of(cells: Sequence[Cell]) -> tuple[str, list[Origin | None]]:
    """The text of cells, and the origin of each of its lines; the other way round of `cells_of`."""
    lines: list[str] = []
    origins: list[Origin | None] = []
    first: list[Gone] = []
    behind: list[list[Gone]] = []
    for cell in cells:
        if not cell.by:
            lines.append(cell.text)
            origins.append(cell.origin)
            behind.append([])
        else:
            (behind[-1] if behind else first).append(Gone(cell.text, cell.origin, cell.by))
    if not lines:
        return "", [Origin(0, "", (), _EMPTY, gone_before=tuple(first)) if first else None]
    carried = [_carrying(origin, gone) for origin, gone in zip(origins, behind)]
    if first:
        carried[0] = replace(carried[0] or Origin(0, "", ()), gone_before=tuple(first))
    return "\n".join(lines), carried


def keys_of(cells: Sequence[Cell]) -> list[tuple[str, int]]:
    """What tells a cell from the others, here and in every text that descends from this one or comes before it.

    It is the edit that wrote the cell and its number among the cells of that edit. As cells never move and those of the
    first text are never dropped, it stays the same whatever else is edited.
    """
    seen: dict[str, int] = {}
    keys = []
    for cell in cells:
        writer = cell.edit or (f"step {cell.origin.step}" if cell.origin is not None else "")
        seen[writer] = seen.get(writer, 0) + 1
        keys.append((writer, seen[writer]))
    return keys


def standing_for(cells: Sequence[Cell], position: int) -> list[int]:
    """The positions of the lines that stand where the cell at `position` stood: itself, what replaced it, or none."""
    found, waiting = [], [position]
    while waiting:
        place = waiting.pop()
        if not cells[place].by:
            found.append(place)
        else:
            waiting.extend(written_by(cells, cells[place].by))
    return sorted(set(found))


def written_by(cells: Sequence[Cell], edit: str) -> list[int]:
    """The positions of the cells that an edit wrote, in the text or gone from it."""
    return [place for place, cell in enumerate(cells) if cell.edit == edit]


def _bare(origin: Origin) -> Origin | None:
    if not origin.gone and not origin.gone_before:
        return origin
    if origin.step == 0:
        return None
    return replace(origin, gone=(), gone_before=())


def _carrying(origin: Origin | None, gone: Sequence[Gone]) -> Origin | None:
    if not gone:
        return origin
    return replace(origin or Origin(0, "", ()), gone=tuple(gone))
