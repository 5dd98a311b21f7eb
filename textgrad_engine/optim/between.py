"""The patch between two texts that nobody wrote as a patch: a rewrite, or all that was done since an ancestor."""

from __future__ import annotations

from collections.abc import Sequence

from textgrad_engine.optim.cells import Evidence, Origin, lines_of
from textgrad_engine.optim.matching import pairs_in
from textgrad_engine.optim.patch import Edit, Op


def edits_between(
    before: str, after: str, origins: Sequence[Origin | None] | None = None
) -> tuple[list[Edit], list[Evidence]]:
    r"""A patch that makes one text of another, e.g. of a rewrite, or of all that was done since a common ancestor.

    Args:
        before: the text that the edits are of.
        after: what they make of it.
        origins: of the lines of `after`: an edit then has the id and the reason of who wrote its lines.

    Returns:
        The edits, and the evidence that their numbers of feedback speak of.

    Example:
        >>> [(edit.op, edit.line, edit.text) for edit in edits_between("a\nb\nc", "a\nB\nc\nd")[0]]
        [('replace', 2, 'B'), ('add', 3, 'd')]
    """
    old, new = lines_of(before), lines_of(after)
    known = [None] * len(new) if origins is None else list(origins)
    edits: list[Edit] = []
    evidence: list[Evidence] = []
    for tag, start, stop, first, last in pairs_in(old, new):
        if tag == "equal":
            continue
        groups = _by_writer(new[first:last], known[first:last])
        for number in range(start + 1, stop + 1):
            if groups:
                edits.append(_edit_of("replace", number, *groups.pop(0), evidence))
            else:
                edits.append(Edit("remove", number, "", ""))
        edits += [_edit_of("add", stop, *group, evidence) for group in groups]
    return edits, evidence


def _by_writer(lines: Sequence[str], origins: Sequence[Origin | None]) -> list[tuple[list[str], Origin | None]]:
    """Runs of lines that one edit wrote, with their origin."""
    groups: list[tuple[list[str], Origin | None]] = []
    for line, origin in zip(lines, origins):
        edit = "" if origin is None else origin.edit
        if groups and edit == ("" if groups[-1][1] is None else groups[-1][1].edit):
            groups[-1][0].append(line)
        else:
            groups.append(([line], origin))
    return groups


def _edit_of(op: Op, number: int, lines: list[str], origin: Origin | None, evidence: list[Evidence]) -> Edit:
    """The edit that writes lines; what their origin answers is added to the evidence."""
    feedback = []
    for item in () if origin is None else origin.evidence:
        if item not in evidence:
            evidence.append(item)
        feedback.append(evidence.index(item) + 1)
    reason, edit = ("", "") if origin is None else (origin.reason, origin.edit)
    return Edit(op, number, "\n".join(lines), reason, tuple(feedback), edit)
