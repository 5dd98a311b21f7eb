"""The proposer: gathers feedback by lesson and edits the text accordingly; careless at a known rate."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.llm.simulated.reading import Task
from textgrad_engine.testing.simulated.instructions import read_instructions
from textgrad_engine.testing.simulated.vocabulary import ATTRIBUTES, BY_NAME, CODES, attributes_in, clauses, rules_in

__all__ = ["BLAND", "Lesson", "Proposer", "lessons_in"]

BLAND = (
    "Be accurate and consistent.",
    "Read every parcel line carefully.",
    "Take your time before you answer.",
    "Pay attention to details.",
    "Think about what sets a parcel apart.",
    "Check your answer before you give it.",
)
_FORMAT_LINE = "Answer with the code only and nothing else."
_WORDINGS = (
    "Parcels {spoken} get code {code}.",
    "{name} -> {code}",
    "If a parcel is one {spoken_one}, the code is {code}.",
    "Parcels {spoken}: {code}.",
    "Use {code} for parcels {spoken}.",
)
_REMOVE = re.compile(r"\bremove\b|\bdrop\b|\btake (?:that|the|this) line out\b|\bdelete\b|\bdoes harm\b", re.IGNORECASE)
_BEFORE = re.compile(r"\b(?:before|above|ahead of)\b", re.IGNORECASE)
_FORMAT = re.compile(r"\bnothing else\b|\bcode only\b", re.IGNORECASE)
_TIDY = re.compile(r"\bsays nothing that another line\b|\bsay the same\b", re.IGNORECASE)
_OVERLOOKS = 0.1
_REJECTED = re.compile(
    r"reject|dropp|worse|not kept|undone|taken back|revert|did not help|no better|discard|not shown|no gain|ablat|"
    r"removed again|lost",
    re.IGNORECASE,
)
_REPEATS = 0.15
_INSISTS = 0.3
_LESSONS_OF_A_REWRITE = 8


@dataclass(frozen=True)
class Lesson:
    """One thing that feedback asks for.

    Attributes:
        kind: a line about the attribute with the code; no line about it; it before another; the form of the answer.
        attribute: the attribute.
        other: the code, or the other attribute.
    """

    kind: str
    attribute: str = ""
    other: str = ""


@dataclass
class _Support:
    lesson: Lesson
    weight: float = 0.0
    numbers: list[int] = field(default_factory=list)


def lessons_in(feedback: str) -> tuple[Lesson, ...]:
    """What a text of feedback asks for; nothing when it is vague.

    Example:
        >>> [lesson.kind for lesson in lessons_in("Remove the line about glass. Parcels to Norway get code K4.")]
        ['remove', 'rule']
    """
    if _TIDY.search(feedback):
        return (Lesson("tidy"),)
    found: list[Lesson] = []
    for clause in clauses(feedback):
        names = attributes_in(clause)
        if rules := rules_in(clause):
            found += [Lesson("rule", rule.attribute, rule.code) for rule in rules]
        elif names and _REMOVE.search(clause):
            found.append(Lesson("remove", names[0]))
        elif len(names) == 2 and _BEFORE.search(clause):
            found.append(Lesson("order", *names))
        elif _FORMAT.search(clause):
            found.append(Lesson("format"))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Proposer:
    """Edits a text from feedback.

    Attributes:
        seed: what its choices are hashed with.
        sloppiness: the rate of proposals with something silly in them.
    """

    seed: int
    sloppiness: float

    def patch(self, task: Task) -> dict[str, Any]:
        """Edits to numbered lines, in the shape of the format "patch"."""
        key = self._key(task)
        edits = self._edits(task, task.max_edits, key)
        if edits and chance(*key, "sloppy") < self.sloppiness:
            edits = self._spoilt(edits, task, key)[: task.max_edits]
        return {"edits": edits}

    def rewrite(self, task: Task) -> dict[str, Any]:
        """The whole text anew, in the shape of the format "rewrite"."""
        key = self._key(task)
        edits = self._edits(task, _LESSONS_OF_A_REWRITE, key)
        dropped = 0
        if task.items and chance(*key, "sloppy") < self.sloppiness:
            if len(task.lines) > 1 and chance(*key, "drop?") < 0.5:
                dropped = 1 + int(chance(*key, "dropped") * len(task.lines))
            else:
                edits = self._spoilt(edits, task, key)
        reason = " ".join(edit["reason"] for edit in edits) or "Nothing in the feedback asks for a change."
        return {"text": "\n".join(_applied(task.lines, edits, dropped)), "reason": reason}

    def _key(self, task: Task) -> tuple[object, ...]:
        said = [item.text for item in task.items]
        return (self.seed, "proposer", *task.lines, *said, *task.history, task.problem, task.max_edits)

    def _edits(self, task: Task, limit: int, key: tuple[object, ...]) -> list[dict[str, Any]]:
        """The edits that most feedback asks for."""
        if not task.items:
            return self._bland(task, key, "There is no feedback, so this is general advice.")[:limit]
        edits: list[dict[str, Any]] = []
        touched: set[int] = set()
        about: set[str] = set()
        for support in self._gathered(task, key):
            lesson = support.lesson
            if {lesson.attribute, lesson.other} & about & BY_NAME.keys():
                continue  # another lesson about it has more support
            new = self._edit(lesson, task, support.numbers, key)
            lines = {edit["line"] for edit in new if edit["op"] != "add"}
            if not new or lines & touched or len(edits) + len(new) > limit:
                continue
            edits += new
            touched |= lines
            about |= {lesson.attribute, lesson.other} & BY_NAME.keys()
        if not edits:
            return self._bland(task, key, "The feedback asks for more care.")[:limit]
        return edits[: max(1, limit // 2)] if task.problem else edits

    def _gathered(self, task: Task, key: tuple[object, ...]) -> list[_Support]:
        found: dict[Lesson, _Support] = {}
        for item in task.items:
            for lesson in lessons_in(item.text):
                support = found.setdefault(lesson, _Support(lesson))
                support.weight += item.times
                support.numbers.append(item.number)
        for lesson in self._rejected(task):
            if lesson in found and chance(*key, "repeat", lesson) >= _REPEATS:
                del found[lesson]
        return sorted(found.values(), key=lambda support: (-support.weight, support.numbers[0]))

    def _rejected(self, task: Task) -> set[Lesson]:
        """What was tried before and came to nothing, as far as the request shows it."""
        failed = [past for past in task.history if _REJECTED.search(past)]
        return {lesson for past in failed for lesson in lessons_in(past)}

    def _edit(self, lesson: Lesson, task: Task, numbers: list[int], key: tuple[object, ...]) -> list[dict[str, Any]]:
        """The edits for one lesson; none when the text says it already."""
        if lesson.kind == "tidy":
            return self._tidied(task, numbers, key)
        own = _line_about(lesson.attribute, task.lines)
        count = f"{len(numbers)} feedback item{' says' if len(numbers) == 1 else 's say'}"
        if lesson.kind == "format":
            if read_instructions("\n".join(task.lines)).bare:
                return []
            return [_edit("add", len(task.lines), _FORMAT_LINE, f"{count} what the answer should look like.", numbers)]
        if lesson.kind == "rule":
            reason = f"{count} that {lesson.attribute} means {lesson.other}."
            if own is None:
                return [_edit("add", len(task.lines), _worded(lesson, key), reason, numbers)]
            if read_instructions("\n".join(task.lines)).codes.get(lesson.attribute) == lesson.other:
                if chance(*key, "insist", lesson) >= _INSISTS:
                    return []
                text = f"Always give {lesson.other} to parcels {BY_NAME[lesson.attribute].spoken}."
                return [_edit("add", len(task.lines), text, f"{count} it, although the text says so.", numbers)]
            text = _without(lesson.attribute, task.lines[own - 1], _worded(lesson, key))
            return [_edit("replace", own, text, reason, numbers)]
        if own is None:
            return []
        if lesson.kind == "remove":
            text = _without(lesson.attribute, task.lines[own - 1], "")
            reason = f"{count} that the line about {lesson.attribute} does harm."
            return [_edit("replace" if text else "remove", own, text, reason, numbers)]
        later = _line_about(lesson.other, task.lines)
        if later is None or later >= own:
            return []
        reason = f"{count} that {lesson.attribute} must come before {lesson.other}."
        return [
            _edit("remove", own, "", reason, numbers),
            _edit("add", later - 1, task.lines[own - 1], reason, numbers),
        ]

    def _tidied(self, task: Task, numbers: list[int], key: tuple[object, ...]) -> list[dict[str, Any]]:
        """Removes lines that say only what later lines say too; now and then one is overlooked."""
        said: set[object] = set()
        edits = []
        for number in range(len(task.lines), 0, -1):
            line = task.lines[number - 1]
            rules = {(rule.attribute, rule.code) for clause in clauses(line) for rule in rules_in(clause)}
            own: set[object] = set(rules) or {line.strip().casefold()}
            if line.strip() and own <= said and chance(*key, "overlooks", number) >= _OVERLOOKS:
                edits.append(_edit("remove", number, "", "Another line says it.", numbers))
            said |= own
        return edits[: task.max_edits]

    def _bland(self, task: Task, key: tuple[object, ...], reason: str) -> list[dict[str, Any]]:
        left = [line for line in BLAND if line not in task.lines]
        return [_edit("add", len(task.lines), pick(left, *key, "bland"), reason, [])] if left else []

    def _spoilt(self, edits: list[dict[str, Any]], task: Task, key: tuple[object, ...]) -> list[dict[str, Any]]:
        """The edits with something silly in them."""
        place = int(chance(*key, "place") * len(edits)) if edits else 0
        rules = rules_in(edits[place]["text"]) if edits else ()
        kinds = ["bland", "again"] + (["wrong code", "too much"] * 2 if rules else [])
        kind = pick(kinds, *key, "silly")
        if kind == "bland":
            return self._bland(task, key, "General advice.") + edits
        if kind == "again":
            again = [line for line in task.lines if line.strip()]
            if not again:
                return edits
            text = pick(again, *key, "again")
            return [_edit("add", len(task.lines), text, "It bears repeating.", []), *edits]
        old = rules[0]
        if kind == "wrong code":
            wrong = pick([code for code in CODES if code != old.code], *key, "wrong code")
            text = edits[place]["text"].replace(old.code, wrong)
        else:
            names = [attribute.name for attribute in ATTRIBUTES if attribute.name != old.attribute]
            shown = [name for item in task.items for name in attributes_in(item.text) if name != old.attribute]
            text = f"Parcels with {old.attribute} or {pick(shown or names, *key, 'more')} get code {old.code}."
        return [{**edit, "text": text} if number == place else edit for number, edit in enumerate(edits)]


def _edit(op: str, line: int, text: str, reason: str, numbers: list[int]) -> dict[str, Any]:
    return {"op": op, "line": line, "text": text, "reason": reason, "feedback": list(numbers)}


def _worded(lesson: Lesson, key: tuple[object, ...]) -> str:
    spoken = BY_NAME[lesson.attribute].spoken
    wording = pick(_WORDINGS, *key, "wording", lesson)
    one = spoken.replace("that are", "that is")
    return wording.format(name=lesson.attribute, spoken=spoken, spoken_one=one, code=lesson.other)


def _line_about(attribute: str, lines: tuple[str, ...]) -> int | None:
    """The number of the line whose rule about the attribute is in force: the last one."""
    found = [
        number
        for number, line in enumerate(lines, 1)
        if any(rule.attribute == attribute for clause in clauses(line) for rule in rules_in(clause))
    ]
    return found[-1] if found else None


def _without(attribute: str, line: str, instead: str) -> str:
    """A line with its rules about an attribute taken out, and something else said instead."""
    rules = [rule for clause in clauses(line) for rule in rules_in(clause) if rule.attribute != attribute]
    kept = [f"{rule.attribute} -> {rule.code}" for rule in rules]
    return "; ".join([*kept, instead] if instead else kept)


def _applied(lines: tuple[str, ...], edits: list[dict[str, Any]], dropped: int) -> list[str]:
    """The lines with edits made, and one of the old ones gone."""
    gone = {edit["line"] for edit in edits if edit["op"] == "remove"} | {dropped}
    new = {edit["line"]: edit["text"] for edit in edits if edit["op"] == "replace"}
    result: list[str] = []
    for number in range(len(lines) + 1):
        if number and number not in gone:
            result.append(new.get(number, lines[number - 1]))
        result += [edit["text"] for edit in edits if edit["op"] == "add" and edit["line"] == number]
    return result
