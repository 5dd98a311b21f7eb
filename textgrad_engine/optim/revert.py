"""Taking one edit of a text back, also when others came after it: for ablation, and for edits that turned out wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textgrad_engine.optim.cells import Cell, Origin, cells_of, text_of, written_by


def revert(text: str, origins: Sequence[Origin | None], edit: str) -> tuple[str, list[Origin | None]]:
    r"""The text as it were without one edit: its lines are gone, and those that it replaced or removed are back.

    What later edits made of its lines stays theirs: a line that replaced one of its lines stays, and now stands for
    what this edit had replaced. The order in which several edits are taken back makes no difference.

    Args:
        text: the text.
        origins: one for each of its lines, as `apply_patch` gives them.
        edit: the id of the edit, as `Origin.edit` has it.

    Returns:
        The text and its origins. It may break contracts that the text kept, so check it (`contracts.broken`).

    Raises:
        ValueError: no line of the text, and none that is gone from it, speaks of such an edit.

    Example:
        >>> from textgrad_engine.optim.patch import Edit, apply_patch
        >>> edits = [Edit("replace", 1, "Sort it.", ""), Edit("add", 2, "Be brief.", "")]
        >>> text, origins = apply_patch("Sort.\nThe mail:", [None, None], edits, [], 7)
        >>> revert(text, origins, "7.1")[0]
        'Sort.\nThe mail:\nBe brief.'
    """
    cells = cells_of(text, origins)
    own = written_by(cells, edit)
    if not edit or (not own and all(cell.by != edit for cell in cells)):
        raise ValueError(f"the text has no edit {edit!r}; it has {', '.join(edits_in(text, origins)) or 'none'}")
    heir = _heir(cells, own)
    left = (cell for cell in cells if cell.edit != edit)
    return text_of([replace(cell, by=heir) if cell.by == edit else cell for cell in left])


def edits_in(text: str, origins: Sequence[Origin | None]) -> tuple[str, ...]:
    """The ids of the edits that can be seen in a text: taking one of them back would change it. In order of making."""
    cells = cells_of(text, origins)
    seen = dict.fromkeys(cell.edit for cell in cells if not cell.by)
    left = dict(seen)  # an edit has an heir when it wrote lines, and none of them is left
    wrote = {cell.edit for cell in cells}
    for cell in cells:
        if cell.by and (cell.by in left or cell.by not in wrote):
            seen[cell.by] = None
    return tuple(sorted((edit for edit in seen if edit), key=_order))


def _heir(cells: Sequence[Cell], own: Sequence[int]) -> str:
    """The edit that took out the last line of an edit, when none of its lines is left; else ""."""
    return cells[own[-1]].by if own and all(cells[place].by for place in own) else ""


def _order(edit: str) -> tuple[tuple[int, str], ...]:
    """Numbers by value, ``"7.10"`` behind ``"7.9"``; whatever else is in an id by its letters, before them."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in edit.split("."))
