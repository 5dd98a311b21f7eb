"""A patch: a short list of edits to addressed lines of a text, and where each line came from."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from textgrad_engine.errors import ContractError

__all__ = [
    "PATCH_SCHEMA",
    "REWRITE_SCHEMA",
    "Edit",
    "Evidence",
    "Origin",
    "apply_patch",
    "edits_from",
    "origins_of_rewrite",
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
    """

    op: Op
    line: int
    text: str
    reason: str
    feedback: tuple[int, ...] = ()


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
class Origin:
    """Why a line reads as it does.

    Attributes:
        step: the optimizer's step that wrote it, from 1.
        reason: the optimizer's reason.
        evidence: the feedback that it answers.
    """

    step: int
    reason: str
    evidence: tuple[Evidence, ...]


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
        numbers = tuple(dict.fromkeys(n for n in entry["feedback"] if 1 <= n <= feedback))
        edit = Edit(entry["op"], entry["line"], entry["text"].strip("\n"), entry["reason"].strip(), numbers)
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


def apply_patch(
    text: str,
    origins: Sequence[Origin | None],
    edits: Sequence[Edit],
    evidence: Sequence[Evidence],
    step: int,
) -> tuple[str, list[Origin | None]]:
    r"""The text with the edits made, and the origin of each of its lines.

    Example:
        >>> apply_patch("a\nb", [None, None], [Edit("add", 1, "x", "why"), Edit("remove", 2, "", "")], [], 1)[0]
        'a\nx'
    """
    old = text.split("\n")
    added: dict[int, list[Edit]] = {}
    changed: dict[int, Edit] = {}
    for edit in edits:
        if edit.op == "add":
            added.setdefault(edit.line, []).append(edit)
        else:
            changed[edit.line] = edit
    lines: list[str] = []
    kept: list[Origin | None] = []

    def put(edit: Edit) -> None:
        origin = Origin(step, edit.reason, tuple(evidence[n - 1] for n in edit.feedback))
        for line in edit.text.split("\n"):
            lines.append(line)
            kept.append(origin)

    for number in range(len(old) + 1):
        if number:
            change = changed.get(number)
            if change is None:
                lines.append(old[number - 1])
                kept.append(origins[number - 1])
            elif change.op == "replace":
                put(change)
        for edit in added.get(number, ()):
            put(edit)
    return "\n".join(lines), kept


def origins_of_rewrite(
    before: str, origins: Sequence[Origin | None], after: str, reason: str, evidence: Sequence[Evidence], step: int
) -> list[Origin | None]:
    """The origin of each line of a text that was written anew: lines that stayed keep theirs."""
    old, new = before.split("\n"), after.split("\n")
    origin = Origin(step, reason, tuple(evidence))
    result: list[Origin | None] = [origin] * len(new)
    for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            result[block.b + offset] = origins[block.a + offset]
    return result
