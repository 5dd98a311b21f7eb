"""A patch: a short list of edits to addressed lines of a text, and where each line came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.schema import integer
from textgrad_engine.optim.cells import Cell, Evidence, Origin, cells_of, lines_of, text_of
from textgrad_engine.optim.matching import pairs_in
from textgrad_engine.optim.sentences import Place, led_as, places_of
from textgrad_engine.optim.showing import left_over

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


@attributes_told
@dataclass(frozen=True)
class Edit:
    """One edit.

    Attributes:
        op: ``"add"`` (after the line; 0 puts it first), ``"replace"`` or ``"remove"``.
        line: the number of the line in the old text, from 1.
        text: the new line, or lines.
        reason: why, in the optimizer's words.
        feedback: the numbers of the feedback items that it answers, from 1.
        id: identifies its lines later, ``"step.number"``; "" before it is applied (`stamped`).

    Example:
        >>> edit = Edit("add", 1, "Answer in one word.", reason="Answers are too long.", feedback=(1,))
        >>> edit.op, edit.line, edit.text  # behind line 1
        ('add', 1, 'Answer in one word.')
    """

    op: Op
    line: int
    text: str
    reason: str
    feedback: tuple[int, ...] = ()
    id: str = ""


_DOES = {"add": "adds", "replace": "replaces", "remove": "removes"}


def edits_from(
    body: dict[str, Any], *, text: str, feedback: int, max_edits: int, shown: Sequence[str] = ()
) -> tuple[list[Edit], list[str]]:
    """The edits of a model's JSON answer that can be made, and what is wrong with the answer.

    Edits of sentences of one long line become one edit of that line.

    Args:
        body: the parsed answer, which fits `PATCH_SCHEMA`; its lines are numbered as `showing.numbered` does.
        text: the text.
        feedback: how many feedback items were shown; other numbers are dropped.
        max_edits: at most so many; the first ones are given.
        shown: the texts that the model was shown, of which it may have taken the numbers of lines along.

    Returns:
        The edits, and a sentence for each that cannot be made, for the one who is asked.
    """
    places = places_of(text)
    edits: list[Edit] = []
    problems: list[str] = []
    touched: dict[int, int] = {}
    for place, entry in enumerate(body["edits"], 1):
        numbers = tuple(dict.fromkeys(integer(n) for n in entry["feedback"] if 1 <= n <= feedback))
        edit = Edit(entry["op"], integer(entry["line"]), entry["text"].strip("\n"), entry["reason"].strip(), numbers)
        (edit,) = meant([edit], text) or [edit]  # one that changes nothing is told so
        if problem := _problem_of(edit, len(places), touched, shown):
            problems.append(f"edit {place} {problem}")
            continue
        if edit.op != "add":
            touched[edit.line] = place
        edits.append(edit)
    if len(body["edits"]) > max_edits:
        problems.append(f"there are {len(body['edits'])} edits, and the limit is {max_edits}")
    return _of_lines(edits[:max_edits], places), problems


def _of_lines(edits: Sequence[Edit], places: Sequence[Place]) -> list[Edit]:
    """Edits of places as edits of lines."""

    def goes_on(number: int) -> bool:
        """Whether the place behind that one stands in the same line."""
        return 0 < number < len(places) and places[number].goes_on

    made: dict[int | tuple[str, int], list[Edit]] = {}
    for at, edit in enumerate(edits):
        within = goes_on(edit.line) or (edit.op != "add" and places[edit.line - 1].goes_on)
        made.setdefault(("line", places[edit.line - 1].line) if within else at, []).append(edit)
    found = []
    for key, own in made.items():
        if isinstance(key, tuple):
            found.append(_of_sentences(own, key[1], places))
        else:
            (edit,) = own
            found.append(replace(edit, line=places[edit.line - 1].line if edit.line else 0))
    return found


def _of_sentences(edits: Sequence[Edit], line: int, places: Sequence[Place]) -> Edit:
    """The edit of a line that edits of its sentences come to."""
    text = ""
    for number, place in enumerate(places, 1):
        if place.line != line:
            continue
        own = [edit for edit in edits if edit.line == number]
        said = [edit.text.strip() for edit in own if edit.op == "add"]
        if not any(edit.op == "remove" for edit in own):
            new = next((edit.text.rstrip() for edit in own if edit.op == "replace"), place.text.rstrip())
            said.insert(0, new.lstrip() if place.goes_on else new)  # the first one has the indentation of the line
        gap = place.text[len(place.text.rstrip()) :]
        between = gap or ("" if number < len(places) and places[number].goes_on else " ")
        text += "".join(f"{each}{between}" for each in said[:-1]) + (said[-1] + gap if said else "")
    old = "".join(place.text for place in places if place.line == line)
    if not old[-1].isspace():
        text = text.rstrip()
    first = next(number for number, place in enumerate(places, 1) if place.line == line)
    if text.strip() and any(edit.op == "remove" and edit.line == first for edit in edits):
        text = led_as(old, text)
    text = text if text.strip() else ""
    return as_one(edits, Edit("replace" if text else "remove", line, text, ""))


def as_one(edits: Sequence[Edit], made: Edit) -> Edit:
    """The edit that several of one line come to, with what all of them were made for."""
    reasons = list(dict.fromkeys(edit.reason for edit in edits if edit.reason))
    reason = reasons[0] if len(reasons) == 1 else "; ".join(each.rstrip(".") for each in reasons)
    return replace(
        made, reason=reason, feedback=tuple(dict.fromkeys(number for edit in edits for number in edit.feedback))
    )


def _problem_of(edit: Edit, lines: int, touched: Mapping[int, int], shown: Sequence[str]) -> str:
    """Why an edit cannot be made, after "edit 3"; "" where it can.

    Args:
        edit: the edit.
        lines: how many lines the text has.
        touched: for each line that is replaced or removed already, by which edit.
        shown: the texts that the model was shown.
    """
    does = _DOES[edit.op]
    if edit.op == "add":
        if not 0 <= edit.line <= lines:
            last = f"the last line is {lines} (0 puts it first)" if lines else "the text is empty: 0 puts it first"
            return f"adds a line behind line {edit.line}; {last}"
        if not edit.text.strip():
            return f"adds no text behind line {edit.line}"
    else:
        if not 1 <= edit.line <= lines:
            has = f"has {f'lines 1 to {lines}' if lines > 1 else 'line 1 only'}" if lines else "is empty"
            return f"{does} line {edit.line}; the text {has}"
        if edit.line in touched:
            return f"{does} line {edit.line}, which edit {touched[edit.line]} replaces or removes already"
        if edit.op == "replace" and not edit.text.strip():
            return f"replaces line {edit.line} by nothing; use remove to delete a line"
    if edit.op != "remove" and (found := left_over(edit.text, shown)):
        return f"has a text with `{found}`, which is only how texts are shown; leave it out"
    return ""


def meant(edits: Sequence[Edit], text: str) -> list[Edit]:
    """Edits as they are meant where their text is empty, and as they are where it is not.

    As a string the empty text is one empty line, and as a prompt it has none: what would replace that line, or stand
    behind it, comes first, and to remove it changes nothing.
    """
    if text:
        return list(edits)
    kept = (edit for edit in edits if edit.op != "remove" or edit.line > 1)
    return [edit if edit.line > 1 else replace(edit, op="add", line=0) for edit in kept]


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
        edits: at most one replace or remove for a line; adds behind one line are made in their order. The empty text
            has no line that would stay beside what is added.
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
    for edit in sorted(meant(stamped(edits, step), text), key=lambda edit: edit.op == "add"):
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

    Each line that was put in other words is an edit of its own, and so are lines in a row that came in or are gone
    (`matching.pairs_in`), numbered in order.
    """
    old, new = lines_of(before), lines_of(after)
    taken: dict[int, str] = {}
    written: dict[int, list[Cell]] = {}
    number = 0
    for tag, start, stop, first, last in pairs_in(old, new):
        if tag == "equal":
            continue
        number += 1
        edit = f"{step}.{number}"
        origin = Origin(step, reason, tuple(evidence), edit)
        taken |= dict.fromkeys(range(start + 1, stop + 1), edit)
        written.setdefault(stop, []).extend(Cell(line, origin) for line in new[first:last])
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
