"""A patch: a short list of edits to addressed lines of a text, and where each line came from."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from textgrad_engine.errors import ContractError
from textgrad_engine.llm.schema import integer
from textgrad_engine.optim.cells import Cell, Evidence, Gone, Origin, cells_of, text_of

__all__ = [
    "PATCH_SCHEMA",
    "REWRITE_SCHEMA",
    "Edit",
    "Evidence",
    "Gone",
    "Op",
    "Origin",
    "apply_patch",
    "edits_from",
    "origins_of_rewrite",
    "stamped",
]

Op = Literal["add", "replace", "remove"]

PATCH_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "op": {"type": "string", "enum": ["add", "replace", "remove"]},
                    "line": {"type": "integer"},
                    "text": {"type": "string"},
                    "reason": {"type": "string"},
                    "feedback": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["op", "line", "text", "reason", "feedback"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["edits"],
    "additionalProperties": False,
}

REWRITE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "reason": {"type": "string"}},
    "required": ["text", "reason"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Edit:
    """One edit.

    Attributes:
        op: ``"add"`` (after the line; 0 puts it first), ``"replace"`` or ``"remove"``.
        line: the number of the line in the old text, from 1.
        text: the new line, or lines.
        reason: why, in the optimizer's words.
        feedback: the numbers of the feedback items that it answers, from 1.
        id: what its lines are found by later, ``"step.number"``; "" before it is made (`stamped`).
    """

    op: Op
    line: int
    text: str
    reason: str
    feedback: tuple[int, ...] = ()
    id: str = ""


def edits_from(body: dict[str, Any], *, lines: int, feedback: int, max_edits: int) -> list[Edit]:
    """The edits of a model's JSON answer.

    Args:
        body: the parsed answer, which fits `PATCH_SCHEMA`.
        lines: how many lines the text has.
        feedback: how many feedback items were shown; other numbers are dropped.
        max_edits: at most so many.

    Raises:
        ContractError: too many edits, a line that does not exist, or two edits of one line.
    """
    edits = []
    touched: set[int] = set()
    for entry in body["edits"]:
        numbers = tuple(dict.fromkeys(integer(n) for n in entry["feedback"] if 1 <= n <= feedback))
        edit = Edit(entry["op"], integer(entry["line"]), entry["text"].strip("\n"), entry["reason"].strip(), numbers)
        lowest = 0 if edit.op == "add" else 1
        if not lowest <= edit.line <= lines:
            raise ContractError(f"there is no line {edit.line} to {edit.op}; the text has lines {lowest} to {lines}")
        if edit.op != "add":
            if edit.line in touched:
                raise ContractError(f"line {edit.line} is edited twice")
            touched.add(edit.line)
        if edit.op != "remove" and not edit.text.strip():
            raise ContractError(f"the edit of line {edit.line} has no text; use remove to delete a line")
        edits.append(edit)
    if len(edits) > max_edits:
        raise ContractError(f"there are {len(edits)} edits, and {max_edits} are allowed")
    return edits


def stamped(edits: Sequence[Edit], step: int) -> list[Edit]:
    """The edits with ids: those that have none yet get the step and their number in the list, from 1.

    Example:
        >>> [edit.id for edit in stamped([Edit("remove", 3, "", ""), Edit("remove", 1, "", "", id="2.9")], 7)]
        ['7.1', '2.9']
    """
    return [edit if edit.id else replace(edit, id=f"{step}.{number}") for number, edit in enumerate(edits, 1)]


def apply_patch(
    text: str,
    origins: Sequence[Origin | None],
    edits: Sequence[Edit],
    evidence: Sequence[Evidence],
    step: int,
) -> tuple[str, list[Origin | None]]:
    r"""The text with the edits made, and the origin of each of its lines; what they took out is kept in the origins.

    Args:
        text: the text.
        origins: one for each of its lines.
        edits: at most one replace or remove for a line; adds behind one line are made in their order.
        evidence: what the edits' numbers of feedback speak of.
        step: the step of edits that have no id.

    Raises:
        ValueError: an edit has a line that the text has not.

    Example:
        >>> apply_patch("a\nb", [None, None], [Edit("add", 1, "x", "why"), Edit("remove", 2, "", "")], [], 1)[0]
        'a\nx'
    """
    lines = text.count("\n") + 1
    taken: dict[int, str] = {}
    written: dict[int, list[Cell]] = {}
    # A replacement stands before lines that are added behind the line it replaces.
    for edit in sorted(stamped(edits, step), key=lambda edit: edit.op == "add"):
        if not (0 if edit.op == "add" else 1) <= edit.line <= lines:
            raise ValueError(f"there is no line {edit.line} to {edit.op}; the text has {lines}")
        if edit.op != "add":
            taken[edit.line] = edit.id
        if edit.op != "remove":
            answered = tuple(evidence[number - 1] for number in edit.feedback)
            origin = Origin(_step_of(edit.id, step), edit.reason, answered, edit.id)
            written.setdefault(edit.line, []).extend(Cell(line, origin) for line in edit.text.split("\n"))
    return text_of(_rebuilt(cells_of(text, origins), taken, written))


def origins_of_rewrite(
    before: str, origins: Sequence[Origin | None], after: str, reason: str, evidence: Sequence[Evidence], step: int
) -> list[Origin | None]:
    """The origin of each line of a text that was written anew: lines that stayed keep theirs.

    Each run of lines that differ is an edit of its own, numbered in order.
    """
    old, new = before.split("\n"), after.split("\n")
    taken: dict[int, str] = {}
    written: dict[int, list[Cell]] = {}
    number = 0
    for tag, start, stop, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        number += 1
        edit = f"{step}.{number}"
        origin = Origin(step, reason, tuple(evidence), edit)
        taken |= dict.fromkeys(range(start + 1, stop + 1), edit)
        written[stop] = [Cell(line, origin) for line in new[first:last]]
    return text_of(_rebuilt(cells_of(before, origins), taken, written))[1]


def _rebuilt(cells: Sequence[Cell], taken: dict[int, str], written: dict[int, list[Cell]]) -> list[Cell]:
    """The cells with lines taken out (by the edit named) and cells put behind lines, both by the line's number."""
    result = list(written.get(0, ()))
    number = 0
    for cell in cells:
        if cell.by:
            result.append(cell)
            continue
        number += 1
        result.append(replace(cell, by=taken[number]) if number in taken else cell)
        result.extend(written.get(number, ()))
    return result


def _step_of(edit: str, step: int) -> int:
    number = edit.partition(".")[0]
    return int(number) if number.isdecimal() else step
